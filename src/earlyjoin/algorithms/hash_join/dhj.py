"""Dynamic hash join (DHJ; EHJ section 2): the build input first, as much of it in memory as fits, then the other one.

::

    R arriving   insert; memory full: the largest partition is written and frozen, its later rows go to disk
    R ended, S   R partition in memory: probe, and the row is done with      R partition frozen: the row goes to disk
    S too early  (inputs that cannot be made to wait) the row goes to disk without a probe
    clean-up     R partitions in memory with what of S came too early, then frozen ones loaded one by one

No result comes before R has ended, and what lies on disk has met nothing: there is nothing to remember.
"""

from __future__ import annotations

import numpy as np

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.hash_join.cleanup import CleanUp
from earlyjoin.algorithms.hash_join.flushing import FlushPolicy, largest
from earlyjoin.algorithms.hash_join.operator import PartitionedHashJoin
from earlyjoin.algorithms.hash_join.rules import DuplicateRule, NeverJoined
from earlyjoin.algorithms.hash_join.settings import HashSettings
from earlyjoin.algorithms.protocol import Context, Description, Formulas, Plan
from earlyjoin.predicates.base import Capability


class FrozenHashJoin(PartitionedHashJoin):
    """What DHJ and EHJ share: partitions freeze, and the clean-up takes R partitions in memory first."""

    freezes = True

    def cleanup_build_side(self, partition: int) -> int:
        """R."""
        return self.build_side

    def make_cleanup(self) -> CleanUp:
        """Pass one: R partitions in memory, which are forgotten one by one; pass two: frozen ones (EHJ section 4)."""
        frozen = self.table.frozen[self.build_side]
        return CleanUp(self, [*np.flatnonzero(~frozen).tolist(), *np.flatnonzero(frozen).tolist()])


@registry.register
class DynamicHashJoin(FrozenHashJoin):
    """See the module."""

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

    def __init__(self, plan: Plan, context: Context, settings: HashSettings | None = None) -> None:
        super().__init__(plan, context, settings)
        for partition in range(self.table.partitions):
            self.table.freeze(1 - self.build_side, partition)

    def make_rule(self) -> DuplicateRule:
        """Nothing on disk was ever joined."""
        return NeverJoined()

    def make_flush_policy(self) -> FlushPolicy:
        """The largest partition of R; S has none in memory."""
        return largest

    def probes(self, side: int) -> bool:
        """Only S, and only when all of R is there."""
        return side != self.build_side and self.ended[self.build_side]
