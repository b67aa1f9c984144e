"""Room for arriving rows: who leaves memory when it is full, what has to be done first, what that counts as."""

from __future__ import annotations

import numpy as np

from earlyjoin.algorithms.hash_join.flushing import Victim
from earlyjoin.algorithms.hash_join.join_state import JoinState
from earlyjoin.algorithms.hash_join.policy import Policy
from earlyjoin.algorithms.protocol import Step
from earlyjoin.predicates.encoding.keys import Bool
from earlyjoin.state.budget import row_too_large
from earlyjoin.state.counters import Counters


class Eviction:
    """Makes room in the table of a join by its flush policy."""

    def __init__(self, state: JoinState, policy: Policy) -> None:
        self._state, self._table, self._policy = state, state.table, policy
        self.pages_read: int | None = None
        """Pages that had been read when rows last left."""

    def is_possible(self) -> bool:
        """Is there anything in memory that could leave?"""
        return bool((self._table.in_memory > 0).any() or any(len(part) for side in self._table.parts for part in side))

    def protected(self) -> Bool:
        """Memory parts that the task in work needs."""
        task, partitions = self._state.task, range(self._table.partitions)
        flags = [[task is not None and task.protects(side, partition) for partition in partitions] for side in range(2)]
        return np.array(flags, dtype=np.bool_)

    def rows_to_come(self) -> int | None:
        """Rows that are not in the table yet, nulls among them; None when a size is not known, or was wrong."""
        rows = self._state.arriving.rows_left if self._state.arriving is not None else 0
        for side, expected in enumerate(self._state.context.rows_expected or (None, None)):
            if self._state.ended[side]:
                continue
            seen = self._state.context.counters.rows_in[side]
            if expected is None or seen > expected:
                return None
            rows += expected - seen
        return rows or None

    def victims(self) -> list[Victim]:
        """Whom the flush policy chooses now."""
        ended = (self._state.ended[0], self._state.ended[1])
        statistics = self._table.statistics(
            self.protected(), build_side=self._state.build_side, ended=ended, to_come=self.rows_to_come()
        )
        return self._policy.victims(statistics)

    def waits(self) -> bool:
        """Does the task in work need what would have to leave? Then it goes to its end first."""
        task = self._state.task
        return task is not None and any(task.protects(victim.side, victim.partition) for victim in self.victims())

    def step(self, needed_bytes: int) -> Step:
        """Flush, or work on the task that stands in the way of it."""
        if self.waits():
            return self._state.task_step()
        self.make(needed_bytes)
        return None

    def make(self, needed_bytes: int) -> None:
        """Flush once; ``needed_bytes`` is what cannot be had if there is nothing to flush."""
        victims = self.victims()
        if not victims:
            self._clear_dead(needed_bytes)
        written = Counters()
        self._policy.flush(victims, written)
        self._count(written)

    def _count(self, written: Counters) -> None:
        """What leaves together is written in one go, as in a log: only its last page is not full.

        A random access comes before those alone that follow upon reading (or upon page buffers of frozen partitions).
        """
        counters, page_rows = self._state.context.counters, self._table.files[0].page_rows
        freezes = self._policy.traits.freezes
        moved = freezes or counters.pages_read != self.pages_read
        self.pages_read = counters.pages_read
        counters.seeks += min(written.seeks, moved)
        pages = written.pages_written
        if page_rows is not None and not freezes:
            pages = -(-written.tuples_written // page_rows)
        counters.pages_written += pages
        counters.tuples_written += written.tuples_written
        counters.bytes_written += written.bytes_written

    def _clear_dead(self, needed_bytes: int) -> None:
        """The last resorts: parts whose rows are all dead, page buffers. Without them, what is needed does not fit."""
        parts = self._table.parts
        dead = [(s, p) for s in range(2) for p, part in enumerate(parts[s]) if len(part) and not part.live]
        for side, partition in dead:
            with self._state.guard(side, partition):
                self._table.forget(side, partition)
        if not dead and not self._table.empty_buffers():
            raise row_too_large(needed_bytes, self._table.memory, "the rows of a join")
