"""A sorted run that is being merged: which of its pages are in memory, and how far its rows have been used."""

from __future__ import annotations

from collections import deque

import numpy as np

from earlyjoin.algorithms.hash_join.merging.chunk import Piece
from earlyjoin.algorithms.hash_join.table.disk_part import DiskPage, DiskRun, PageReader
from earlyjoin.algorithms.sweep_areas import SweepOrder, SweepWords
from earlyjoin.state.budget import Account

Word = int | float
_ROW_NBYTES = 64
"""Bytes a row that a merge works with: words, their order, ranges of pairs, stamps put together."""


def page_cost(disk: DiskRun, number: int) -> tuple[int, int]:
    """Bytes and rows of a page while it is merged: as it is read, and once more as it is put together."""
    starts = disk.run.starts
    rows = (starts[number + 1] if number + 1 < len(starts) else disk.rows) - starts[number]
    return 2 * disk.sizes[number] + _ROW_NBYTES * rows, rows


class OnePages(PageReader):
    """Reads single pages of one run and leaves booking them to the caller."""

    @property
    def side(self) -> int:
        """Whose run it is."""
        return self._files.side

    def page(self, disk: DiskRun, number: int) -> DiskPage:
        """A page."""
        if self._reader is None:
            self._reader = disk.run.read(self._physical)
        page = self._files.read(self._reader.page(number), disk.label)
        self._count(disk.run, number, number + 1)
        self._files.counters.seeks += 1  # runs are merged page by page
        return page


class MergeInput:
    """Rows before (``page``, ``offset``) have been used; so many pages from ``page`` on are in memory."""

    def __init__(self, run: DiskRun, pages: OnePages, order: SweepOrder, account: Account) -> None:
        self.run = run
        self.page = self.offset = 0
        self._pages, self._order, self._account = pages, order, account
        self._loaded: deque[tuple[DiskPage, SweepWords]] = deque()

    @property
    def loaded(self) -> int:
        """Pages in memory."""
        return len(self._loaded)

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return sum(page.nbytes + words.nbytes for page, words in self._loaded)

    def cost(self, number: int) -> tuple[int, int]:
        """Bytes and rows of a page while it is merged."""
        return page_cost(self.run, number)

    @property
    def next_word(self) -> Word | None:
        """The smallest word of the first page that is not in memory; None when there is none."""
        number = self.page + len(self._loaded)
        return self.run.first_words[number] if number < len(self.run.first_words) else None

    def load(self) -> bool:
        """Read one more page; False when there is no room for it."""
        number = self.page + len(self._loaded)
        if not self._account.try_reserve(*self.cost(number)):
            return False
        self._loaded.append(self._read(number))
        return True

    def _read(self, number: int) -> tuple[DiskPage, SweepWords]:
        page = self._pages.page(self.run, number)
        return page, self._order.words(self._pages.side, page.keys)

    def below(self, bound: Word | None) -> list[Piece]:
        """What is in memory and lies below the bound (None: everything)."""
        pieces, start = [], self.offset
        for page, words in self._loaded:
            stop = len(words) if bound is None else int(np.searchsorted(words, bound, side="left"))
            if stop > start:
                pieces.append(Piece(page, words, start, stop))
            start = 0
        return pieces

    def use(self, bound: Word | None) -> None:
        """Rows below the bound have been used: forget the pages that have no others."""
        while self._loaded:
            words = self._loaded[0][1]
            stop = len(words) if bound is None else int(np.searchsorted(words, bound, side="left"))
            if stop < len(words):
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
            self._account.release(*self.cost(self.page + number))

    # One hot word

    def pages_with(self, word: Word) -> range:
        """Pages that may hold the word, from the first unused row on."""
        stop = self.page
        while stop < len(self.run.first_words) and self.run.first_words[stop] <= word:
            stop += 1
        return range(self.page, stop)

    def with_word(self, number: int, word: Word) -> Piece:
        """The rows of a page that have this word; the caller has booked the page."""
        page, words = self._read(number)
        start = int(np.searchsorted(words, word, side="left"))
        return Piece(page, words, start, int(np.searchsorted(words, word, side="right")))

    def use_word(self, number: int, piece: Piece) -> None:
        """The rows of this page up to the end of the piece have been used."""
        self.page, self.offset = (number + 1, 0) if piece.stop == len(piece.words) else (number, piece.stop)

    def close(self) -> None:
        """Let go of memory and file."""
        self.put_back()
        self._pages.drop()
