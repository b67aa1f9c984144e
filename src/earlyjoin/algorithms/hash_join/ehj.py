"""Early hash join (EHJ sections 4.1 to 4.5): early results like XJoin's, total cost like dynamic hash join's.

::

    in memory  probe and insert on both sides
      │ memory full
    flushing   biased: partitions of S leave first, the largest first, then the smallest of R; what left is frozen
      │          rows of S that need not be kept: matched ones of a 1:N join; R ended and its partition not frozen
      │          inputs slow: the background process probes an R partition in memory with S's file
    clean-up   pass one: R partitions in memory; pass two: frozen ones, loaded one by one

One arrival stamp a row tells what was joined, because S freezes before R in every partition. When R has to freeze a
partition of which S has no row in memory, S freezes it first: an empty partition costs nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.hash_join.background import BackgroundProbe
from earlyjoin.algorithms.hash_join.flushing import PartitionStatistics, Victim, biased, incremental_left
from earlyjoin.algorithms.hash_join.join_state import JoinState, Traits
from earlyjoin.algorithms.hash_join.operator import PartitionedHashJoin
from earlyjoin.algorithms.hash_join.policy import Policy
from earlyjoin.algorithms.hash_join.rules import DuplicateRule, EarlyHashRule
from earlyjoin.algorithms.hash_join.table.table import PartitionedTable
from earlyjoin.algorithms.hash_join.tasks import MemoryDiskTask, Task
from earlyjoin.algorithms.protocol import Description, Formulas
from earlyjoin.predicates.base import Capability
from earlyjoin.state.clock import LogicalClock
from earlyjoin.state.counters import Counters


class BiasedAndBackground(Policy):
    """S leaves before R, for good; in a silence an R partition in memory is probed with S's file."""

    traits = Traits(freezes=True)

    def __init__(self, state: JoinState) -> None:
        super().__init__(state)
        self._build_ended_at: int = LogicalClock.NEVER
        self._probed_at = np.zeros(self.table.partitions, dtype=np.int64)
        """When each partition was last probed in the background."""

    @staticmethod
    def rule(table: PartitionedTable, build_side: int) -> DuplicateRule:
        """One stamp."""
        return EarlyHashRule(table, build_side)

    def victims(self, statistics: PartitionStatistics) -> list[Victim]:
        """Biased towards keeping R."""
        return biased(statistics)

    def flush(self, victims: list[Victim], written: Counters) -> None:
        """Freeze; of S before R in every partition."""
        for victim in victims:
            s = self.state.probe_side
            if victim.side != s and not self.table.frozen[s, victim.partition]:
                self.table.freeze(s, victim.partition, written)
        super().flush(victims, written)

    def input_ended(self, side: int) -> None:
        """Remember when R ended: what probes later has met all of R that is in memory."""
        if side == self.state.build_side:
            self._build_ended_at = self.state.context.ticks.tick()

    # The background process

    def has_task(self) -> bool:
        """Is there an R partition in memory that can meet something new?"""
        r, s = self.state.build_side, self.state.probe_side
        table = self.table
        fresh = table.last_insert[r] > np.maximum(self._probed_at, table.frozen_at[s])
        return bool((fresh & (table.in_memory[r] > 0) & (table.on_disk[s] > 0)).any())

    def next_task(self) -> Task | None:
        """The partition from which most is expected; the file being written is closed, and another begun."""
        partition = self._next_partition()
        if partition is None:
            return None
        self.table.close_runs(self.state.probe_side, partition)
        start = BackgroundProbe.start if self.state.context.concurrent else MemoryDiskTask
        return start(self.state, self.state.build_side, partition, self.finished)

    def _next_partition(self) -> int | None:
        """The partition with most pairs that have not met, by the sizes and the last probe (EHJ section 4.5)."""
        pairs = [self._new_pairs_expected(partition) for partition in range(self.table.partitions)]
        best = int(np.argmax(pairs))
        return best if pairs[best] > 0 else None

    def _new_pairs_expected(self, partition: int) -> int:
        r, s = self.state.build_side, self.state.probe_side
        arrivals = self.table.parts[r][partition].arrivals
        if not len(arrivals) or not self.table.on_disk[s, partition]:
            return 0
        frozen_at = int(self.table.frozen_at[s, partition])
        pairs, rows = 0, int(self.table.on_disk[s, partition])
        for run in self.table.runs[s][partition]:
            since = max(run.last_probe, frozen_at)
            pairs += run.rows * (len(arrivals) - int(np.searchsorted(arrivals, since)))
            rows -= run.rows
        return pairs + rows * (len(arrivals) - int(np.searchsorted(arrivals, frozen_at)))

    def finished(self, task: MemoryDiskTask) -> None:
        """Stamp the files that have probed; if all of R was there, they are not needed any more."""
        for run in task.runs:
            run.last_probe = task.started_at
        self._probed_at[task.partition] = task.started_at
        r, s, partition = self.state.build_side, self.state.probe_side, task.partition
        through = task.started_at > self._build_ended_at and not self.table.frozen[r, partition]
        if through and not self.state.plan.how.gives_unmatched(s):
            self.table.forget_disk(s, partition)

    def save(self) -> dict[str, Any]:
        """When R ended, and when partitions were probed."""
        return {"build_ended_at": int(self._build_ended_at), "probed_at": self._probed_at.tolist()}

    def load(self, values: dict[str, Any]) -> None:
        """When R ended, and when partitions were probed."""
        self._build_ended_at = values["build_ended_at"]
        self._probed_at = np.asarray(values["probed_at"], dtype=np.int64)


class IncrementalLeft(BiasedAndBackground):
    """The same, with partitions of S leaving one after the other, then those of R."""

    def victims(self, statistics: PartitionStatistics) -> list[Victim]:
        """DPHJ's order."""
        return incremental_left(statistics)


@registry.register
class EarlyHashJoin(PartitionedHashJoin):
    """Early hash join: reads and flushes with a bias for the smaller input, and joins on disk in the background."""

    description = Description(
        name="ehj",
        title="early hash join",
        paper="Lawrence 2005 (EHJ)",
        needs=Capability.HASHABLE,
        spills=True,
        rows_at_once=5,
        joins_on_arrival=True,
        reading="ehj1",
        formulas=Formulas.FREEZING,
        remark="it gives rows at once and keeps whole partitions of the smaller input in memory",
    )
    policy_type = BiasedAndBackground


@registry.register
class DoublePipelinedHashJoin(PartitionedHashJoin):
    """DPHJ with incremental left flush: EHJ that, once memory is full, reads all of R before any more of S."""

    description = Description(
        name="dphj",
        title="double pipelined hash join, incremental left flush",
        paper="Ives et al. 1999; EHJ section 2",
        needs=Capability.HASHABLE,
        spills=True,
        rows_at_once=5,
        joins_on_arrival=True,
        reading="dphj",
        formulas=Formulas.FREEZING,
    )
    policy_type = IncrementalLeft
