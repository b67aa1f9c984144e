"""Which order and which sweep area a predicate has (PMJ table 1)."""

from __future__ import annotations

from collections.abc import Callable

from earlyjoin.algorithms.sweep_areas.banded import BandArea, FirstWordOrder
from earlyjoin.algorithms.sweep_areas.base import SweepArea, SweepOrder
from earlyjoin.algorithms.sweep_areas.inequality import OrderArea, WideOrderArea
from earlyjoin.algorithms.sweep_areas.intervals import IntervalArea
from earlyjoin.algorithms.sweep_areas.near import NearArea, NearOrder
from earlyjoin.algorithms.sweep_areas.rectangles import RectangleArea
from earlyjoin.algorithms.sweep_areas.wide import HashOrder, WideEqualArea
from earlyjoin.errors import UnsupportedError
from earlyjoin.predicates.banding import BoundBand
from earlyjoin.predicates.base import LEFT, BoundPredicate
from earlyjoin.predicates.comparison import BoundComparison
from earlyjoin.predicates.distance import BoundNear
from earlyjoin.predicates.equality import BoundEqual
from earlyjoin.predicates.intervals import BoundOverlaps
from earlyjoin.predicates.rectangles import BoundIntersects
from earlyjoin.state.budget import Account

AreaMaker = Callable[[int, Account], SweepArea]
"""Makes an area for the elements of a side, with the account that pays for it."""


def make_sweep(predicate: BoundPredicate) -> tuple[SweepOrder, AreaMaker]:
    """The sweep order of a join, to be made once, and a maker of areas, to be called for every run of a side."""
    if isinstance(predicate, BoundBand):
        return FirstWordOrder(), lambda side, account: BandArea(account, predicate.eps_word)
    if isinstance(predicate, BoundEqual):
        return _equality(predicate)
    if isinstance(predicate, BoundComparison):
        return _comparison(predicate)
    if isinstance(predicate, BoundOverlaps):
        return FirstWordOrder(), lambda side, account: IntervalArea(account, closed=predicate.closed)
    if isinstance(predicate, BoundIntersects):
        return FirstWordOrder(), lambda side, account: RectangleArea(account)
    if isinstance(predicate, BoundNear):
        eps, width = predicate.eps_word, len(predicate.columns[LEFT])
        near_order = NearOrder(eps)
        return near_order, lambda side, account: NearArea(account, near_order, eps, width)
    raise UnsupportedError(f"no sweep area for {predicate.text}; use another algorithm")


def _equality(predicate: BoundEqual) -> tuple[SweepOrder, AreaMaker]:
    flag_words = -(-sum(predicate.null_safe) // 63)
    width = sum(domain.width for domain in predicate.domains) + flag_words
    if width == 1 and predicate.domains[0].ordinal:
        return FirstWordOrder(), lambda side, account: BandArea(account, 0)
    return HashOrder(), lambda side, account: WideEqualArea(account, width)


def _comparison(predicate: BoundComparison) -> tuple[SweepOrder, AreaMaker]:
    domain, op = predicate.domain, predicate.op
    if domain.ordinal:
        return FirstWordOrder(), lambda side, account: OrderArea(account, side, op)
    return FirstWordOrder(), lambda side, account: WideOrderArea(account, side, op, domain.width)
