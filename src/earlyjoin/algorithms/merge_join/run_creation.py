"""The rows of one side that will become an initial run (PMJ section 3.1.1): gathered, joined in sorted order, written.

PMJ does not wait until memory is full: section 3.6 proposes to apply it *in memory* to smaller parts. Rows before
``joined`` have met those of the other side; a join in memory takes the two parts as two sorted sequences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.merge_join.blocks import MemorySequence
from earlyjoin.algorithms.merge_join.sorted_runs import PageLimit, PageWriter, SideKeys, SortedRun
from earlyjoin.algorithms.sweep_areas import SweepWords
from earlyjoin.errors import BudgetExceeded
from earlyjoin.kernels.merging import merged_order
from earlyjoin.kernels.sorting import stable_order
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.budget import Budget
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.flag_file import FlagFile
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.side_store import MATCHED, Note, SideStore
from earlyjoin.state.snapshot import Snapshot

WORD = Note(name="word", account="sweep words", dtype=None, saved=False)
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


class Gathered(SideStore):
    """Rows of one side in memory."""

    def __init__(self, keys: SideKeys, budget: Budget, *more: Note, flags: bool) -> None:
        super().__init__(keys.schema, budget, *more, WORD, *([MATCHED] if flags else []))
        self.side = keys
        self.joined = 0
        self.runs: list[SortedRun] = []
        """Finished runs that nobody has taken yet."""
        self._sorting = budget.account("sorting")
        self._sorted = np.empty(0, dtype=np.int64)
        """The first rows in the order of their words: those that the last join sorted."""

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return super().nbytes + self._sorting.bytes

    @property
    def words(self) -> SweepWords:
        """The sweep words of all rows, as a view that is valid until the next change."""
        words = self.note(WORD.name)
        return words if words is not None else np.empty(0, dtype=np.int64)

    def insert(self, batch: pa.RecordBatch, keys: Keys | None, **notes: Any) -> int:
        """Add rows at the end; on BudgetExceeded nothing has changed."""
        assert keys is not None
        words = self.side.words(keys)
        self._sorting.reserve(_SORTING_NBYTES * len(keys))
        try:
            return super().insert(batch, keys, word=words, **notes)
        except BudgetExceeded:
            self._sorting.release(_SORTING_NBYTES * len(keys))
            raise

    def truncate(self, length: int) -> None:
        """Forget the rows from ``length`` on."""
        self._sorting.release(_SORTING_NBYTES * (len(self) - length))
        super().truncate(length)
        if len(self._sorted) > length:
            self._sorted = self._sorted[:0].copy()

    def sequences(self, labels: tuple[int, int], page_rows: int) -> list[MemorySequence]:
        """The rows that were joined before and those that were not, each in order; without rows that match nothing."""
        keys, words = self.keys, self.words
        if keys is None:
            return []
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
        others = self._order_of(len(first), stop)
        return merged_order(self.words, first, others) if len(first) else others

    def _order_of(self, start: int, stop: int) -> Int64:
        order: Int64 = start + stable_order(self.words[start:stop])
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
        super().keep(index)

    @property
    def unfinished_runs(self) -> list[SortedRun]:
        """Runs that nobody has taken yet, and what is being written."""
        return list(self.runs)

    @property
    def has_written(self) -> bool:
        """Has it written rows that are in no run handed over yet?"""
        return bool(self.runs)

    def save_all(self, snapshot: Snapshot, name: str) -> dict[str, Any]:
        """Rows, flags and runs; returns the plain values that ``load_all`` needs."""
        self.save(snapshot, name)
        runs = [run.save(snapshot) for run in self.runs]
        return {"joined": self.joined, "runs": runs}

    def load_all(self, snapshot: Snapshot, name: str, values: dict[str, Any], to: Destination) -> None:
        """The inverse of ``save_all``."""
        for batch, notes in self.saved(snapshot, name):
            self.insert(batch, self.side.key.encode(self.side.side, batch), **notes)
        self.joined = values["joined"]
        self.runs = [SortedRun.load(snapshot, run, to.directory) for run in values["runs"]]

    def delete_runs(self) -> None:
        """Remove the files of runs that nobody has taken."""
        for run in self.runs:
            run.delete()
        self.runs = []

    def clear(self) -> None:
        """Forget all rows and give the memory back."""
        super().clear()
        self._sorting.clear()
        self._sorted = self._sorted[:0].copy()
        self.joined = 0
