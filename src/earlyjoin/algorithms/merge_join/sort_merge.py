"""Sort-merge joins that PMJ is compared with (PMJ section 4): they give nothing before everything is sorted, or almost.

Runs, merges and counters are those of :mod:`earlyjoin.algorithms.merge_join.operator`, so that page I/Os can be
compared.
"""

from __future__ import annotations

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.merge_join.operator import SortJoin
from earlyjoin.algorithms.protocol import Description
from earlyjoin.predicates.base import Capability


@registry.register
class SortMergeJoin(SortJoin):
    """Strict: one sorted run of each side is written before the join reads both."""

    description = Description(
        name="smj",
        title="strict sort-merge join",
        paper="PMJ section 4, after Blasgen and Eswaran",
        needs=Capability.SWEEPABLE,
        spills=True,
        rows_at_once=2.25,
        gives_memory_back=True,
        is_yardstick=True,
    )
    early = False
    strict = True


@registry.register
class SemiStrictSortMergeJoin(SortJoin):
    """Semi-strict: the last merge of both sides feeds the join, nothing is written for it."""

    description = Description(
        name="smj-semi",
        title="semi-strict sort-merge join",
        paper="PMJ section 4, after Negri and Pelagatti",
        needs=Capability.SWEEPABLE,
        spills=True,
        rows_at_once=2.25,
        gives_memory_back=True,
        is_yardstick=True,
    )
    early = False
