"""From candidate pairs to results: the rest of the condition, the flags of matched rows, what goes out."""

from __future__ import annotations

import numpy as np

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.matching.residual import Residual
from earlyjoin.algorithms.protocol import Context, Matches, Plan
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Bool, Int64
from earlyjoin.state.rows.store import Rows

_RESIDUAL_PART = 16
"""Part of the memory, one in so many, in which candidates are gathered to be checked."""


class Settlement:
    """Called with candidate pairs that no earlier step has settled."""

    def __init__(self, plan: Plan, rest: tuple[BoundPredicate, ...], context: Context) -> None:
        self._how = plan.how
        self._residual = Residual(plan, rest)
        self.memory_changed(context)

    def memory_changed(self, context: Context) -> None:
        """Take note of how much may be gathered at once."""
        memory = context.budget.limit.bytes
        self._residual.most_bytes = None if memory is None else memory // _RESIDUAL_PART

    @property
    def candidates_always_match(self) -> bool:
        """Is there nothing more to check on a candidate pair?"""
        return self._residual.empty

    def __call__(
        self, rows: tuple[Rows, Rows], i: Int64, j: Int64, matched: tuple[Bool | None, Bool | None]
    ) -> Matches | None:
        """Flag the candidate pairs that match, and say what goes out.

        Row ``i[k]`` of side 0 and row ``j[k]`` of side 1 satisfy the driving predicate. ``matched`` are the flags of
        each side's rows, None for a side whose flags nobody needs.
        """
        i, j = self._residual.passing(rows, i, j)
        if len(i) == 0:
            return None
        if self._how is JoinType.SEMI:
            assert matched[0] is not None
            fresh = _first_matches(i, matched[0])
            return one_sided(0, rows[0], fresh)
        for flags, index in zip(matched, (i, j), strict=True):
            if flags is not None:
                flags[index] = True
        return Matches(rows, (i, j)) if self._how.gives_pairs else None


def one_sided(side: int, rows: Rows, index: Int64) -> Matches | None:
    """Rows of one side alone; None when there are none."""
    if len(index) == 0:
        return None
    return Matches((rows, None), (index, None)) if side == 0 else Matches((None, rows), (None, index))


def _first_matches(index: Int64, matched: Bool) -> Int64:
    """Those rows of ``index`` that match for the first time, each once, ascending; flags them in ``matched``."""
    fresh = np.unique(index[~matched[index]])
    matched[fresh] = True
    return fresh
