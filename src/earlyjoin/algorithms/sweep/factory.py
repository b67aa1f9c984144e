"""Which order and which sweep area a predicate has (PMJ table 1)."""

from __future__ import annotations

from collections.abc import Callable

from earlyjoin.algorithms.sweep.banded import BandArea, FirstWordOrder
from earlyjoin.algorithms.sweep.base import SweepArea, SweepOrder
from earlyjoin.errors import UnsupportedError
from earlyjoin.predicates.banding import BoundBand
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.equality import BoundEqual
from earlyjoin.state.budget import Account

AreaMaker = Callable[[int, Account], SweepArea]
"""Makes an area for the elements of a side, with the account that pays for it."""


def make_sweep(predicate: BoundPredicate) -> tuple[SweepOrder, AreaMaker]:
    """The sweep order of a join, to be made once, and a maker of areas, to be called for every run of a side."""
    if isinstance(predicate, BoundBand):
        return FirstWordOrder(), lambda side, account: BandArea(account, predicate.eps_word)
    if isinstance(predicate, BoundEqual):
        return FirstWordOrder(), lambda side, account: BandArea(account, 0)
    raise UnsupportedError(f"no sweep area for {predicate.text}; use another algorithm")
