"""Dynamic hash join (DHJ; EHJ section 2): the build input first, as much of it in memory as fits, then the other one.

::

    R arriving   insert; memory full: the largest partition is written and frozen, its later rows go to disk
    R ended, S   R partition in memory: probe, and the row is done with      R partition frozen: the row goes to disk
    S too early  (inputs that cannot be made to wait) the row goes to disk without a probe
    clean-up     R partitions in memory with what of S came too early, then frozen ones loaded one by one

No result comes before R has ended, and what lies on disk has met nothing: there is nothing to remember.
"""

from __future__ import annotations

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.hash_join.flushing import PartitionStatistics, Victim, largest
from earlyjoin.algorithms.hash_join.join_state import Traits
from earlyjoin.algorithms.hash_join.operator import PartitionedHashJoin
from earlyjoin.algorithms.hash_join.policy import Policy
from earlyjoin.algorithms.hash_join.rules import DuplicateRule, NeverJoined
from earlyjoin.algorithms.hash_join.table.table import PartitionedTable
from earlyjoin.algorithms.protocol import Description, Formulas
from earlyjoin.predicates.base import Capability


class LargestOfR(Policy):
    """The largest partition of R leaves; S has none in memory. Nothing on disk was ever joined."""

    traits = Traits(freezes=True, build_first=True)

    @staticmethod
    def rule(table: PartitionedTable, build_side: int) -> DuplicateRule:
        """What lies on disk has met nothing."""
        return NeverJoined()

    def victims(self, statistics: PartitionStatistics) -> list[Victim]:
        """The largest partition of R."""
        return largest(statistics)


@registry.register
class DynamicHashJoin(PartitionedHashJoin):
    """Dynamic hash join: whole partitions freeze on disk and take no rows any longer."""

    description = Description(
        name="dhj",
        title="dynamic hash join",
        paper="DeWitt and Naughton 1995; EHJ section 2",
        needs=Capability.HASHABLE,
        spills=True,
        rows_at_once=5,
        reading="ehj*",
        formulas=Formulas.FREEZING,
    )
    policy_type = LargestOfR
