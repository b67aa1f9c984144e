"""Progressive Merge Join (Dittrich, Seeger, Taylor, Widmayer: VLDB 2002): a sort-merge join that joins while it sorts.

See :mod:`earlyjoin.algorithms.merge_join.operator` for the phases,
:mod:`~earlyjoin.algorithms.merge_join.run_creation` for section 3.1.1 (join during run creation) and
:mod:`~earlyjoin.algorithms.merge_join.block_sweep` for section 3.1.2 (join during merge).

* Exactly once (section 3.3): a pair of runs with the same number was joined before it was written; a merge skips it.
* Join types (section 3.6): flags of matched rows lie in a file a side. In semi and anti joins, left rows that have
  matched are not written again.
"""

from __future__ import annotations

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.merge_join.operator import SortJoin
from earlyjoin.algorithms.protocol import Description
from earlyjoin.predicates.base import Capability


@registry.register
class ProgressiveMergeJoin(SortJoin):
    """Joins during run creation and in every merge, so results come from the first full memory on."""

    description = Description(
        name="pmj",
        title="progressive merge join",
        paper="PMJ, VLDB 2002",
        needs=Capability.SWEEPABLE,
        spills=True,
        rows_at_once=2.25,
        offers_blocks=True,
        gives_memory_back=True,
    )
    early = True
