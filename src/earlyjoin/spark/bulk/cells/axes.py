"""Axes: what a predicate says about where the partners of a row lie.

A home row has a *point* on an axis, a guest has a *box* (an inclusive range): if they match, the point lies in the box.
Points and boxes are made of the words that the predicate itself compares, and where those are rounded the box is
widened outwards, so no match is lost to arithmetic. A home row may have an *extent* (an interval starts at its point
and reaches further); the boxes of guests then depend on how far home rows reach at most.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earlyjoin.predicates.banding import BoundBand
from earlyjoin.predicates.base import LEFT, BoundPredicate
from earlyjoin.predicates.comparison import BoundComparison, Operator
from earlyjoin.predicates.distance import BoundNear
from earlyjoin.predicates.encoding.keys import Keys
from earlyjoin.predicates.intervals import BoundOverlaps
from earlyjoin.predicates.rectangles import BoundIntersects

Points = npt.NDArray[np.int64] | npt.NDArray[np.float64]
UInt64 = npt.NDArray[np.uint64]

_LOWEST, _HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_TINY = 1e-161
"""Steps up to about 2**-537 have a square that rounds to 0."""
_FLIPPED: dict[Operator, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "<>": "<>"}


class Axis(ABC):
    """One word of the keys of a predicate."""

    has_extent = False
    """Do home rows reach from their point upwards?"""

    @abstractmethod
    def points(self, keys: Keys) -> Points:
        """Where home rows are."""

    @abstractmethod
    def box(self, keys: Keys, reach: int) -> tuple[Points, Points]:
        """For each guest the lowest and the highest point of a home row that it may match.

        ``reach`` is the largest extent of a home row, and 0 on axes without.
        """

    def ends(self, keys: Keys) -> Points:
        """Up to where home rows reach."""
        return self.points(keys)

    def extents(self, keys: Keys) -> UInt64:
        """How far that is from their points."""
        return np.zeros(len(keys), dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class BandAxis(Axis):
    """Numbers at most eps apart."""

    predicate: BoundBand

    def points(self, keys: Keys) -> Points:
        return keys.words[:, 0]

    def box(self, keys: Keys, reach: int) -> tuple[Points, Points]:
        return self.predicate.window(keys.words[:, 0])


@dataclass(frozen=True, slots=True)
class NearAxis(Axis):
    """One coordinate of points at most eps apart."""

    dimension: int
    eps: float

    def points(self, keys: Keys) -> Points:
        return keys.words[:, self.dimension]

    def box(self, keys: Keys, reach: int) -> tuple[Points, Points]:
        # A step whose square is surely above the rounded square of eps, and then one float further for the sum.
        step = np.nextafter(self.eps * (1 + 1e-15) + _TINY, np.inf)
        words = keys.words[:, self.dimension]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.nextafter(words - step, -np.inf), np.nextafter(words + step, np.inf)


@dataclass(frozen=True, slots=True)
class ExtentAxis(Axis):
    """Intervals that overlap, or one side of rectangles that do: the words ``low`` and ``high`` of the key."""

    low: int
    high: int
    has_extent = True

    def points(self, keys: Keys) -> Points:
        return keys.words[:, self.low]

    def box(self, keys: Keys, reach: int) -> tuple[Points, Points]:
        lows, highs = keys.words[:, self.low], keys.words[:, self.high]
        # Unsigned: an extent may need 64 bits. Where the difference would leave the range, the range ends.
        room = lows.view(np.uint64) - np.uint64(2**63)
        return np.where(
            room > np.uint64(reach), (lows.view(np.uint64) - np.uint64(reach)).view(np.int64), _LOWEST
        ), highs

    def ends(self, keys: Keys) -> Points:
        return keys.words[:, self.high]

    def extents(self, keys: Keys) -> UInt64:
        lows, highs = (np.ascontiguousarray(keys.words[:, word]).view(np.uint64) for word in (self.low, self.high))
        return np.where(keys.words[:, self.low] <= keys.words[:, self.high], highs - lows, np.uint64(0))


@dataclass(frozen=True, slots=True)
class OrderAxis(Axis):
    """Home rows that must be smaller (``<``) or larger (``>``) than their guests, or as large, by the first word.

    A first word may stand for a longer key, so equal words never rule a match out.
    """

    smaller: bool

    def points(self, keys: Keys) -> Points:
        return keys.words[:, 0]

    def box(self, keys: Keys, reach: int) -> tuple[Points, Points]:
        words = keys.words[:, 0]
        if self.smaller:
            return np.full_like(words, _LOWEST), words
        return words, np.full_like(words, _HIGHEST)


def axes_of(predicate: BoundPredicate, home: int) -> tuple[Axis, ...]:
    """The axes of a predicate when the rows of side ``home`` are at home; none where nothing can be ruled out."""
    if isinstance(predicate, BoundBand):
        return (BandAxis(predicate),)
    if isinstance(predicate, BoundNear):
        return tuple(NearAxis(dimension, predicate.eps_word) for dimension in range(len(predicate.columns[LEFT])))
    if isinstance(predicate, BoundOverlaps):
        return (ExtentAxis(0, 1),)
    if isinstance(predicate, BoundIntersects):
        return ExtentAxis(0, 2), ExtentAxis(1, 3)
    if isinstance(predicate, BoundComparison):
        op = predicate.op if home == LEFT else _FLIPPED[predicate.op]
        return () if op == "<>" else (OrderAxis(op in ("<", "<=")),)
    return ()
