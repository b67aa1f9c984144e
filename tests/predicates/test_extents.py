"""overlaps and intersects: closed and open ends, inverted rows, every type that has an order in one word."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates import Capability, Intersects, Overlaps, intersects, overlaps
from predicates import naive
from predicates.samples import FAMILIES, FLOATS, Table, expected, matrix, related_types, table

# Numbers that meet in one word; wider ones are refused, see below.
AXES = {name: FAMILIES[name] for name in ("booleans", "local times", "instants", "times", "durations")} | {
    "signed": [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32()],
    "unsigned": [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()],
    "narrow": [pa.int8(), pa.int32(), pa.uint32(), pa.decimal32(9, 4), pa.decimal128(3, 5), pa.decimal128(6, -2)],
    "floats": [pa.int32(), pa.decimal32(9, 4), *FLOATS],
}


@settings(deadline=None, max_examples=300)
@given(st.data(), st.booleans())
def test_overlaps(data: st.DataObject, closed: bool) -> None:
    a, b, c, d = data.draw(related_types(AXES, 4))
    left, right = data.draw(table({"s": a, "e": b})), data.draw(table({"s": c, "e": d}))
    bound = overlaps(("s", "e"), closed=closed).bind(left.schema, right.schema)

    def holds(p: tuple[Any, ...], q: tuple[Any, ...]) -> bool:
        w, x, y, z = naive.alike(*p, *q, types=(a, b, c, d))
        return naive.overlaps((w, x), (y, z), closed=closed)

    assert matrix(bound, left.batch, right.batch) == expected(left, right, holds)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_intersects(data: st.DataObject) -> None:
    xs, ys = data.draw(related_types(AXES, 4)), data.draw(related_types(AXES, 4))
    names = ("x1", "y1", "x2", "y2")
    types = [dict(zip(names, (xs[k], ys[k], xs[k + 1], ys[k + 1]), strict=True)) for k in (0, 2)]
    left, right = data.draw(table(types[0])), data.draw(table(types[1]))
    bound = intersects(names).bind(left.schema, right.schema)

    def holds(p: tuple[Any, ...], q: tuple[Any, ...]) -> bool:
        x = naive.alike(p[0], p[2], q[0], q[2], types=xs)
        y = naive.alike(p[1], p[3], q[1], q[3], types=ys)
        return naive.overlaps(x[:2], x[2:]) and naive.overlaps(y[:2], y[2:])

    assert matrix(bound, left.batch, right.batch) == expected(left, right, holds)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_small_rectangles(data: st.DataObject) -> None:
    names = ("x1", "y1", "x2", "y2")
    side = st.lists(st.tuples(*[st.integers(-2, 2)] * 4), max_size=6)
    left, right = (
        Table({n: [row[k] for row in rows] for k, n in enumerate(names)}, {n: pa.int8() for n in names})
        for rows in (data.draw(side), data.draw(side))
    )
    bound = intersects(names).bind(left.schema, right.schema)
    assert matrix(bound, left.batch, right.batch) == expected(left, right, naive.intersects)


INT = pa.int64()


def one_interval(start: Any, end: Any, type_: pa.DataType = INT) -> Table:
    return Table({"s": [start], "e": [end]}, {"s": type_, "e": type_})


@pytest.mark.parametrize(
    ("left", "right", "closed", "open_"),
    [
        ((1, 2), (2, 3), True, False),
        ((2, 2), (1, 3), True, True),
        ((2, 2), (2, 2), True, False),
        ((3, 1), (0, 9), False, False),
        ((1, None), (0, 9), False, False),
        ((-(2**63), 2**63 - 1), (2**63 - 1, 2**63 - 1), True, False),
    ],
)
def test_ends(left: tuple[Any, Any], right: tuple[Any, Any], closed: bool, open_: bool) -> None:
    a, b = one_interval(*left), one_interval(*right)
    for flag, answer in ((True, closed), (False, open_)):
        for p, q in ((a, b), (b, a)):
            bound = overlaps(("s", "e"), closed=flag).bind(p.schema, q.schema)
            assert matrix(bound, p.batch, q.batch) == [[answer]]


def test_nan_bounds_nothing_but_infinity_does() -> None:
    whole, number = float("inf"), one_interval(1.0, 2.0, pa.float64())
    for left, answer in (((-whole, whole), True), ((0.0, float("nan")), False), ((float("nan"), whole), False)):
        a = one_interval(*left, pa.float64())
        assert matrix(overlaps(("s", "e")).bind(a.schema, number.schema), a.batch, number.batch) == [[answer]]


def test_capabilities_and_words() -> None:
    a = one_interval(1, 5)
    bound = overlaps(("s", "e")).bind(a.schema, a.schema)
    assert bound.capabilities == Capability.SWEEPABLE | Capability.SORTABLE
    assert bound.encode(0, a.batch).words.tolist() == [[1, 5]]
    assert intersects(("s", "s", "e", "e")).bind(a.schema, a.schema).encode(1, a.batch).words.tolist() == [[1, 1, 5, 5]]


@pytest.mark.parametrize("types", [(pa.int64(), pa.uint64()), (pa.string(), pa.string()), (pa.decimal128(38, 2),) * 2])
def test_refuses_what_has_no_single_word(types: tuple[pa.DataType, pa.DataType]) -> None:
    schema = pa.schema({"s": types[0], "e": types[1]})
    with pytest.raises(UnsupportedError, match=r"overlaps compares values of at most 64 bits.*column 's' of the left"):
        overlaps(("s", "e")).bind(schema, schema)


def test_wrong_number_of_columns() -> None:
    with pytest.raises(InputError, match="overlaps takes 2 columns of each input, got 3: a, b, c"):
        overlaps(("a", "b", "c"))
    with pytest.raises(InputError, match="intersects takes 4 columns of each input, got 1: a"):
        intersects("a")


def test_text() -> None:
    assert str(overlaps(("a", "b"), ("c", "d"), closed=False)) == "(left.a, left.b) overlaps (right.c, right.d)"
    assert overlaps(["a", "b"]) == Overlaps(("a", "b"), ("a", "b"))
    assert intersects(list("abcd")) == Intersects(tuple("abcd"), tuple("abcd"))
