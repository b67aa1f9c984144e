"""Intersecting rectangles: each side has four columns, the low corner and the high corner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from earlyjoin.predicates.base import LEFT, RIGHT, BoundPredicate, Capability, Predicate
from earlyjoin.predicates.encoding.columns import InputColumn, find_columns, name_pair, qualified
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.predicates.encoding.types import Domain
from earlyjoin.predicates.intervals import axis_domain, axis_overlaps, extents
from earlyjoin.predicates.matching import valid_pairs

_AXES = 2


@dataclass(frozen=True, slots=True)
class Intersects(Predicate):
    """Rectangles that have a point in common; made by :func:`intersects`."""

    left: tuple[str, ...]
    right: tuple[str, ...]

    def bind(self, left: pa.Schema, right: pa.Schema) -> BoundIntersects:
        """Resolve the eight columns and find a common domain for each axis; the two axes may differ."""
        sides = find_columns(left, self.left, LEFT), find_columns(right, self.right, RIGHT)
        domains = tuple(
            axis_domain(sides[LEFT][axis::_AXES] + sides[RIGHT][axis::_AXES], "intersects") for axis in range(_AXES)
        )
        return BoundIntersects((self.left, self.right), str(self), sides, domains)

    def __str__(self) -> str:
        corners = [
            "(" + ", ".join(qualified(side, name) for name in names) + ")"
            for side, names in ((LEFT, self.left), (RIGHT, self.right))
        ]
        return " intersects ".join(corners)


def intersects(left: Sequence[str], right: Sequence[str] | None = None) -> Intersects:
    """Rows whose rectangles intersect: the columns ``(x1, y1, x2, y2)`` of each side, low corner first.

    Rectangles are closed: touching is enough, and a rectangle may be a line or a point. A row with x1 > x2 or y1 > y2,
    or with a null or NaN, intersects nothing.

    >>> print(intersects(("x1", "y1", "x2", "y2"), ("a", "b", "c", "d")))
    (left.x1, left.y1, left.x2, left.y2) intersects (right.a, right.b, right.c, right.d)
    """
    lefts, rights = name_pair(left, right, "intersects", count=2 * _AXES)
    return Intersects(lefts, rights)


@dataclass(frozen=True, slots=True)
class BoundIntersects(BoundPredicate):
    """Rectangles whose types are known. Four int64 words: the ordinals of x1, y1, x2, y2."""

    capabilities = Capability.SWEEPABLE | Capability.SORTABLE
    rank = 1

    columns: tuple[tuple[str, ...], tuple[str, ...]]
    text: str
    sides: tuple[tuple[InputColumn, ...], tuple[InputColumn, ...]]
    domains: tuple[Domain, ...]

    def encode(self, side: int, batch: pa.RecordBatch) -> Keys:
        """The four ordinals; inverted rectangles, nulls and NaN are invalid."""
        words, valid = extents(self.sides[side], self.domains, batch)
        return Keys(words, None, valid)

    def holds(self, left: Keys, i: Int64, right: Keys, j: Int64) -> Bool:
        """The extents of two valid rectangles overlap on both axes."""
        result = valid_pairs(left, i, right, j)
        for axis in range(_AXES):
            result &= axis_overlaps(left, i, right, j, axis, axis + _AXES)
        return result
