"""Orders and not equal: every pair of types against the oracle, and which keys keep the order in one word."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.errors import InputError
from earlyjoin.predicates import LEFT, Capability, greater, greater_equal, less, less_equal, not_equal
from predicates import naive
from predicates.samples import FAMILIES, Table, expected, matrix, one, pool, table, type_pairs

FUNCTIONS = {"<": less, "<=": less_equal, ">": greater, ">=": greater_equal, "<>": not_equal}
PAIRS = [pair for family in FAMILIES.values() for pair in itertools.product(family, family)]


def agrees(left: Table, right: Table, op: str) -> None:
    bound = FUNCTIONS[op]("k").bind(left.schema, right.schema)
    types = (left.types["k"], right.types["k"])

    def holds(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
        p, q = naive.alike(*a, *b, types=types)
        return naive.compares(p, op, q)

    assert matrix(bound, left.batch, right.batch) == expected(left, right, holds)


@pytest.mark.parametrize(("left", "right"), PAIRS, ids=lambda t: str(t))
def test_every_pair_of_types(left: pa.DataType, right: pa.DataType) -> None:
    for op in ("<", ">=", "<>"):
        agrees(one(left, [*pool(left), None]), one(right, [*pool(right), None], lead=1), op)


@settings(deadline=None, max_examples=150)
@given(st.data(), st.sampled_from(list(FUNCTIONS)))
def test_random_columns(data: st.DataObject, op: str) -> None:
    left, right = data.draw(type_pairs())
    agrees(data.draw(table({"k": left})), data.draw(table({"k": right})), op)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(width=64), min_size=2), st.sampled_from([pa.float64(), pa.float32()]))
def test_float_words_keep_the_order(values: list[float], type_: pa.DataType) -> None:
    batch = pa.record_batch({"k": pa.array(values, pa.float64()).cast(type_)})
    words = less("k").bind(batch.schema, batch.schema).encode(LEFT, batch).words[:, 0]
    kept = batch.column(0).to_pylist()
    for (p, u), (q, v) in itertools.combinations(zip(kept, words.tolist(), strict=True), 2):
        assert naive.order(p, q) == (u > v) - (u < v)


def test_every_nan_is_one_value() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF], dtype=np.uint64)
    batch = pa.record_batch({"k": pa.array(bits.view(np.float64))})
    words = less("k").bind(batch.schema, batch.schema).encode(LEFT, batch).words
    assert len(np.unique(words)) == 1


@settings(deadline=None, max_examples=60)
@given(st.lists(st.binary(max_size=12), max_size=8), st.lists(st.text(max_size=4), max_size=8))
def test_strings_are_ordered_by_bytes(blobs: list[bytes], texts: list[str]) -> None:
    for op in FUNCTIONS:
        agrees(one(pa.binary(), blobs), one(pa.binary_view(), blobs), op)
        agrees(one(pa.string(), texts), one(pa.large_string(), texts), op)


SORTABLE = Capability.SWEEPABLE | Capability.SORTABLE


@pytest.mark.parametrize(
    ("function", "left", "right", "capabilities"),
    [
        (less, pa.int64(), pa.int32(), SORTABLE),
        (greater_equal, pa.uint64(), pa.uint8(), SORTABLE),
        (less_equal, pa.int64(), pa.float32(), SORTABLE),
        (less, pa.decimal128(10, 2), pa.int16(), SORTABLE),
        (less, pa.int64(), pa.uint64(), Capability.SWEEPABLE),
        (less, pa.string(), pa.string(), Capability.SWEEPABLE),
        (less, pa.decimal128(38, 2), pa.int16(), Capability.SWEEPABLE),
        (not_equal, pa.int64(), pa.int64(), Capability.SWEEPABLE),
    ],
)
def test_capabilities(function: Any, left: pa.DataType, right: pa.DataType, capabilities: Capability) -> None:
    bound = function("a", "b").bind(pa.schema({"a": left}), pa.schema({"b": right}))
    assert bound.capabilities == capabilities


def test_text() -> None:
    assert [str(f("a", "b")) for f in FUNCTIONS.values()] == [f"left.a {op} right.b" for op in FUNCTIONS]


def test_takes_one_column() -> None:
    with pytest.raises(InputError, match="less takes 1 column of each input, got 2: a, b"):
        less(["a", "b"])  # type: ignore[arg-type]
