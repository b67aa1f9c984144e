"""where: expressions over the joined row, and comparisons written as text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from earlyjoin.errors import InputError
from earlyjoin.predicates import Filter, equal, greater, greater_equal, less, less_equal, not_equal, parse_where, where

TABLE = pa.table({"a": pa.chunked_array([[1, None], [3], []], pa.int64()), "b": [2, 2, 2], "price": [1.0, 2.0, 3.0]})


def condition(expression: pc.Expression) -> Filter:
    result = where(expression)
    assert isinstance(result, Filter)
    return result.bind(TABLE.schema)


def test_mask_counts_null_as_false() -> None:
    assert condition(pc.field("a") < pc.field("b")).holds(TABLE).tolist() == [True, False, False]
    assert condition(~(pc.field("a") < pc.field("b"))).holds(TABLE).tolist() == [False, False, True]
    assert condition(pc.scalar(True)).holds(TABLE).tolist() == [True] * 3
    assert condition(pc.field("a").is_null()).holds(TABLE).tolist() == [False, True, False]


def test_empty_and_sliced_tables() -> None:
    found = condition(pc.field("price") > 1.5)
    assert found.holds(TABLE.slice(0, 0)).tolist() == []
    assert found.holds(TABLE.slice(1, 1)).tolist() == [True]


def test_rows_keep_their_order() -> None:
    chunks = [list(range(start, start + 1000)) for start in range(0, 50_000, 1000)]
    table = pa.table({"a": pa.chunked_array(chunks)})
    mask = Filter(pc.field("a") < 25_000).holds(table)
    assert mask.tolist() == [a < 25_000 for a in range(50_000)]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (pc.field("prise") > 1, "names the column 'prise', which does not exist: did you mean 'price'.*a, b, price"),
        (pc.field("a") + 1, "is int64, but a condition must be boolean"),
        (pc.field("a") > "x", "cannot be evaluated: .*int64, string"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_data(expression: pc.Expression, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Filter(expression).bind(TABLE.schema)


def test_ambiguous_column() -> None:
    with pytest.raises(InputError, match="'a', which is ambiguous"):
        Filter(pc.field("a") > 1).bind(pa.schema([("a", pa.int64()), ("a", pa.int64())]))


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("a < b", less("a", "b")),
        ("a<=b", less_equal("a", "b")),
        (" a > b ", greater("a", "b")),
        ("a>= b", greater_equal("a", "b")),
        ("a = b", equal("a", "b")),
        ("a == b", equal("a", "b")),
        ("a != b", not_equal("a", "b")),
        ("a <> b", not_equal("a", "b")),
        ('"a < b" < `c d`', less("a < b", "c d")),
        ("l.a-1 < größe", less("l.a-1", "größe")),
    ],
)
def test_text_becomes_a_predicate(text: str, predicate: Any) -> None:
    assert parse_where(text) == predicate
    assert where(text) == predicate


@pytest.mark.parametrize("text", ["", "a", "a <", "< b", "a b < c", "a < b < c", "a =< b", "a === b"])
def test_bad_text(text: str) -> None:
    with pytest.raises(InputError, match="is not a comparison"):
        parse_where(text)


def test_bad_argument() -> None:
    with pytest.raises(InputError, match=r"where takes a .* expression or a text"):
        where(3)


def test_equality_of_filters() -> None:
    assert Filter(pc.field("a") > 1) == Filter(pc.field("a") > 1)
    assert Filter(pc.field("a") > 1) != Filter(pc.field("a") > 2)
    assert len({Filter(pc.field("a") > 1), Filter(pc.field("a") > 1)}) == 1
