"""What an algorithm on the partitioned table decides: who leaves memory and how, and what is done in a silence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from earlyjoin.algorithms.hash_join.cleanup import CleanUp
from earlyjoin.algorithms.hash_join.flushing import PartitionStatistics, Victim
from earlyjoin.algorithms.hash_join.join_state import JoinState, Traits
from earlyjoin.algorithms.hash_join.rules import DuplicateRule, ResidenceRule
from earlyjoin.algorithms.hash_join.table.table import PartitionedTable
from earlyjoin.algorithms.hash_join.tasks import FinalWork, MemoryDiskTask, Task
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.counters import Counters


class Policy(ABC):
    """Decisions, and what has to be remembered for them. Without more, nothing is done while the inputs are silent."""

    traits: ClassVar[Traits] = Traits()

    def __init__(self, state: JoinState) -> None:
        self.state, self.table = state, state.table

    @staticmethod
    def rule(table: PartitionedTable, build_side: int) -> DuplicateRule:
        """The exactly-once rule for pairs that are found on disk."""
        return ResidenceRule(table.partitions)

    # Flushes

    @abstractmethod
    def victims(self, statistics: PartitionStatistics) -> list[Victim]:
        """Who leaves when memory is full: at least one, if any partition has rows in memory."""

    def flush(self, victims: list[Victim], written: Counters) -> None:
        """Make victims leave memory, and count what is written for that."""
        for victim in victims:
            if self.traits.freezes:
                self.table.freeze(victim.side, victim.partition, written)
            else:
                self.table.flush(victim.side, victim.partition, rows=victim.rows, counters=written)

    # What happens

    def arrived(self, side: int, counts: Int64) -> None:  # noqa: B027 - most keep no statistics
        """So many rows of each partition have just arrived."""

    def input_ended(self, side: int) -> None:  # noqa: B027 - the state knows it
        """No more rows of this side."""

    def finished(self, task: MemoryDiskTask) -> None:  # noqa: B027 - not all have such tasks
        """A memory-disk task is through: remember it for the duplicate rule."""

    # Work on disk

    def has_task(self) -> bool:
        """Would ``next_task`` give one?"""
        return False

    def next_task(self) -> Task | None:
        """What to do now that the inputs are silent; None for nothing."""
        return None

    def cleanup(self) -> FinalWork:
        """The work after the last row: where rows were replaced, the least to load first, as it needs room.

        Where partitions freeze: those of R in memory, which are forgotten one by one, then frozen ones (EHJ section 4).
        """
        state, table = self.state, self.table
        if self.traits.freezes:
            frozen = table.frozen[state.build_side]
            return CleanUp(state, [*np.flatnonzero(~frozen).tolist(), *np.flatnonzero(frozen).tolist()])
        return CleanUp(state, sorted(range(table.partitions), key=lambda p: table.on_disk[state.loaded_side(p), p]))

    # State

    def load_task(self, values: dict[str, Any]) -> Task:
        """A task from what its ``save`` gave."""
        resumed = {name: values[name] for name in ("started_at", "labels", "at", "probe")}
        return MemoryDiskTask(self.state, values["side"], values["partition"], self.finished, **resumed)

    def save(self) -> dict[str, Any]:
        """Plain values for a snapshot."""
        return {}

    def load(self, values: dict[str, Any]) -> None:  # noqa: B027 - most have nothing to remember
        """Take over what ``save`` gave."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Give memory back. Idempotent."""
