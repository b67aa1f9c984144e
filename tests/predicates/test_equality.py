"""equal: every pair of types against the oracle, several columns, nulls, collisions."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.errors import InputError
from earlyjoin.kernels import hashing
from earlyjoin.predicates import LEFT, BoundEqual, Capability, Equal, equal
from predicates import naive
from predicates.samples import FAMILIES, Table, array_of, expected, matrix, one, pool, table, type_pairs

PAIRS = [pair for family in FAMILIES.values() for pair in itertools.product(family, family)]


def agrees(left: Table, right: Table, null_safe: tuple[bool, ...]) -> None:
    names = tuple(left.types)
    bound = Equal(names, names, null_safe).bind(left.schema, right.schema)

    def holds(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
        columns = zip(a, b, left.types.values(), right.types.values(), null_safe, strict=True)
        return all(naive.equal(*naive.alike(p, q, types=(s, t)), null_safe=safe) for p, q, s, t, safe in columns)

    assert matrix(bound, left.batch, right.batch) == expected(left, right, holds)


@pytest.mark.parametrize(("left", "right"), PAIRS, ids=lambda t: str(t))
def test_every_pair_of_types(left: pa.DataType, right: pa.DataType) -> None:
    for null_safe in (False, True):
        agrees(one(left, [*pool(left), None]), one(right, [*pool(right), None], lead=1), (null_safe,))


@pytest.mark.parametrize("type_", [t for family in FAMILIES.values() for t in family], ids=str)
def test_dictionary_of_every_type(type_: pa.DataType) -> None:
    coded = one(pa.dictionary(pa.int8(), type_), [*pool(type_), None], lead=2)
    for null_safe in (False, True):
        agrees(coded, one(type_, [*pool(type_), None]), (null_safe,))


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_composite_keys(data: st.DataObject) -> None:
    pairs = data.draw(st.lists(type_pairs(), min_size=1, max_size=4))
    left = data.draw(table({f"c{n}": pair[0] for n, pair in enumerate(pairs)}))
    right = data.draw(table({f"c{n}": pair[1] for n, pair in enumerate(pairs)}))
    safe = data.draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    agrees(left, right, tuple(safe))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_strings_of_several_columns_do_not_run_together(data: st.DataObject) -> None:
    types = {name: pa.string() for name in "abc"}
    agrees(data.draw(table(types, 8)), data.draw(table(types, 8)), data.draw(st.tuples(*[st.booleans()] * 3)))


def test_boundary_between_strings_counts() -> None:
    left = Table({"a": ["a", "", "ab"], "b": ["bc", "abc", "c"]}, {"a": pa.string(), "b": pa.string()})
    agrees(left, left, (False, False))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_colliding_hashes_change_nothing(data: st.DataObject) -> None:
    pairs = data.draw(st.lists(type_pairs(["strings", "bytes"]), min_size=1, max_size=3))
    left = data.draw(table({f"c{n}": pair[0] for n, pair in enumerate(pairs)}))
    right = data.draw(table({f"c{n}": pair[1] for n, pair in enumerate(pairs)}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing, "hash_bytes", lambda offsets, data: np.zeros(len(offsets) - 1, dtype=np.int64))
        agrees(left, right, (False,) * len(pairs))


@pytest.mark.parametrize("type_", [t for family in FAMILIES.values() for t in family], ids=str)
def test_null_type_matches_nothing_but_null_safely_null(type_: pa.DataType) -> None:
    some = one(type_, [*pool(type_), None])
    nulls = one(pa.null(), [None, None])
    for safe in (False, True):
        agrees(some, nulls, (safe,))
        agrees(nulls, some, (safe,))
        agrees(nulls, nulls, (safe,))


def test_null_safe_ignores_what_lies_under_a_null() -> None:
    values = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x00"), pa.array([1, 2]).buffers()[1]])
    texts = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x00"), *pa.array(["x", "yz"]).buffers()[1:]])
    batch = pa.record_batch({"a": values, "b": texts})
    bound = equal(["a", "b"], null_safe=True).bind(batch.schema, batch.schema)
    assert matrix(bound, batch, batch) == [[True, True], [True, True]]


def test_null_safe_tells_which_column_is_null() -> None:
    left = Table({"a": [None, 0, 0, None], "b": [0, None, 0, None]}, {"a": pa.int64(), "b": pa.int64()})
    agrees(left, left, (True, True))
    texts = Table({"a": [None, "", ""], "b": ["", None, ""]}, {"a": pa.string(), "b": pa.string()})
    agrees(texts, texts, (True, True))


def test_decimals_become_the_nearest_float() -> None:
    # Values that Arrow's own cast from decimal misses.
    values = [Decimal("23276.2829599804"), Decimal("9058024793897677.2379179857")]
    agrees(one(pa.decimal128(38, 10), values), one(pa.float64(), [float(v) for v in values]), (False,))


def test_more_null_safe_columns_than_bits_in_a_word() -> None:
    names = [f"c{n}" for n in range(70)]
    raws = {name: [None, 1, None if n != 69 else 1] for n, name in enumerate(names)}
    left = Table(raws, {name: pa.int8() for name in names})
    agrees(left, left, (True,) * 70)


def test_int64_without_nulls_is_not_copied() -> None:
    array = pa.array(range(10), pa.int64())
    batch = pa.record_batch({"k": array}).slice(2, 5)
    words = equal("k").bind(batch.schema, batch.schema).encode(LEFT, batch).words
    assert words.ctypes.data == array.buffers()[1].address + 16
    assert words.shape == (5, 1)


@pytest.mark.parametrize(
    "type_", [t for f in ("numbers", "local times", "booleans", "times") for t in FAMILIES[f]], ids=str
)
def test_one_word_where_64_bits_suffice(type_: pa.DataType) -> None:
    schema = pa.schema({"k": type_})
    keys = equal("k").bind(schema, schema).encode(LEFT, one(type_, pool(type_)).batch)
    assert keys.heap is None
    wide = pa.types.is_decimal(type_) and type_.precision > 18
    assert (keys.width > 1) == wide
    distinct = {naive.meaning(v, type_) if v == v else "nan" for v in pool(type_)}
    assert len(np.unique(keys.words, axis=0)) == len(distinct)


def test_null_inside_a_dictionary() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    batch = pa.record_batch({"k": array})
    assert matrix(equal("k").bind(batch.schema, batch.schema), batch, batch) == [
        [True, False, False],
        [False, False, False],
        [False, False, False],
    ]


def test_timestamps_at_the_limits_in_one_unit() -> None:
    edge = one(pa.timestamp("ns"), [-(2**63), 2**63 - 1, 0])
    agrees(edge, edge, (False,))


@pytest.mark.parametrize("value", [2**63 // 1000 + 1, -(2**63) // 1000 - 1, 2**63 - 1])
def test_value_beyond_the_finer_unit_is_an_error(value: int) -> None:
    coarse, fine = one(pa.timestamp("ms"), [0, None, value]), one(pa.timestamp("us"), [0])
    bound = equal("k").bind(coarse.schema, fine.schema)
    with pytest.raises(
        InputError, match=rf"column 'k' of the left input \(timestamp\[ms\]\): the value {value} \(ms\)"
    ):
        bound.encode(LEFT, coarse.batch)


def test_largest_values_that_fit_the_finer_unit() -> None:
    limits = [(2**63 - 1) // 1000, -(2**63 // 1000)]
    agrees(one(pa.timestamp("ms"), limits), one(pa.timestamp("us"), [v * 1000 for v in limits]), (False,))


def test_date_beyond_nanoseconds_is_an_error() -> None:
    date, fine = one(pa.date32(), [200_000]), one(pa.timestamp("ns"), [0])
    with pytest.raises(InputError, match="200000 \\(days\\) does not fit"):
        equal("k").bind(date.schema, fine.schema).encode(LEFT, date.batch)


def test_overflow_under_a_null_is_no_error() -> None:
    array = pa.Array.from_buffers(pa.timestamp("s"), 1, [pa.py_buffer(b"\x00"), pa.array([2**62]).buffers()[1]])
    batch = pa.record_batch({"k": array})
    bound = equal("k").bind(batch.schema, pa.schema({"k": pa.timestamp("ns")}))
    assert not bound.encode(LEFT, batch).valid.any()


def test_names_and_shared_columns() -> None:
    assert equal("k").shared == ("k",)
    assert equal(["a", "b"]).shared == ("a", "b")
    assert equal("k", "k").shared == ()
    assert equal("a", "b") == Equal(("a",), ("b",), (False,))
    assert str(equal(["a", "b"], ["c", "d"])) == "left.a = right.c AND left.b = right.d"
    assert str(equal("a", null_safe=True)) == "left.a <=> right.a"


def test_capabilities() -> None:
    schema = pa.schema({"k": pa.string()})
    bound = equal("k").bind(schema, schema)
    assert isinstance(bound, BoundEqual)
    assert bound.capabilities == Capability.HASHABLE | Capability.SORTABLE | Capability.SWEEPABLE
    assert bound.columns == (("k",), ("k",))


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (["a", "b"], "c", "as many columns on the left as on the right, got 2 \\(a, b\\) and 1 \\(c\\)"),
        ([], None, "expected a column name"),
        (3, None, "expected a column name"),
        (["a", 1], None, "expected a column name"),
    ],
)
def test_bad_names(left: Any, right: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        equal(left, right)


def test_batch_of_another_type_is_an_error() -> None:
    schema = pa.schema({"k": pa.int64()})
    with pytest.raises(InputError, match="has type string in a later batch"):
        equal("k").bind(schema, schema).encode(LEFT, pa.record_batch({"k": array_of(["x"], pa.string())}))
