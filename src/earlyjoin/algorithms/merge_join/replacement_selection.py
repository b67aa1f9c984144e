"""Run creation by replacement selection (PMJ section 4 uses it for sorting in memory): runs of about twice the memory.

::

    memory full ──▶ [early: join what has not been joined] ──▶ the smallest rows at or above the frontier leave, a
        ▲            sixteenth of the rows; the frontier moves up behind them
        └── rows come: at or above the frontier they belong to the run being written, below it to the next one
    nothing at or above the frontier: the run ends, and the next begins with all that is in memory

Rows leave in pieces, so that a piece is chosen, written and closed up by kernels; random input gives runs of 1.9 times
the memory instead of twice.

Which pairs have been joined? With runs written at once it is the pairs of one run number. Here rows of one run have met
rows of several runs of the other side. So each row carries its stay in memory, [arrival, departure), to disk: nothing
leaves before all rows in memory have been joined, hence two rows were joined in memory if and only if they stayed there
together (``joined.resided_together``). Merges ask that for every pair they find.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.merge_join.run_creation import Destination, Gathered
from earlyjoin.algorithms.merge_join.sorted_runs import PageWriter, SideKeys, SortedRun
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.budget import Budget
from earlyjoin.state.clock import LogicalClock
from earlyjoin.state.side_store import ARRIVAL
from earlyjoin.state.snapshot import Snapshot

_PART = 16
"""One row in so many leaves at a time."""


class Selected(Gathered):
    """Rows of one side in memory, of which the smallest leave first."""

    def __init__(self, keys: SideKeys, budget: Budget, ticks: LogicalClock, *, flags: bool) -> None:
        super().__init__(keys, budget, *([ARRIVAL] if keys.stamped else []), flags=flags)
        self._ticks = ticks
        self._frontier: int | float | None = None
        self._writer: PageWriter | None = None

    def insert(self, batch: pa.RecordBatch, keys: Keys | None, **notes: Any) -> int:
        """Add rows at the end, which come now; on BudgetExceeded nothing has changed."""
        if self.side.stamped and not notes:
            notes = {ARRIVAL.name: self._ticks.tick()}
            self._notes[ARRIVAL.name].ensure(len(self) + batch.num_rows)  # before room for sorting is asked for
        return super().insert(batch, keys, **notes)

    def make_room(self, to: Destination) -> None:
        """The smallest rows of the present run leave memory."""
        if len(self):
            self._send(-(-len(self) // _PART), to)

    def leave(self, to: Destination) -> None:
        """All rows leave memory: the rest of the present run, and then the next one."""
        while len(self):
            self._send(len(self), to)
        self.clear()
        self._end_run()

    def _send(self, most: int, to: Destination) -> None:
        order = self._order(len(self))
        words = self.words
        first = 0 if self._frontier is None else int(np.searchsorted(words[order], self._frontier))
        if first == len(order):
            self._end_run()
            first = 0
        chosen = order[first : first + most]
        if self._writer is None:
            self._writer = to.writer(self.side)
        self._frontier = words[chosen[-1]].item()
        self._write(self._writer, chosen, to)
        self._forget(chosen, order)

    def _marks(self, order: Int64, to: Destination) -> Int64 | None:
        numbers = super()._marks(order, to)
        if not self.side.stamped:
            return numbers
        departure = np.full(len(order), self._ticks.tick(), dtype=np.int64)
        stay = np.column_stack([self.arrivals[order], departure])
        return stay if numbers is None else np.hstack([numbers, stay])

    def _forget(self, gone: Int64, order: Int64) -> None:
        """Close up the rows that stay; all of them have been joined, and their order is known."""
        stays = np.ones(len(self), dtype=np.bool_)
        stays[gone] = False
        index = np.flatnonzero(stays)
        places = np.cumsum(stays) - 1
        self.keep(index)
        self._sorted = places[order[stays[order]]]
        self.joined = min(self.joined, int(np.count_nonzero(stays[: self.joined])))

    def _end_run(self) -> None:
        if self._writer is not None:
            self.runs.append(self._writer.close())
        self._writer, self._frontier = None, None

    @property
    def unfinished_runs(self) -> list[SortedRun]:
        """Runs that nobody has taken yet, and what is being written."""
        return [*self.runs, *([self._writer.run] if self._writer is not None else [])]

    @property
    def has_written(self) -> bool:
        """Has it written rows that are in no run handed over yet?"""
        return super().has_written or self._writer is not None

    def save_all(self, snapshot: Snapshot, name: str) -> dict[str, Any]:
        """Also the run being written."""
        values = super().save_all(snapshot, name) | {"frontier": self._frontier, "writing": None}
        if self._writer is not None:
            values["writing"] = self._writer.close().save(snapshot)
        return values

    def load_all(self, snapshot: Snapshot, name: str, values: dict[str, Any], to: Destination) -> None:
        """The inverse of ``save_all``."""
        super().load_all(snapshot, name, values, to)
        self._frontier = values["frontier"]
        if values["writing"] is not None:
            self._writer = to.writer(self.side)
            self._writer.run = SortedRun.load(snapshot, values["writing"], to.directory)

    def delete_runs(self) -> None:
        """Remove all files that nobody has taken."""
        self._end_run()
        super().delete_runs()
