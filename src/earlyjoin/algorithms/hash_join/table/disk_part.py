"""The disk part of one partition of one side: runs of rows that left memory, with their stamps.

A page of a run holds the payload, the arrival and departure stamp of each row and, for sides whose flags are kept, the
row's number in the side's file of flags. Rows that never were in memory (their partition is frozen) depart one tick
after they arrived: they met what was in memory when they came, and nothing later.

A run may be *striped*: its rows lie in the order of further bits of their hash, and no page has rows of two stripes. So
the clean-up can take a partition that does not fit stripe by stripe.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.algorithms.hash_join.table.stored_form import StoredKeys
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state.budget import Budget
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.flag_file import FlagFile
from earlyjoin.state.disk.pages import PageLayout, PageSlot
from earlyjoin.state.disk.runs import Run, RunWriter
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.rows.sizes import array_nbytes, batch_nbytes
from earlyjoin.state.rows.store import BatchRows
from earlyjoin.state.snapshot import Snapshot

Words = Int64 | npt.NDArray[np.float64]
Stripes = tuple[int, int]
"""The first stripe, and the one behind the last."""


@dataclass(slots=True)
class DiskRun:
    """Rows that were written together."""

    run: Run
    label: int
    """Number of the run; runs that were flushed together may share one."""
    sizes: tuple[int, ...]
    """Bytes that each page takes in memory, keys included."""
    first_words: tuple[int | float, ...] = ()
    """For a sorted run: the smallest sort word of each page."""
    last_probe: int = 0
    """Moment at which the run last probed the other side's memory part (EHJ section 4.5)."""
    stripe_pages: tuple[int, ...] = ()
    """For a striped run: the first page of each stripe, and the number of pages."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.run.rows

    def pages_of(self, stripes: Stripes | None) -> tuple[int, int]:
        """The first page of some stripes, and the page behind their last; all pages of a run that is not striped."""
        if stripes is None or not self.stripe_pages:
            return 0, self.run.pages
        return self.stripe_pages[stripes[0]], self.stripe_pages[stripes[1]]

    def rows_of(self, stripes: Stripes) -> int:
        """Rows of some stripes."""
        first, stop = self.pages_of(stripes)
        starts = (*self.run.starts, self.run.rows)
        return starts[stop] - starts[first]

    def nbytes_of(self, stripes: Stripes) -> int:
        """Bytes that some stripes take in memory, keys included."""
        first, stop = self.pages_of(stripes)
        return sum(self.sizes[first:stop])

    def group(self, pages: Budget, first: int, stripes: Stripes | None = None) -> int:
        """The page behind those to read at once from ``first`` on: as many as fit half of the memory for reading."""
        most_rows = pages.limit.rows // 2 if pages.limit.rows is not None else self.rows
        most_bytes = pages.limit.bytes // 2 if pages.limit.bytes is not None else sum(self.sizes)
        last, rows, nbytes = self.pages_of(stripes)[1], 0, 0
        starts = (*self.run.starts, self.run.rows)
        for page in range(first, last):
            rows, nbytes = rows + starts[page + 1] - starts[page], nbytes + self.sizes[page]
            if page > first and (rows > most_rows or nbytes > most_bytes):
                return page
        return last

    def save(self, snapshot: Snapshot) -> dict[str, Any]:
        """Put it into a snapshot; returns the plain values that ``load`` needs."""
        more = {name: getattr(self, name) for name in _SAVED}
        return {"run": self.run.save(snapshot)} | more

    @classmethod
    def load(cls, snapshot: Snapshot, values: dict[str, Any], directory: SpillDirectory) -> DiskRun:
        """Take it out of a snapshot, which can be restored again."""
        known: dict[str, Any] = {name: tuple(v) if isinstance(v := values[name], list) else v for name in _SAVED}
        return cls(Run.load(snapshot, values["run"], directory), **known)


_SAVED = ("label", "sizes", "first_words", "last_probe", "stripe_pages")


@dataclass(slots=True)
class DiskPage:
    """A page of a run in memory, with its keys made again."""

    rows: BatchRows
    keys: Keys
    arrivals: Int64
    departures: Int64
    label: int
    numbers: Int64 | None
    matched: Bool | None
    """Copies of the flags; ``SideFiles.mark`` keeps what was set."""
    nbytes: int

    def __len__(self) -> int:
        return len(self.arrivals)


class SideFiles:
    """How rows of one side lie on disk: schema of the pages, flags, counting of pages."""

    def __init__(
        self,
        side: int,
        schema: pa.Schema,
        key: StoredKeys,
        directory: SpillDirectory,
        counters: Counters,
        pages: Budget,
        *,
        page_rows: int | None,
        flags: bool,
        page_part: int = 2,
    ) -> None:
        self.side, self.schema, self.key = side, schema, key
        self.directory, self.counters, self.pages = directory, counters, pages
        self.page_rows = page_rows
        self.page_part = page_part
        """A page takes at most one in so many parts of the memory for reading."""
        self.flags = FlagFile(directory) if flags else None
        self.layout = PageLayout(schema, ["arrival", "departure", *(["row"] if flags else [])])
        self._flat = all(_is_flat(field.type) for field in schema)
        """Does Arrow's own size of a page tell the truth?"""
        self._key_nbytes = (16 + 8) * len(key.fields) + 24
        self._key_heaps = [
            schema.get_field_index(field.name) for field in key.fields if not pa.types.is_primitive(field.type)
        ]

    def page(
        self,
        batch: pa.RecordBatch,
        arrivals: Int64,
        departures: Int64,
        matched: Bool | None,
        numbers: Int64 | None = None,
    ) -> pa.RecordBatch:
        """What is written for some rows; their flags go into the file of flags, unless they have numbers there."""
        marks = [arrivals, departures]
        if self.flags is not None:
            if numbers is None:
                numbers = self.flags.append(np.zeros(len(arrivals), np.bool_) if matched is None else matched)
            marks.append(numbers)
        return self.layout.page(batch, marks)

    def counting(self, counters: Counters) -> SideFiles:
        """The same files for a reader that counts by itself, in a thread."""
        other = copy(self)
        other.counters = counters
        return other

    def footprint(self, page: pa.RecordBatch) -> int:
        """Bytes, at most, that a page takes in memory once it is read and has its keys and flags."""
        rows: int = page.num_rows
        if self._flat:
            heaps = sum(page.column(column).nbytes for column in self._key_heaps)
            return int(page.nbytes + heaps) + self._key_nbytes * rows
        heaps = sum(array_nbytes(page.column(column)) for column in self._key_heaps)
        return int(batch_nbytes(page) + heaps) + self._key_nbytes * rows

    def read(self, page: pa.RecordBatch, label: int) -> DiskPage:
        """Give a page its keys again."""
        payload = self.layout.rows_of(page)
        keys = self.key.encode(payload)
        arrivals, departures, *rest = self.layout.marks_of(page)
        numbers = rest[0] if rest else None
        matched = self.flags.read(numbers) if self.flags is not None and numbers is not None else None
        nbytes = batch_nbytes(page) + keys.nbytes + (matched.nbytes if matched is not None else 0)
        return DiskPage(BatchRows(payload), keys, arrivals, departures, label, numbers, matched, nbytes)

    def mark(self, page: DiskPage) -> None:
        """Keep the flags of a page."""
        if self.flags is not None and page.matched is not None and page.numbers is not None:
            self.flags.mark(page.numbers[page.matched])


def _is_flat(type_: pa.DataType) -> bool:
    """Is it a type without views, dictionaries and nested values?"""
    is_ = pa.types
    return bool(
        is_.is_primitive(type_) or is_.is_decimal(type_) or is_.is_large_string(type_) or is_.is_large_binary(type_)
    )


class PartWriter:
    """Writes one run of a partition in pages that fit the memory for reading; more may be appended until it closes."""

    def __init__(
        self,
        files: SideFiles,
        label: int,
        page_bytes: int | None = None,
        *,
        buffered: bool = False,
        stripe_ends: Int64 | None = None,
    ) -> None:
        self._files = files
        self._stripe_ends = stripe_ends
        """For a striped run: the row of the run behind the last of each stripe."""
        self._buffered = buffered and files.page_rows is not None
        """Does every page that fills up count as a random access, however many rows are written at once?"""
        self._label = label
        self._page_bytes = (files.pages.limit.bytes or 0) // files.page_part
        if page_bytes is not None:
            self._page_bytes = min(self._page_bytes, page_bytes)
        self._physical = Counters()
        self._writer = RunWriter(files.directory.new_path(".pages"), files.layout.schema, self._physical)
        self._sizes: list[int] = []
        self._first_words: list[int | float] = []
        self._counted = 0
        self.rows = 0

    def write(
        self,
        batch: pa.RecordBatch,
        arrivals: Int64,
        departures: Int64,
        matched: Bool | None,
        *,
        words: Words | None = None,
        numbers: Int64 | None = None,
    ) -> None:
        """Append rows, with their sort words and their numbers in the file of flags if they have any."""
        page = self._files.page(batch, arrivals, departures, matched, numbers)
        limit, start, part = self._files.pages.limit, 0, self._files.page_part
        most = page.num_rows if limit.rows is None else max(1, limit.rows // part)
        while start < page.num_rows:
            piece = page.slice(start, min(most, self._end_of_page(start, page.num_rows) - start))
            size = self._files.footprint(piece)
            if limit.bytes is not None and size > self._page_bytes and piece.num_rows > 1:
                most = max(1, min(piece.num_rows // 2, self._page_bytes * piece.num_rows // size))
                continue
            self._writer.write(piece)
            self._sizes.append(size)
            if words is not None:
                self._first_words.append(words[start].item())
            start += piece.num_rows
        self.rows += page.num_rows
        self._files.counters.seeks += 0 if self._buffered else 1  # other files may have been written in between
        self._count(closing=False)

    def _end_of_page(self, start: int, stop: int) -> int:
        """How far rows from ``start`` on may share a page: to ``stop``, or to the end of their stripe."""
        if self._stripe_ends is None:
            return stop
        stripe = np.searchsorted(self._stripe_ends, self.rows + start, side="right")
        return min(stop, int(self._stripe_ends[stripe]) - self.rows)

    def _count(self, *, closing: bool) -> None:
        """Pages as the paper counts them: full ones as they fill up, the last one when the run is closed."""
        counters, page_rows = self._files.counters, self._files.page_rows
        pages = self._physical.pages_written
        if page_rows is not None:
            pages = -(-self.rows // page_rows) if closing else self.rows // page_rows
        counters.pages_written += pages - self._counted
        counters.seeks += pages - self._counted if self._buffered else 0
        self._counted = pages
        counters.tuples_written += self._physical.tuples_written
        counters.bytes_written += self._physical.bytes_written
        self._physical.tuples_written = self._physical.bytes_written = 0

    def close(self) -> DiskRun:
        """Finish the run."""
        run = self._writer.close()
        self._count(closing=True)
        disk = DiskRun(run, self._label, tuple(self._sizes), tuple(self._first_words))
        if self._stripe_ends is not None:
            disk.stripe_pages = (0, *np.searchsorted(run.starts, self._stripe_ends).tolist())
        return disk


class PageReader(PageSlot[DiskPage]):
    """Reads pages of runs of one side, a group of pages in memory at a time."""

    def __init__(self, files: SideFiles) -> None:
        self._files = files
        self._physical = Counters()
        super().__init__(files.pages, self._physical)
        self._stripes: Stripes | None = None
        self.next_page = 0
        """The page behind those that were read last."""

    def read(self, disk: DiskRun, first: int, stripes: Stripes | None = None) -> DiskPage | None:
        """The group of pages (of some stripes) from ``first`` on as one page, or None behind the last page.

        It stays until another is read; the next one begins at ``next_page``. How many pages a group has depends on the
        memory that there is when it is read, so places are told by pages.
        """
        if self._reader is not None and (self._reader.run is not disk.run or self._stripes != stripes):
            self.drop()
        begin, end = disk.pages_of(stripes)
        first = max(first, begin)
        if first >= end:
            self._let_go()
            return None
        if self._reader is None:
            self._stripes = stripes
            self._files.counters.seeks += 1
        if self._page is None or not self.holds(disk.run, first):
            stop = disk.group(self._files.pages, first, stripes)
            self.hold(disk.run, first, stop, lambda page: self._files.read(page, disk.label))
            self._count(disk.run, first, stop, new=first == begin)
            self.next_page = stop
        return self._page

    def _count(self, run: Run, first: int, stop: int, *, new: bool = False) -> None:
        """Pages as the paper counts them: one that two groups share counts once, unless other pages came in between."""
        counters, page_rows = self._files.counters, self._files.page_rows
        if page_rows is None:
            counters.pages_read += stop - first
        else:
            end = run.starts[stop] if stop < run.pages else run.rows
            start = run.starts[first]
            counters.pages_read += -(-end // page_rows) - (start // page_rows if new else -(-start // page_rows))
        counters.tuples_read += self._physical.tuples_read
        counters.bytes_read += self._physical.bytes_read
        self._physical.tuples_read = self._physical.bytes_read = 0
