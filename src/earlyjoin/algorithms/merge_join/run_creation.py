"""The rows of one side that will become an initial run (PMJ section 3.1.1): gathered, joined in sorted order, written.

PMJ does not wait until memory is full: section 3.6 proposes to apply it *in memory* to smaller parts. Rows before
``joined`` have met those of the other side; a join in memory takes the two parts as two sorted sequences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.merge_join.blocks import MemorySequence
from earlyjoin.algorithms.merge_join.sorted_runs import PageLimit, PageWriter, SideKeys, SortedRun
from earlyjoin.algorithms.sweep_areas import SweepWords
from earlyjoin.errors import BudgetExceeded
from earlyjoin.kernels.merging import merged_order
from earlyjoin.kernels.sorting import stable_order
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state.budget import Budget
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.flag_file import FlagFile
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.growable import Growable
from earlyjoin.state.key_store import KeyStore
from earlyjoin.state.rows.store import RowStore, one_batch
from earlyjoin.state.snapshot import Snapshot

_SORTING_NBYTES = 24
"""Bytes a row for sorting: its place in the order, and what the sort itself works with."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the rows of one side go when they leave memory."""

    directory: SpillDirectory
    counters: Counters
    limit: PageLimit
    flags: FlagFile | None
    drop_matched: bool
    """Need rows that have matched not be written?"""

    def writer(self, side: SideKeys) -> PageWriter:
        """A new run."""
        return PageWriter(side, self.directory, self.counters, self.limit)


class Gathered:
    """Rows of one side in memory."""

    def __init__(self, keys: SideKeys, budget: Budget, *, flags: bool) -> None:
        self.side = keys
        self.rows = RowStore(keys.schema, budget.account("payload"))
        self.joined = 0
        self.runs: list[SortedRun] = []
        """Finished runs that nobody has taken yet."""
        self._keys = KeyStore(budget.account("keys"))
        self._account = budget.account("sweep words")
        self._sorting = budget.account("sorting")
        self._words: Growable | None = None
        self._matched = Growable(np.bool_, budget.account("flags")) if flags else None
        self._sorted = np.empty(0, dtype=np.int64)
        """The first rows in the order of their words: those that the last join sorted."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        words = self._words.nbytes if self._words is not None else 0
        flags = self._matched.nbytes if self._matched is not None else 0
        return self.rows.nbytes + self._keys.nbytes + words + flags + self._sorting.bytes

    @property
    def key_nbytes(self) -> float:
        """Bytes of a key, on average."""
        return self._keys.nbytes / max(1, len(self))

    @property
    def keys(self) -> Keys | None:
        """The keys of all rows, as views that are valid until the next change; None before the first."""
        return self._keys.keys()

    @property
    def words(self) -> SweepWords:
        """The sweep words of all rows, valid as long."""
        return cast(SweepWords, self._words.data) if self._words is not None else np.empty(0, dtype=np.int64)

    @property
    def matched(self) -> Bool | None:
        """A flag a row: has it matched? None when nobody asks."""
        return cast(Bool, self._matched.data) if self._matched is not None else None

    def insert(self, batch: pa.RecordBatch, keys: Keys) -> None:
        """Add rows at the end; on BudgetExceeded nothing has changed."""
        first, words = len(self), self.side.words(keys)
        if self._words is None:
            self._words = Growable(words.dtype, self._account)
        self._sorting.reserve(_SORTING_NBYTES * len(keys))
        try:
            self._words.append(words)
            if self._matched is not None:
                self._matched.extend(len(keys))[:] = False
            self._keys.append(keys)
            self.rows.append(batch)
        except BudgetExceeded:
            self._sorting.release(_SORTING_NBYTES * len(keys))
            self._forget_from(first)
            raise

    def truncate(self, length: int) -> None:
        """Forget the rows from ``length`` on."""
        self._sorting.release(_SORTING_NBYTES * (len(self) - length))
        self._forget_from(length)
        self.rows.truncate(length)
        if len(self._sorted) > length:
            self._sorted = self._sorted[:0].copy()

    def _forget_from(self, length: int) -> None:
        self._keys.truncate(length)
        for part in (self._words, self._matched):
            if part is not None:
                part.truncate(length)

    def insert_again(self, rows: pa.RecordBatch) -> None:
        """Add rows that were here before: their keys are made again."""
        if rows.num_rows:
            self.insert(rows, self.side.key.encode(self.side.side, rows))

    def all_rows(self) -> pa.RecordBatch:
        """The rows, in the order in which they came."""
        return self.rows.batch(np.arange(len(self), dtype=np.int64))

    def sequences(self, labels: tuple[int, int], page_rows: int) -> list[MemorySequence]:
        """The rows that were joined before and those that were not, each in order; without rows that match nothing."""
        keys = self._keys.keys()
        if keys is None or self._words is None:
            return []
        words = cast(SweepWords, self._words.data)
        result = []
        self._sorted = self._order(self.joined)
        for rows, label in zip((self._sorted, self._order_of(self.joined, len(self))), labels, strict=True):
            order = rows if keys.valid is None else rows[keys.valid[rows]]
            if len(order):
                result.append(
                    MemorySequence(self.side.side, label, page_rows, self.rows, keys, words, self.matched, order)
                )
        return result

    def in_order(self) -> Int64:
        """All rows by word, ties as they came; kept until rows are forgotten."""
        self._sorted = self._order(len(self))
        return self._sorted

    def _order(self, stop: int) -> Int64:
        """The first rows by word, ties as they came: a merge of those that are in order already with the others."""
        first = self._sorted if len(self._sorted) <= stop else self._sorted[:0]
        if len(first) == stop:
            return first
        words = cast(SweepWords, cast(Growable, self._words).data)
        others = self._order_of(len(first), stop)
        return merged_order(words, first, others) if len(first) else others

    def _order_of(self, start: int, stop: int) -> Int64:
        words = cast(SweepWords, cast(Growable, self._words).data)
        order: Int64 = start + stable_order(words[start:stop])
        return order

    def make_room(self, to: Destination) -> None:
        """Memory is full, and all rows in memory have been joined: some of them, here all, leave it."""
        self.leave(to)

    def leave(self, to: Destination) -> None:
        """All rows leave memory; the run goes to ``runs``."""
        writer = to.writer(self.side)
        if len(self):
            self._write(writer, self._order(len(self)), to)
        self.clear()
        self.runs.append(writer.close())

    def _write(self, writer: PageWriter, order: Int64, to: Destination) -> None:
        """Write rows that are in order; with ``drop_matched`` those that matched are left out."""
        if to.drop_matched and self.matched is not None:
            order = order[~self.matched[order]]
        most = to.limit.rows if to.limit.rows is not None else self._likely_page_rows(to.limit)
        writer.write(self.rows, self._marks(order, to), order, most)

    def _marks(self, order: Int64, to: Destination) -> Int64 | None:
        if to.flags is None or self.matched is None:
            return None
        return to.flags.append(self.matched[order]).reshape(-1, 1)

    def _likely_page_rows(self, limit: PageLimit) -> int:
        """Rows of a page if all are of average size: few pages are built in vain."""
        assert limit.bytes is not None
        return max(1, int(limit.bytes / max(1, 1.5 * self.nbytes / len(self))))

    def keep(self, index: Int64) -> None:
        """Let these rows, in ascending order, be all there are."""
        self._sorting.release(_SORTING_NBYTES * (len(self) - len(index)))
        self.rows.keep(index)
        self._keys.keep(index)
        for part in (self._words, self._matched):
            if part is not None:
                part.keep(index)

    @property
    def unfinished_runs(self) -> list[SortedRun]:
        """Runs that nobody has taken yet, and what is being written."""
        return list(self.runs)

    @property
    def has_written(self) -> bool:
        """Has it written rows that are in no run handed over yet?"""
        return bool(self.runs)

    def save(self, snapshot: Snapshot, name: str) -> dict[str, Any]:
        """Rows, flags and runs; returns the plain values that ``load`` needs. Keys are made again from the rows."""
        snapshot.tables[name] = pa.Table.from_batches([self.all_rows()])
        if self.matched is not None:
            snapshot.arrays[name] = self.matched.copy()
        runs = [run.save(snapshot, f"{name}-run-{number}") for number, run in enumerate(self.runs)]
        return {"joined": self.joined, "runs": runs}

    def load(self, snapshot: Snapshot, name: str, values: dict[str, Any], to: Destination) -> None:
        """The inverse of ``save``."""
        self.insert_again(one_batch(snapshot.tables[name]))
        if self.matched is not None:
            self.matched[:] = snapshot.arrays[name]
        self.joined = values["joined"]
        self.runs = [SortedRun.load(snapshot, run, to.directory) for run in values["runs"]]

    def delete_runs(self) -> None:
        """Remove the files of runs that nobody has taken."""
        for run in self.runs:
            run.delete()
        self.runs = []

    def clear(self) -> None:
        """Forget all rows and give the memory back."""
        self.rows.clear()
        self._keys.clear()
        self._sorting.clear()
        self._sorted = self._sorted[:0].copy()
        self.joined = 0
        if self._words is not None:
            self._words.clear()
        if self._matched is not None:
            self._matched.clear()
