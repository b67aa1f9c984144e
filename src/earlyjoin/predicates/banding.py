"""``|left.a - right.b| <= eps``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.errors import UnsupportedError
from earlyjoin.predicates.base import LEFT, RIGHT, BoundPredicate, Capability, Predicate
from earlyjoin.predicates.encoding.buffers import validity
from earlyjoin.predicates.encoding.columns import InputColumn, find_column, name_pair, qualified
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.predicates.encoding.types import NUMBERS, TEMPORAL, Domain, Kind, common_domain
from earlyjoin.predicates.encoding.words import float_values, ordinal_words
from earlyjoin.predicates.matching import both, valid_pairs
from earlyjoin.predicates.tolerance import Tolerance, eps_in_words, plain_eps

Words = npt.NDArray[np.int64] | npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Band(Predicate):
    """A distance on one axis; made by :func:`band`."""

    left: str
    right: str
    eps: Tolerance

    def bind(self, left: pa.Schema, right: pa.Schema) -> BoundBand:
        """Resolve both columns and express ``eps`` in the unit of their common domain."""
        sides = find_column(left, self.left, LEFT), find_column(right, self.right, RIGHT)
        domain = common_domain(sides, "band")
        _require_distance(domain, sides)
        if domain.kind is Kind.NULL:
            domain = Domain(Kind.INTEGER)
            eps: int | float = 0  # two columns of nulls match nothing, whatever eps is
        else:
            eps = eps_in_words(self.eps, domain, "band")
        return BoundBand(((self.left,), (self.right,)), str(self), sides, domain, eps)

    def __str__(self) -> str:
        return f"|{qualified(LEFT, self.left)} - {qualified(RIGHT, self.right)}| <= {self.eps}"


def band(left: str, right: str | None = None, *, eps: Tolerance) -> Band:
    """Rows whose columns are at most ``eps`` apart.

    Numbers take a number. Dates, timestamps, times and durations take a ``timedelta``, a text such as ``"10 minutes"``,
    or a bare number of seconds (of days, when both columns are dates). Exact for everything but floats; NaN and
    infinities match nothing.

    >>> print(band("price", eps=0.05))
    |left.price - right.price| <= 0.05
    """
    lefts, rights = name_pair(left, right, "band", count=1)
    return Band(lefts[0], rights[0], plain_eps(eps, "band"))


def _require_distance(domain: Domain, sides: tuple[InputColumn, InputColumn]) -> None:
    if domain.kind not in NUMBERS | TEMPORAL | {Kind.NULL}:
        raise UnsupportedError(f"band needs columns with distances: {sides[0]} and {sides[1]} have none; use equal")
    if not domain.ordinal:
        raise UnsupportedError(
            f"band compares numbers of at most 64 bits: {sides[0]} and {sides[1]} meet as {domain}; cast both "
            "to int64, to a decimal of at most 18 digits, or to float64"
        )


@dataclass(frozen=True, slots=True)
class BoundBand(BoundPredicate):
    """A band whose types are known. One word, int64 or, for floats, float64."""

    capabilities = Capability.SORTABLE | Capability.BANDED | Capability.SWEEPABLE
    rank = 1

    columns: tuple[tuple[str, ...], tuple[str, ...]]
    text: str
    sides: tuple[InputColumn, InputColumn]
    domain: Domain
    eps_word: int | float
    """``eps`` in the unit of the words: an int below 2**63, or a float when the words are floats."""

    def encode(self, side: int, batch: pa.RecordBatch) -> Keys:
        """The number; rows with null, NaN or an infinity are invalid."""
        column = self.sides[side]
        array = column.of(batch)
        valid = validity(array)
        if self.domain.kind is not Kind.FLOAT:
            return Keys(ordinal_words(array, column, self.domain), None, valid)
        values = float_values(array)
        finite = np.isfinite(values)
        return Keys(values.reshape(-1, 1), None, both(valid, None if finite.all() else finite))

    def holds(self, left: Keys, i: Int64, right: Keys, j: Int64) -> Bool:
        """The distance of valid rows is at most eps."""
        return valid_pairs(left, i, right, j) & within(left.words[:, 0][i], right.words[:, 0][j], self.eps_word)

    def window(self, words: Words) -> tuple[Words, Words]:
        """For each word the smallest and the largest that can match it, both inclusive.

        Exact for int64 words. For floats a hair wider than eps, because subtraction rounds: confirm with :meth:`holds`.
        """
        if words.dtype == np.float64:
            with np.errstate(over="ignore"):  # then the window is open, which is right
                reach = np.nextafter(self.eps_word, np.inf)
                return np.nextafter(words - reach, -np.inf), np.nextafter(words + reach, np.inf)
        limits = np.iinfo(np.int64)
        eps = np.int64(self.eps_word)
        # Clip before adding: the limits themselves are the answer where the sum would leave the range.
        low = np.maximum(words, limits.min + eps) - eps
        high = np.minimum(words, limits.max - eps) + eps
        return low, high


def within(a: Words, b: Words, eps: int | float) -> Bool:
    """|a - b| <= eps, word by word; int64 differences are taken unsigned, so none wraps."""
    if a.dtype == np.float64:
        with np.errstate(invalid="ignore", over="ignore"):
            close: Bool = np.abs(a - b) <= eps
        return close
    distance = np.maximum(a, b).view(np.uint64) - np.minimum(a, b).view(np.uint64)
    near: Bool = distance <= np.uint64(eps)
    return near
