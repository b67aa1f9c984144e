"""XJoin (RPJ section 2.1, EHJ section 2): symmetric hashing, the largest partition leaves, disk work when inputs pause.

::

    stage 1  arriving  probe and insert; memory full: the largest partition of either side goes to disk
    stage 2  reactive  the largest memory part that has something new to meet probes with the other side's runs
    stage 3  clean-up  every partition: what lies on disk meets all that it has not met

Rows carry arrival and departure stamps, memory parts the moments of their stage-2 probes: condition (i) and (ii) of the
paper. What is in memory at the end stays there: runs are striped, so a partition that finds no room is cleaned up
stripe by stripe, and others make room for one stripe, not for a partition. Where the sizes of both inputs are known and
memory is counted in rows, no more rows leave than still have to come.
"""

from __future__ import annotations

import numpy as np

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.hash_join.flushing import PartitionStatistics, Victim, largest, largest_needed
from earlyjoin.algorithms.hash_join.join_state import JoinState, Traits
from earlyjoin.algorithms.hash_join.operator import PartitionedHashJoin
from earlyjoin.algorithms.hash_join.policy import Policy
from earlyjoin.algorithms.hash_join.rules import ResidenceRule
from earlyjoin.algorithms.hash_join.tasks import MemoryDiskTask, Task
from earlyjoin.algorithms.protocol import Description, Formulas
from earlyjoin.predicates.base import Capability


class LargestAndStage2(Policy):
    """The largest partition leaves; in a silence the largest memory part with something new to meet probes."""

    traits = Traits(striped=True)

    def __init__(self, state: JoinState) -> None:
        super().__init__(state)
        assert isinstance(state.rule, ResidenceRule)
        self._history = state.rule

    def victims(self, statistics: PartitionStatistics) -> list[Victim]:
        """The largest partition; of a memory in bytes all of it, because rows that stay would have to be copied."""
        return largest(statistics) if self.table.memory.limit.rows is None else largest_needed(statistics)

    def has_task(self) -> bool:
        """Has some memory part not met all of the other side's runs?"""
        return self._next_place() is not None

    def next_task(self) -> Task | None:
        """The largest memory part with something new to meet."""
        place = self._next_place()
        return MemoryDiskTask(self.state, *place, self.finished) if place is not None else None

    def _next_place(self) -> tuple[int, int] | None:
        table = self.table
        fresh = np.maximum(table.last_insert, table.last_flush[::-1]) > self._history.last_moment
        sizes = np.where(fresh & (table.on_disk[::-1] > 0), table.in_memory, 0)
        side, partition = divmod(int(np.argmax(sizes)), table.partitions)
        return (side, partition) if sizes[side, partition] > 0 else None

    def finished(self, task: MemoryDiskTask) -> None:
        """The memory part was used at the moment at which the task began."""
        self._history.record(task.side, task.partition, task.started_at)


@registry.register
class XJoin(PartitionedHashJoin):
    """XJoin: the largest partition leaves, and a silent time joins a partition on disk with memory."""

    description = Description(
        name="xjoin",
        title="XJoin",
        paper="Urhan and Franklin 2000; RPJ section 2.1",
        needs=Capability.HASHABLE,
        spills=True,
        rows_at_once=5,
        joins_on_arrival=True,
        formulas=Formulas.REPLACING,
    )
    policy_type = LargestAndStage2
