"""Blocks: a page of a sorted sequence in memory, with what a sweep needs of it. Sequences lie in memory or on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.merge_join.sorted_runs import SideKeys, SortedRun
from earlyjoin.algorithms.sweep_areas import SweepArea, SweepWords
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.flag_file import FlagFile
from earlyjoin.state.disk.runs import RunReader
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.rows.store import BatchRows, Rows, one_batch


@dataclass(slots=True)
class Block:
    """A page in memory."""

    sequence: int
    """Which sequence of the sweep it belongs to."""
    page: int
    side: int
    label: int
    rows: Rows
    words: SweepWords
    """The sweep words of all its rows, ascending."""
    swept: Int64
    """Its rows that take part in the sweep, by number in ``rows``."""
    swept_words: SweepWords
    keys: Keys | None
    """The keys of the swept rows; they go as soon as they are in the sweep area."""
    matched: Bool | None
    """Flags of ``rows``, None when nobody asks."""
    marks: Int64 | None
    """For a page from disk that carries marks: a row for each of its rows (see ``SideKeys.layout``)."""
    payload_nbytes: int
    payload_rows: int
    area: SweepArea | None = None
    start: int = 0
    """The first place in the order of the sweep at which it meets blocks of the other side."""
    written: int = 0
    """How many of its rows have gone to the output of the merge."""

    @property
    def numbers(self) -> Int64 | None:
        """For a page from disk with flags: the numbers of its rows in the file of flags."""
        return self.marks[:, 0] if self.marks is not None and self.marks.shape[1] != 2 else None

    @property
    def stay(self) -> tuple[Int64, Int64] | None:
        """When each row came into memory and left it, if that is known."""
        return (self.marks[:, -2], self.marks[:, -1]) if self.marks is not None and self.marks.shape[1] > 1 else None

    @property
    def keys_nbytes(self) -> int:
        """Bytes of the keys, while they are held."""
        return self.keys.nbytes if self.keys is not None else 0

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return self.payload_nbytes + self.keys_nbytes + (self.area.nbytes if self.area is not None else 0)


class Sequence(ABC):
    """Rows of one side in the order of their sweep words, in pages."""

    side: int
    label: int
    """Sequences of all sides with one label have been joined with each other (see ``joined.same_run``)."""
    page_rows: int
    """Rows of the longest page."""

    @property
    @abstractmethod
    def first_words(self) -> SweepWords:
        """The smallest word of each page."""

    @abstractmethod
    def load(self, number: int, page: int, swept: Int64 | None = None) -> Block:
        """A page as a block of the sequence that has this number in a sweep.

        ``swept`` says which rows take part, for a block that was in memory before: flags may have changed since.
        """

    @abstractmethod
    def refresh(self, block: Block, index: Int64) -> None:
        """Bring the flags of these rows up to date: the page may be in memory twice."""

    @abstractmethod
    def mark(self, block: Block, index: Int64) -> None:
        """Keep it where it lasts that these rows of the block have matched, as ``block.matched`` says already."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files."""


def page_order(sequences: list[Sequence]) -> tuple[SweepWords, Int64, Int64]:
    """All pages by smallest word, ties by sequence and page: the word, the sequence and the page number of each."""
    numbers = [number for number, sequence in enumerate(sequences) if len(sequence.first_words)]
    firsts = [sequences[number].first_words for number in numbers]
    words = np.concatenate(firsts) if firsts else np.empty(0, dtype=np.int64)
    sequence = np.repeat(np.asarray(numbers, dtype=np.int64), [len(first) for first in firsts])
    page = np.concatenate([np.arange(len(first)) for first in firsts]) if firsts else sequence
    order = np.lexsort((page, sequence, words))
    return cast(SweepWords, words[order]), sequence[order], page[order]


class MemorySequence(Sequence):
    """Rows that are in memory anyway: a block of them costs its keys alone."""

    def __init__(
        self,
        side: int,
        label: int,
        page_rows: int,
        rows: Rows,
        keys: Keys,
        words: SweepWords,
        matched: Bool | None,
        order: Int64,
    ) -> None:
        self.side, self.label, self.page_rows = side, label, page_rows
        self._rows, self._keys, self._words, self._matched, self._order = rows, keys, words, matched, order

    @property
    def first_words(self) -> SweepWords:
        """The smallest word of each page."""
        return self._words[self._order[:: self.page_rows]]

    def load(self, number: int, page: int, swept: Int64 | None = None) -> Block:
        """Gather the keys of a page."""
        index = self._order[page * self.page_rows : (page + 1) * self.page_rows]
        words, keys = self._words[index], self._keys.take(index)
        return Block(
            number, page, self.side, self.label, self._rows, words, index, words, keys, self._matched, None,
            payload_nbytes=words.nbytes, payload_rows=0,
        )  # fmt: skip

    def refresh(self, block: Block, index: Int64) -> None:
        """All blocks share the flags of the rows in memory."""

    def mark(self, block: Block, index: Int64) -> None:
        """The flags of the block are those of the rows in memory."""

    def close(self) -> None:
        """There are no files."""


class RunSequence(Sequence):
    """A sorted run on disk. Several of its pages may be read as one page of the sequence."""

    def __init__(
        self,
        keys: SideKeys,
        label: int,
        run: SortedRun,
        flags: FlagFile | None,
        counters: Counters,
        *,
        drop_matched: bool,
        pages_at_once: int = 1,
    ) -> None:
        self.side, self.label, self.page_rows = keys.side, label, run.page_rows * pages_at_once
        self._pages_at_once = pages_at_once
        self._keys, self._run, self._flags, self._counters = keys, run, flags, counters
        self._drop_matched, self._layout = drop_matched, keys.layout
        self._reader: tuple[int, RunReader] | None = None

    @property
    def first_words(self) -> SweepWords:
        """The smallest word of each page."""
        return np.asarray(self._run.first_words[:: self._pages_at_once])

    def load(self, number: int, page: int, swept: Int64 | None = None) -> Block:
        """Read a page and make its keys; rows that need no further match stay out of the sweep."""
        read = self._read(page)
        payload = self._layout.rows_of(read)
        keys = self._keys.key.encode(self.side, payload)
        words = self._keys.words(keys)
        marks = _stacked(self._layout.marks_of(read))
        numbers = marks[:, 0] if marks is not None and self._keys.numbered else None
        matched = self._flags.read(numbers) if self._flags is not None and numbers is not None else None
        index = self._swept(keys, matched) if swept is None else swept
        if len(index) < len(keys):
            keys = keys.take(index)
        flags_nbytes = matched.nbytes if matched is not None else 0
        flags_nbytes += marks.nbytes if marks is not None and marks.shape[1] > 1 else 0
        return Block(
            number, page, self.side, self.label, BatchRows(payload), words, index, words[index], keys, matched, marks,
            payload_nbytes=batch_nbytes(read) + flags_nbytes + 3 * words.nbytes, payload_rows=len(words),
        )  # fmt: skip

    def _swept(self, keys: Keys, matched: Bool | None) -> Int64:
        swept = np.ones(len(keys), dtype=np.bool_) if keys.valid is None else keys.valid.copy()
        if self._drop_matched and matched is not None:
            swept &= ~matched
        return np.flatnonzero(swept)

    def _read(self, page: int) -> pa.RecordBatch:
        first = page * self._pages_at_once
        pages = [self._read_one(number) for number in range(first, min(first + self._pages_at_once, self._run.pages))]
        return pages[0] if len(pages) == 1 else one_batch(pa.Table.from_batches(pages))

    def _read_one(self, page: int) -> pa.RecordBatch:
        segment, place = self._run.place(page)
        if self._reader is None or self._reader[0] != segment:
            self.close()
            self._reader = (segment, self._run.segments[segment].read(self._counters))
        return self._reader[1].page(place)

    def refresh(self, block: Block, index: Int64) -> None:
        """Read the flags from the file again."""
        if self._flags is not None and block.numbers is not None and block.matched is not None:
            block.matched[index] = self._flags.read(block.numbers[index])

    def mark(self, block: Block, index: Int64) -> None:
        """Keep the flags in the file."""
        if self._flags is not None and block.numbers is not None:
            self._flags.mark(block.numbers[index])

    def close(self) -> None:
        """Close the file."""
        if self._reader is not None:
            self._reader[1].close()
            self._reader = None


def _stacked(marks: list[Int64]) -> Int64 | None:
    """The marks of a page as one array; a single one is not copied."""
    return None if not marks else marks[0].reshape(-1, 1) if len(marks) == 1 else np.column_stack(marks)
