"""Overlapping intervals: each side has a start and an end column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from earlyjoin.errors import UnsupportedError
from earlyjoin.predicates.base import LEFT, RIGHT, BoundPredicate, Capability, Predicate
from earlyjoin.predicates.encoding.buffers import validity
from earlyjoin.predicates.encoding.columns import InputColumn, find_columns, name_pair, qualified
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.predicates.encoding.types import Domain, Kind, common_domain
from earlyjoin.predicates.encoding.words import float_values, ordinal_words
from earlyjoin.predicates.matching import both, valid_pairs


@dataclass(frozen=True, slots=True)
class Overlaps(Predicate):
    """Intervals that have a point in common; made by :func:`overlaps`."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    closed: bool = True

    def bind(self, left: pa.Schema, right: pa.Schema) -> BoundOverlaps:
        """Resolve the four columns and find their common domain."""
        sides = find_columns(left, self.left, LEFT), find_columns(right, self.right, RIGHT)
        domain = axis_domain(sides[LEFT] + sides[RIGHT], "overlaps")
        return BoundOverlaps((self.left, self.right), str(self), sides, domain, self.closed)

    def __str__(self) -> str:
        opening, closing = "[]" if self.closed else "()"
        ends = [
            opening + ", ".join(qualified(side, name) for name in names) + closing
            for side, names in ((LEFT, self.left), (RIGHT, self.right))
        ]
        return " overlaps ".join(ends)


def overlaps(left: Sequence[str], right: Sequence[str] | None = None, *, closed: bool = True) -> Overlaps:
    """Rows whose intervals overlap: ``(start, end)`` columns of each side.

    Closed intervals that only touch overlap; with ``closed=False`` they do not (s1 < e2 and s2 < e1). A row whose start
    lies behind its end, or with a null or NaN, overlaps nothing.

    >>> print(overlaps(("begin", "end")))
    [left.begin, left.end] overlaps [right.begin, right.end]
    """
    lefts, rights = name_pair(left, right, "overlaps", count=2)
    return Overlaps(lefts, rights, bool(closed))


@dataclass(frozen=True, slots=True)
class BoundOverlaps(BoundPredicate):
    """Intervals whose types are known. Two int64 words: the ordinals of start and end."""

    capabilities = Capability.SWEEPABLE | Capability.SORTABLE
    rank = 1

    columns: tuple[tuple[str, ...], tuple[str, ...]]
    text: str
    sides: tuple[tuple[InputColumn, ...], tuple[InputColumn, ...]]
    domain: Domain
    closed: bool

    def encode(self, side: int, batch: pa.RecordBatch) -> Keys:
        """Start and end; inverted intervals, nulls and NaN are invalid."""
        words, valid = extents(self.sides[side], (self.domain,), batch)
        return Keys(words, None, valid)

    def holds(self, left: Keys, i: Int64, right: Keys, j: Int64) -> Bool:
        """Each of two valid intervals starts before the other ends."""
        return valid_pairs(left, i, right, j) & axis_overlaps(left, i, right, j, 0, 1, closed=self.closed)


def axis_domain(columns: Sequence[InputColumn], what: str) -> Domain:
    """The common domain of all coordinates on one axis, which must fit in one word."""
    domain = common_domain(columns, what)
    if not domain.ordinal:
        names = ", ".join(str(column) for column in columns)
        raise UnsupportedError(
            f"{what} compares values of at most 64 bits, but these meet as {domain}: {names}; cast them "
            "to int64, to a decimal of at most 18 digits, to float64 or to a timestamp"
        )
    return domain


def extents(
    columns: Sequence[InputColumn], domains: Sequence[Domain], batch: pa.RecordBatch
) -> tuple[Int64, Bool | None]:
    """Words of the low ends of every axis, then of the high ends, and which rows have all of them in order.

    ``columns`` stand in that order too, and ``domains`` has one domain an axis.
    """
    axes = len(domains)
    words = np.empty((batch.num_rows, 2 * axes), dtype=np.int64)
    valid: Bool | None = None
    for position, column in enumerate(columns):
        domain = domains[position % axes]
        array = column.of(batch)
        words[:, position] = ordinal_words(array, column, domain)[:, 0]
        valid = both(valid, validity(array))
        if domain.kind is Kind.FLOAT:
            # NaN lies nowhere on the axis, so it bounds nothing.
            valid = both(valid, ~np.isnan(float_values(array)))
    upright: Bool = np.all(words[:, :axes] <= words[:, axes:], axis=1)
    valid = both(valid, upright)
    return words, None if valid is None or valid.all() else valid


def axis_overlaps(left: Keys, i: Int64, right: Keys, j: Int64, low: int, high: int, *, closed: bool = True) -> Bool:
    """Whether the extents between the words ``low`` and ``high`` overlap; says nothing about validity."""
    left_low, left_high = left.words[:, low][i], left.words[:, high][i]
    right_low, right_high = right.words[:, low][j], right.words[:, high][j]
    if closed:
        touching: Bool = (left_low <= right_high) & (right_low <= left_high)
        return touching
    inside: Bool = (left_low < right_high) & (right_low < left_high)
    return inside
