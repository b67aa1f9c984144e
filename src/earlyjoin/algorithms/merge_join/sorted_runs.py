"""Sorted runs on disk (PMJ section 3.1): pages in the order of their sweep words, written once, read page by page.

A page holds the payload and, for joins that must know which rows have matched, the number of each row: its place in
one file of flags a side (:class:`FlagFile`), so that flags need no copying when runs are merged. A run may lie in
several files (*segments*): a snapshot in the middle of a merge closes the file being written and goes on in another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.sweep_areas import SweepOrder, SweepWords
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.budget import Budget, MemoryLimit, row_too_large
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.pages import PageLayout, cut_pages
from earlyjoin.state.disk.runs import Run, RunWriter
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.snapshot import Snapshot

_AREA_ROW_NBYTES = 48
_AREA_NBYTES = 1024


class PageLimit(NamedTuple):
    """The most that a page may hold; a single row may always be a page."""

    rows: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class SideKeys:
    """How rows of one side are stored and ordered."""

    side: int
    schema: pa.Schema
    key: BoundPredicate
    order: SweepOrder
    numbered: bool
    """Do pages carry row numbers?"""
    stamped: bool = False
    """Do pages carry when each row came into memory and left it?"""

    @property
    def layout(self) -> PageLayout:
        """Pages with the numbers of rows and their moments as marks, if there are any."""
        marks = [*(["row"] if self.numbered else []), *(["arrival", "departure"] if self.stamped else [])]
        return PageLayout(self.schema, marks)

    @property
    def marks(self) -> int:
        """Marks a row."""
        return self.numbered + 2 * self.stamped

    def words(self, keys: Keys) -> SweepWords:
        """The sweep words; rows that match nothing get zero, the same whenever they are asked for."""
        words = self.order.words(self.side, keys)
        return words if keys.valid is None else np.where(keys.valid, words, words.dtype.type(0))

    def footprint(self, page: pa.RecordBatch, keys: Keys) -> int:
        """About what a page takes in memory once it is read, its keys are made and are in a sweep area."""
        each = _AREA_ROW_NBYTES + (16 * self.marks if self.stamped else 0)
        return batch_nbytes(page) + 3 * keys.nbytes + each * len(keys) + _AREA_NBYTES


@dataclass(slots=True)
class SortedRun:
    """Rows of one side on disk in the order of their sweep words."""

    segments: list[Run] = field(default_factory=list)
    first_words: list[int] | list[float] = field(default_factory=list)
    """The smallest sweep word of each page."""
    page_rows: int = 0
    """Rows of the longest page."""
    footprint: int = 0
    """Bytes that the largest page takes in memory."""
    rest_footprint: int = 0
    """The same for pages of two rows or more: single rows are written on as soon as they are read."""

    @property
    def pages(self) -> int:
        """Number of pages."""
        return len(self.first_words)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(segment.rows for segment in self.segments)

    def place(self, page: int) -> tuple[int, int]:
        """The segment in which a page lies, and its number there."""
        number = 0
        while page >= self.segments[number].pages:
            page -= self.segments[number].pages
            number += 1
        return number, page

    def delete(self) -> None:
        """Remove the files."""
        for segment in self.segments:
            segment.delete()

    def save(self, snapshot: Snapshot) -> dict[str, Any]:
        """Put it into a snapshot; returns the plain values that ``load`` needs."""
        sizes = {"page_rows": self.page_rows, "footprint": self.footprint, "rest_footprint": self.rest_footprint}
        segments = [segment.save(snapshot) for segment in self.segments]
        return {"segments": segments, "first_words": list(self.first_words)} | sizes

    @classmethod
    def load(cls, snapshot: Snapshot, values: dict[str, Any], directory: SpillDirectory) -> SortedRun:
        """Take it out of a snapshot, which can be restored again."""
        segments = [Run.load(snapshot, segment, directory) for segment in values["segments"]]
        return cls(**(values | {"segments": segments, "first_words": list(values["first_words"])}))


class Batched(Protocol):
    """Rows that are given out by number, a batch at a time."""

    def batch(self, index: Int64) -> pa.RecordBatch:
        """The chosen rows."""
        ...


class PageWriter:
    """Writes one sorted run inside page limits."""

    def __init__(self, side: SideKeys, directory: SpillDirectory, counters: Counters, limit: PageLimit) -> None:
        self.run = SortedRun()
        self._side, self._layout = side, side.layout
        self._directory = directory
        self._counters = counters
        self._limit = limit
        self._writer: RunWriter | None = None

    def write(self, rows: Batched, marks: Int64 | None, chosen: Int64, most: int) -> None:
        """Write the chosen rows, which are in order, in pages of at most ``most`` rows and no more than the limit.

        ``marks`` has a row for each of them and a column for each mark.
        """

        def page(start: int, stop: int) -> tuple[tuple[pa.RecordBatch, Keys], int]:
            batch = rows.batch(chosen[start:stop])
            keys = self._side.key.encode(self._side.side, batch)
            return (batch, keys), self._side.footprint(batch, keys)

        for start, (batch, keys), footprint in cut_pages(len(chosen), most, self._limit.bytes, page, learns=True):
            here: list[Int64] = [] if marks is None else list(marks[start : start + len(keys)].T)
            self._write_page(self._layout.page(batch, here), keys, footprint)

    def _write_page(self, page: pa.RecordBatch, keys: Keys, footprint: int) -> None:
        if self._writer is None:
            self._writer = RunWriter(self._directory.new_path(".pages"), self._layout.schema, self._counters)
        self._writer.write(page)
        run = self.run
        run.first_words.append(self._side.words(keys)[0].item())
        run.page_rows = max(run.page_rows, len(keys))
        run.footprint = max(run.footprint, footprint)
        if len(keys) > 1:
            run.rest_footprint = max(run.rest_footprint, footprint)

    def close(self) -> SortedRun:
        """Finish the file being written; more may be written, into another."""
        if self._writer is not None:
            self.run.segments.append(self._writer.close())
            self._writer = None
        return self.run


def pages_of_a_merge(sides: int) -> int:
    """Pages that the smallest merge, of two runs a side, holds.

    A rest of a page of each run, a page that comes, pages in areas, a page of output a side and one being written.
    """
    return 3 * sides + 6


def page_limit(budget: MemoryLimit, sides: int) -> PageLimit:
    """What a page may take so that the smallest merge has room enough in the memory."""
    pages = pages_of_a_merge(sides)
    return PageLimit(
        rows=max(1, budget.rows // pages) if budget.rows is not None else None,
        bytes=max(1, budget.bytes // pages) if budget.bytes is not None else None,
    )


def too_large(nbytes: float, budget: Budget) -> BudgetExceeded:
    """The error for a row for which a step finds no room."""
    return row_too_large(nbytes, budget, "sorting and merging rows")
