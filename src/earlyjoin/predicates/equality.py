"""``left.a = right.b``, over one or several columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from earlyjoin.predicates.base import LEFT, RIGHT, BoundPredicate, Capability, Predicate
from earlyjoin.predicates.encoding.buffers import blank_nulls, present
from earlyjoin.predicates.encoding.columns import Advice, InputColumn, Names, find_columns, name_pair, qualified
from earlyjoin.predicates.encoding.keys import Bool, Bytes, Int64, Keys
from earlyjoin.predicates.encoding.nested import nested_heap
from earlyjoin.predicates.encoding.strings import hash_word, heap_of, one_heap
from earlyjoin.predicates.encoding.types import BYTES, NESTED, Domain, common_domain
from earlyjoin.predicates.encoding.words import ordinal_words
from earlyjoin.predicates.matching import both, equal_pairs, valid_pairs

_FLAGS_A_WORD = 63


@dataclass(frozen=True, slots=True)
class Equal(Predicate):
    """Equality of columns, position by position; made by :func:`equal`."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    null_safe: tuple[bool, ...]
    """For each pair of columns: does null equal null?"""
    shared: tuple[str, ...] = ()
    """Names given once for both sides: the output may carry these columns once."""

    def bind(self, left: pa.Schema, right: pa.Schema) -> BoundEqual:
        """Resolve the columns and find a common domain for each pair."""
        advice = self.advice(left, right)
        lefts = find_columns(left, self.left, LEFT, advice)
        rights = find_columns(right, self.right, RIGHT, advice)
        domains = tuple(common_domain(pair, "equal", equality=True) for pair in zip(lefts, rights, strict=True))
        return BoundEqual((self.left, self.right), str(self), (lefts, rights), domains, self.null_safe, self.shared)

    def advice(self, left: pa.Schema, right: pa.Schema) -> Advice | None:
        """What to write when a column that was named once is not in both inputs; None when all are."""
        alone = [name for name in self.shared if name not in left.names or name not in right.names]
        if not alone:
            return None
        if len(self.shared) == 2:
            a, b = self.shared
            if a in left.names and b in right.names:
                return Advice(
                    f"on=({a!r}, {b!r}) names two columns that both inputs have; for left {a!r} = right {b!r} write "
                    f"the pair on=[({a!r}, {b!r})], or left_on={a!r}, right_on={b!r}",
                    f"--on {a},{b} names two columns that both inputs have; for left {a!r} = right {b!r} write "
                    f"--on {a}={b}",
                )
        name = alone[0]
        pair = (name, "…") if name in left.names else ("…", name)
        return Advice(
            f"if it has another name there, write the pair on=[({pair[0]!r}, {pair[1]!r})], or left_on={pair[0]!r}, "
            f"right_on={pair[1]!r}",
            f"if it has another name there, write --on {pair[0]}={pair[1]}",
        )

    def merged(self, other: Equal) -> Equal:
        """Both equalities as one."""
        return Equal(
            self.left + other.left,
            self.right + other.right,
            self.null_safe + other.null_safe,
            self.shared + tuple(name for name in other.shared if name not in self.shared),
        )

    def __str__(self) -> str:
        return " AND ".join(
            f"{qualified(LEFT, left)} {'<=>' if safe else '='} {qualified(RIGHT, right)}"
            for left, right, safe in zip(self.left, self.right, self.null_safe, strict=True)
        )


def equal(left: Names, right: Names | None = None, *, null_safe: bool = False) -> Equal:
    """Rows with equal columns: a name or a list of names for each side; without ``right``, the same names on both.

    Null equals nothing, unless ``null_safe``: then null equals null. NaN equals NaN and -0.0 equals 0.0.
    Structs and lists are equal when all in them is, where null equals null; true equals 1.

    >>> print(equal("id", "order_id"))
    left.id = right.order_id
    """
    lefts, rights = name_pair(left, right, "equal")
    return Equal(lefts, rights, (bool(null_safe),) * len(lefts), lefts if right is None else ())


@dataclass(frozen=True, slots=True)
class BoundEqual(BoundPredicate):
    """Equality whose types are known; of two sides or more.

    Words stand in the order of the columns: one a column (its ordinal, or a hash for strings and bytes), several for
    integers and decimals beyond 64 bits, least significant first so that the first word tells rows apart. Null-safe
    columns add one last word with a bit for each null.
    """

    capabilities = Capability.HASHABLE | Capability.SORTABLE | Capability.SWEEPABLE
    rank = 0

    columns: tuple[tuple[str, ...], ...]
    text: str
    sides: tuple[tuple[InputColumn, ...], ...]
    domains: tuple[Domain, ...]
    null_safe: tuple[bool, ...]
    shared: tuple[str, ...]

    def encode(self, side: int, batch: pa.RecordBatch) -> Keys:
        """Words and heap of the key columns; a null in a column that is not null-safe makes the row invalid."""
        valid: Bool | None = None
        words: list[Int64] = []
        heaps: list[Bytes] = []
        nulls: list[Bool] = []
        for column, domain, safe in zip(self.sides[side], self.domains, self.null_safe, strict=True):
            array = column.of(batch)
            known = present(array)
            word, heap = _encode_column(array, column, domain, blank=safe)
            if safe:
                nulls.append(np.zeros(len(array), dtype=np.bool_) if known is None else ~known)
                if known is not None:
                    word = np.where(known[:, np.newaxis], word, 0)
            else:
                valid = both(valid, known)
            words.append(word)
            if heap is not None:
                heaps.append(heap)
        words += _flag_words(nulls)
        return Keys(words[0] if len(words) == 1 else np.hstack(words), one_heap(heaps), valid)

    def holds(self, left: Keys, i: Int64, right: Keys, j: Int64) -> Bool:
        """Equal words and equal bytes, of valid rows."""
        return valid_pairs(left, i, right, j) & equal_pairs(left, i, right, j)


def _encode_column(array: pa.Array, column: InputColumn, domain: Domain, *, blank: bool) -> tuple[Int64, Bytes | None]:
    if domain.kind in BYTES:
        heap = heap_of(blank_nulls(array) if blank else array)
        return hash_word(heap).reshape(-1, 1), heap
    if domain.kind in NESTED:
        heap = nested_heap(array, column, domain)
        return hash_word(heap).reshape(-1, 1), heap
    words = ordinal_words(array, column, domain)
    return (words if domain.width == 1 else np.ascontiguousarray(words[:, ::-1])), None


def _flag_words(nulls: list[Bool]) -> list[Int64]:
    """The null flags of the null-safe columns, as bits of as few words as hold them."""
    result: list[Int64] = []
    for first in range(0, len(nulls), _FLAGS_A_WORD):
        word = np.zeros(len(nulls[0]), dtype=np.int64)
        for bit, null in enumerate(nulls[first : first + _FLAGS_A_WORD]):
            word |= null.astype(np.int64) << bit
        result.append(word.reshape(-1, 1))
    return result
