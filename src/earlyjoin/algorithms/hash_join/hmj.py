"""Hash-merge join (HMJ, described in RPJ section 2.2, EHJ section 2, DINER section 2).

::

    hashing   arriving  probe and insert; memory full: pairs of partitions leave together, sorted
    merging   reactive  partition after partition: runs are merged F at a time (PSMJ), and joined on the way
              clean-up  everything leaves memory; each partition is merged with the whole memory

The policy that chooses the pairs (all, smallest, largest, adaptive) is an option. Rows that left together have met:
their runs match. There is no memory-disk work.
"""

from __future__ import annotations

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.hash_join.flush_policies import HASH_MERGE_POLICIES, concurrent
from earlyjoin.algorithms.hash_join.flushing import PartitionStatistics, Victim
from earlyjoin.algorithms.hash_join.join_state import JoinState
from earlyjoin.algorithms.hash_join.merging.settings import MergeSettings
from earlyjoin.algorithms.hash_join.merging.sorted_runs_policy import SortedRuns
from earlyjoin.algorithms.hash_join.operator import PartitionedHashJoin
from earlyjoin.algorithms.hash_join.tasks import Task
from earlyjoin.algorithms.protocol import Description, Formulas
from earlyjoin.predicates.base import Capability
from earlyjoin.state.counters import Counters


class PairsAndMerges(SortedRuns):
    """Pairs of partitions leave; in a silence partition after partition is merged."""

    def __init__(self, state: JoinState) -> None:
        super().__init__(state)
        self._next = 0

    def victims(self, statistics: PartitionStatistics) -> list[Victim]:
        """The chosen policy, with the partner of every victim."""
        chosen = HASH_MERGE_POLICIES[self.settings.flush](statistics.able)
        return [Victim(victim.side, victim.partition) for victim in concurrent(statistics.able, chosen)]

    def flush(self, victims: list[Victim], written: Counters) -> None:
        """Pairs of partitions leave together."""
        for partition in dict.fromkeys(victim.partition for victim in victims):
            self.flush_pair(partition, written)

    def has_task(self) -> bool:
        """Has some partition several runs?"""
        return self.can_merge_aside and any(len(runs) > 1 for side in self.table.runs for runs in side)

    def next_task(self) -> Task | None:
        """The next partition that has several runs, in turn."""
        count = self.table.partitions if self.can_merge_aside else 0
        for partition in (*range(self._next, count), *range(self._next)):
            if any(len(self.table.runs[side][partition]) > 1 for side in (0, 1)):
                self._next = (partition + 1) % count
                return self.merge_task(partition)
        return None

    def save(self) -> dict[str, int]:
        """Which partition is next."""
        return {"next": self._next}

    def load(self, values: dict[str, int]) -> None:
        """Take it over."""
        self._next = values["next"]


@registry.register
class HashMergeJoin(PartitionedHashJoin):
    """Hash-merge join: pairs of partitions leave sorted, and their runs are merged in silent time."""

    description = Description(
        name="hmj",
        title="hash-merge join",
        paper="Mokbel, Lu and Aref 2004; RPJ section 2.2",
        needs=Capability.HASHABLE,
        spills=True,
        rows_at_once=5,
        joins_on_arrival=True,
        formulas=Formulas.EMPTYING,
    )
    options_type = MergeSettings
    policy_type = PairsAndMerges
