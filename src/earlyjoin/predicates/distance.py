"""Points at most ``eps`` apart, by Euclid's distance, in one to 64 dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates.base import LEFT, RIGHT, BoundPredicate, Capability, Predicate
from earlyjoin.predicates.encoding.buffers import validity
from earlyjoin.predicates.encoding.columns import InputColumn, Names, find_columns, name_pair, qualified
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.predicates.encoding.types import NUMBERS, Kind, common_domain
from earlyjoin.predicates.encoding.words import float_values
from earlyjoin.predicates.matching import both, valid_pairs
from earlyjoin.predicates.tolerance import float_eps

MAX_DIMENSIONS = 64


@dataclass(frozen=True, slots=True)
class Near(Predicate):
    """A distance in several dimensions; made by :func:`near`."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    eps: float

    def bind(self, left: pa.Schema, right: pa.Schema) -> BoundNear:
        """Resolve the columns, which must be numbers."""
        sides = find_columns(left, self.left, LEFT), find_columns(right, self.right, RIGHT)
        for pair in zip(*sides, strict=True):
            if common_domain(pair, "near").kind not in NUMBERS | {Kind.NULL}:
                raise UnsupportedError(
                    f"near measures distances between numbers: {pair[0]} and {pair[1]} are none; cast them to float64, "
                    "or use band for a distance in time"
                )
        return BoundNear((self.left, self.right), str(self), sides, self.eps)

    def __str__(self) -> str:
        points = [
            "(" + ", ".join(qualified(side, name) for name in names) + ")"
            for side, names in ((LEFT, self.left), (RIGHT, self.right))
        ]
        return f"distance({', '.join(points)}) <= {self.eps}"


def near(left: Names, right: Names | None = None, *, eps: int | float | Decimal | str) -> Near:
    """Rows whose points are at most ``eps`` apart: the columns of the coordinates of each side.

    Computed in float64, as the sum of squares against ``eps * eps``, summed in the order of the columns. A null, NaN
    or infinite coordinate is near nothing.

    >>> print(near(["x", "y"], eps=2))
    distance((left.x, left.y), (right.x, right.y)) <= 2.0
    """
    lefts, rights = name_pair(left, right, "near")
    if len(lefts) > MAX_DIMENSIONS:
        raise InputError(f"near takes at most {MAX_DIMENSIONS} columns of each input, got {len(lefts)}")
    distance = float_eps(eps, "near")
    if math.isinf(distance * distance):
        raise InputError(f"near: the square of eps must be finite in float64, got {eps!r}; scale the columns down")
    return Near(lefts, rights, distance)


@dataclass(frozen=True, slots=True)
class BoundNear(BoundPredicate):
    """Points whose types are known. One float64 word a dimension."""

    capabilities = Capability.SWEEPABLE
    rank = 1

    columns: tuple[tuple[str, ...], tuple[str, ...]]
    text: str
    sides: tuple[tuple[InputColumn, ...], tuple[InputColumn, ...]]
    eps_word: float
    """``eps``, in the unit of the words."""

    def encode(self, side: int, batch: pa.RecordBatch) -> Keys:
        """The coordinates; rows with null, NaN or an infinity are invalid."""
        columns = self.sides[side]
        words = np.empty((batch.num_rows, len(columns)), dtype=np.float64)
        valid: Bool | None = None
        for position, column in enumerate(columns):
            array = column.of(batch)
            words[:, position] = float_values(array)
            valid = both(valid, validity(array))
        finite: Bool = np.all(np.isfinite(words), axis=1)
        return Keys(words, None, both(valid, None if finite.all() else finite))

    def holds(self, left: Keys, i: Int64, right: Keys, j: Int64) -> Bool:
        """The squared distance of two valid points is at most eps squared."""
        squares = np.zeros(len(i), dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            for word in range(left.width):
                step = left.words[:, word][i] - right.words[:, word][j]
                squares += step * step
            close: Bool = squares <= self.eps_word * self.eps_word
        return valid_pairs(left, i, right, j) & close
