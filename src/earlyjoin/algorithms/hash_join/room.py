"""Room for arriving rows: who leaves memory when it is full, and what has to be done first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from earlyjoin.algorithms.hash_join.flushing import FlushPolicy, Victim
from earlyjoin.algorithms.protocol import Step
from earlyjoin.predicates.encoding.keys import Bool
from earlyjoin.state.budget import row_too_large

if TYPE_CHECKING:
    from earlyjoin.algorithms.hash_join.operator import PartitionedHashJoin


class Room:
    """Makes room in the table of a join by its flush policy."""

    def __init__(self, join: PartitionedHashJoin, policy: FlushPolicy) -> None:
        self._join, self._table, self._policy = join, join.table, policy
        self.pages_read: int | None = None
        """Pages that had been read when rows last left."""

    def can_be_made(self) -> bool:
        """Is there anything in memory that could leave?"""
        return bool((self._table.in_memory > 0).any() or any(len(part) for side in self._table.parts for part in side))

    def protected(self) -> Bool:
        """Memory parts that the task in work needs."""
        shape = (2, self._table.partitions)
        if self._join.task is None:
            return np.zeros(shape, dtype=np.bool_)
        task = self._join.task
        flags = [[task.protects(side, partition) for partition in range(shape[1])] for side in range(2)]
        return np.array(flags, dtype=np.bool_)

    def rows_to_come(self) -> int | None:
        """Rows that are not in the table yet, nulls among them; None when a size is not known, or was wrong."""
        rows = self._join.intake.rows_in_hand
        for side, expected in enumerate(self._join.context.rows_expected or (None, None)):
            if self._join.ended[side]:
                continue
            seen = self._join.context.counters.rows_in[side]
            if expected is None or seen > expected:
                return None
            rows += expected - seen
        return rows or None

    def victims(self) -> list[Victim]:
        """Whom the flush policy chooses now."""
        statistics = self._table.statistics(
            self.protected(),
            build_side=self._join.build_side,
            ended=(self._join.ended[0], self._join.ended[1]),
            to_come=self.rows_to_come(),
        )
        return self._policy(statistics)

    def waits(self) -> bool:
        """Does the task in work need what would have to leave? Then it goes to its end first."""
        task = self._join.task
        return task is not None and any(task.protects(victim.side, victim.partition) for victim in self.victims())

    def step(self, needed_bytes: int) -> Step:
        """Flush, or work on the task that stands in the way of it."""
        if self.waits():
            return self._join.task_step()
        self.make(needed_bytes)
        return None

    def make(self, needed_bytes: int) -> None:
        """Flush once; ``needed_bytes`` is what cannot be had if there is nothing to flush."""
        victims = self.victims()
        if not victims:
            self._clear_dead(needed_bytes)
        counters, page_rows = self._join.context.counters, self._table.files[0].page_rows
        seeks, pages, rows = counters.seeks, counters.pages_written, counters.tuples_written
        self._join.flush(victims)
        # Flushes are written one behind the other, as in a log: only the last page of each is not full, and a random
        # access comes before those alone that follow upon reading (or upon the page buffers of frozen partitions).
        moved = self._join.freezes or counters.pages_read != self.pages_read
        self.pages_read = counters.pages_read
        counters.seeks = min(counters.seeks, seeks + moved)
        if page_rows is not None and not self._join.freezes:
            counters.pages_written = pages + -(-(counters.tuples_written - rows) // page_rows)

    def _clear_dead(self, needed_bytes: int) -> None:
        """The last resorts: parts whose rows are all dead, page buffers. Without them, what is needed does not fit."""
        parts = self._table.parts
        dead = [(s, p) for s in range(2) for p, part in enumerate(parts[s]) if len(part) and not part.live]
        for side, partition in dead:
            self._table.forget(side, partition)
        if not dead and not self._table.empty_buffers():
            raise row_too_large(needed_bytes, self._table.memory, "the rows of a join")
