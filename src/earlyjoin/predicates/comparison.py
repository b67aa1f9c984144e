"""``<``, ``<=``, ``>``, ``>=`` and ``<>`` between one column of each side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from earlyjoin.predicates.base import LEFT, RIGHT, BoundPredicate, Capability, Predicate
from earlyjoin.predicates.encoding.buffers import validity
from earlyjoin.predicates.encoding.columns import InputColumn, find_column, name_pair, qualified
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.predicates.encoding.strings import heap_of, prefix_word
from earlyjoin.predicates.encoding.types import BYTES, Domain, common_domain
from earlyjoin.predicates.encoding.words import ordinal_words
from earlyjoin.predicates.matching import compare_pairs, valid_pairs

Operator = Literal["<", "<=", ">", ">=", "<>"]

_NAMES: dict[Operator, str] = {
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
    "<>": "not_equal",
}
_RANK_ORDER, _RANK_NOT_EQUAL = 2, 3


@dataclass(frozen=True, slots=True)
class Comparison(Predicate):
    """A comparison of two columns by order; made by :func:`less` and its siblings."""

    left: str
    op: Operator
    right: str

    def bind(self, left: pa.Schema, right: pa.Schema) -> BoundComparison:
        """Resolve both columns and find their common domain."""
        sides = find_column(left, self.left, LEFT), find_column(right, self.right, RIGHT)
        domain = common_domain(sides, _NAMES[self.op])
        capabilities = Capability.SWEEPABLE
        if self.op != "<>" and domain.ordinal:
            capabilities |= Capability.SORTABLE
        rank = _RANK_NOT_EQUAL if self.op == "<>" else _RANK_ORDER
        return BoundComparison(capabilities, rank, ((self.left,), (self.right,)), str(self), self.op, sides, domain)

    def __str__(self) -> str:
        return f"{qualified(LEFT, self.left)} {self.op} {qualified(RIGHT, self.right)}"


def _comparison(left: str, op: Operator, right: str | None) -> Comparison:
    lefts, rights = name_pair(left, right, _NAMES[op], count=1)
    return Comparison(lefts[0], op, rights[0])


def less(left: str, right: str | None = None) -> Comparison:
    """Left column < right column. NaN is larger than every number; strings are ordered by their bytes."""
    return _comparison(left, "<", right)


def less_equal(left: str, right: str | None = None) -> Comparison:
    """Left column <= right column. NaN is larger than every number and equal to itself."""
    return _comparison(left, "<=", right)


def greater(left: str, right: str | None = None) -> Comparison:
    """Left column > right column. NaN is larger than every number; strings are ordered by their bytes."""
    return _comparison(left, ">", right)


def greater_equal(left: str, right: str | None = None) -> Comparison:
    """Left column >= right column. NaN is larger than every number and equal to itself."""
    return _comparison(left, ">=", right)


def not_equal(left: str, right: str | None = None) -> Comparison:
    """Left column <> right column; a null is neither equal nor unequal to anything."""
    return _comparison(left, "<>", right)


@dataclass(frozen=True, slots=True)
class BoundComparison(BoundPredicate):
    """A comparison whose types are known.

    The key is the ordinal in one word; integers and decimals beyond 64 bits take several, strings their first eight
    bytes and the heap. Only one-word keys are SORTABLE.
    """

    capabilities: Capability
    rank: int
    columns: tuple[tuple[str, ...], tuple[str, ...]]
    text: str
    op: Operator
    sides: tuple[InputColumn, InputColumn]
    domain: Domain

    def encode(self, side: int, batch: pa.RecordBatch) -> Keys:
        """The ordinal of the column; rows with null are invalid."""
        column = self.sides[side]
        array = column.of(batch)
        if self.domain.kind in BYTES:
            heap = heap_of(array)
            return Keys(prefix_word(heap).reshape(-1, 1), heap, validity(array))
        return Keys(ordinal_words(array, column, self.domain), None, validity(array))

    def holds(self, left: Keys, i: Int64, right: Keys, j: Int64) -> Bool:
        """The order of the keys of valid rows satisfies the operator."""
        order = compare_pairs(left, i, right, j)
        matches: Bool = {
            "<": order < 0,
            "<=": order <= 0,
            ">": order > 0,
            ">=": order >= 0,
            "<>": order != 0,
        }[self.op]
        return valid_pairs(left, i, right, j) & matches
