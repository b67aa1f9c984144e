"""For which joins the results can come in the order of the left key."""

from __future__ import annotations

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.algorithms.sweep_areas import SweepOrder
from earlyjoin.errors import UnsupportedError
from earlyjoin.predicates.banding import BoundBand
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.equality import BoundEqual


def order_reach(plan: Plan, key: BoundPredicate, order: SweepOrder) -> int | float:
    """How far apart matching words may be, or UnsupportedError where an order makes no sense or cannot be had."""
    if plan.how is not JoinType.INNER:
        raise UnsupportedError(f"sorted-output is for inner joins, not for a {plan.how} join; leave it out")
    if isinstance(key, BoundBand):
        return key.eps_word
    if isinstance(key, BoundEqual) and order.by_value:
        return 0
    why = "is sorted by hash" if isinstance(key, BoundEqual) else "matches rows of any distance"
    raise UnsupportedError(
        f"sorted-output needs an equality of one column of numbers or times, or a band, and {key.text} {why}; "
        f"leave it out and sort the result"
    )
