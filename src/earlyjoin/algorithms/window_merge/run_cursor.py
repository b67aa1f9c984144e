"""A sorted run that is being merged: which of its pages are in memory, and how far its rows have been used."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from earlyjoin.algorithms.sweep_areas import SweepWords
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state.budget import Account
from earlyjoin.state.rows.store import BatchRows

Word = int | float
Cost = tuple[int, int]
"""Bytes and rows."""


@dataclass(slots=True)
class SortedPage:
    """A page of a sorted run in memory, with its keys made again."""

    rows: BatchRows
    keys: Keys
    words: SweepWords
    label: int
    """Rows of all sides with one label have met (see ``joined.same_run``)."""
    nbytes: int
    arrivals: Int64 | None = None
    departures: Int64 | None = None
    """When each row came into memory and left it, if that is known."""
    numbers: Int64 | None = None
    """The numbers of its rows in the file of flags, if there is one."""
    matched: Bool | None = None


class SortedPages(Protocol):
    """The pages of a sorted run, as a merge reads them."""

    @property
    def first_words(self) -> Sequence[Word]:
        """The smallest word of each page."""
        ...

    def cost(self, number: int) -> Cost:
        """What a page takes while it is merged."""
        ...

    def payload_nbytes(self, number: int) -> int:
        """What its rows take once more in a window, where that is not in ``cost``."""
        ...

    def read_page(self, number: int) -> SortedPage:
        """A page; the caller has booked it."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class Piece(NamedTuple):
    """Rows ``start`` to ``stop`` of a page."""

    page: SortedPage
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


class RunCursor:
    """Rows before (``page``, ``offset``) have been used; so many pages from ``page`` on are in memory."""

    def __init__(self, pages: SortedPages, account: Account) -> None:
        self.pages = pages
        self.page = self.offset = 0
        self._account = account
        self._words = pages.first_words
        self._loaded: deque[SortedPage] = deque()

    @property
    def loaded(self) -> int:
        """Pages in memory."""
        return len(self._loaded)

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return sum(page.nbytes for page in self._loaded)

    @property
    def first_word(self) -> Word | None:
        """The smallest word in memory that was not used; None when there is none."""
        return self._loaded[0].words[self.offset].item() if self._loaded else None

    @property
    def next_word(self) -> Word | None:
        """The smallest word of the first page that is not in memory; None when there is none."""
        number = self.page + len(self._loaded)
        return self._words[number] if number < len(self._words) else None

    def load(self) -> bool:
        """Read one more page; False when there is no room for it."""
        number = self.page + len(self._loaded)
        if not self._account.try_reserve(*self.pages.cost(number)):
            return False
        self._loaded.append(self.pages.read_page(number))
        return True

    def below(self, bound: Word | None) -> list[Piece]:
        """What is in memory and lies below the bound (None: everything)."""
        pieces, start = [], self.offset
        for page in self._loaded:
            stop = _stop(page, bound)
            if stop > start:
                pieces.append(Piece(page, start, stop))
            start = 0
        return pieces

    def use(self, bound: Word | None) -> None:
        """Rows below the bound have been used: forget the pages that have no others."""
        while self._loaded:
            stop = _stop(self._loaded[0], bound)
            if stop < len(self._loaded[0].words):
                self.offset = max(self.offset, stop)
                return
            self._release(1)
            self.page, self.offset = self.page + 1, 0

    def put_back(self) -> None:
        """Forget the pages in memory; their rows will be read again."""
        self._release(len(self._loaded))

    def _release(self, count: int) -> None:
        for number in range(count):
            self._loaded.popleft()
            self._account.release(*self.pages.cost(self.page + number))

    # One hot word

    def pages_with(self, word: Word) -> range:
        """Pages that may hold the word, from the first unused row on."""
        stop = self.page
        while stop < len(self._words) and self._words[stop] <= word:
            stop += 1
        return range(self.page, stop)

    def with_word(self, number: int, word: Word) -> Piece:
        """The rows of a page that have this word; the caller has booked the page."""
        page = self.pages.read_page(number)
        start, stop = (int(np.searchsorted(page.words, word, side=side)) for side in ("left", "right"))
        return Piece(page, start, stop)

    def use_word(self, number: int, piece: Piece) -> None:
        """The rows of this page up to the end of the piece have been used."""
        whole = piece.stop == len(piece.page.words)
        self.page, self.offset = (number + 1, 0) if whole else (number, piece.stop)

    def close(self) -> None:
        """Let go of memory and file."""
        self.put_back()
        self.pages.close()


def _stop(page: SortedPage, bound: Word | None) -> int:
    return len(page.words) if bound is None else int(np.searchsorted(page.words, bound, side="left"))
