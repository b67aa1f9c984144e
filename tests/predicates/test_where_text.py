"""Conditions as text: columns of either input, constants, and, or."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates import Conjunction, Disjunction, OneSided, bind, equal, greater, less, parse_where

A, B = less("a", "b"), equal("c", "d")


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("left.a < right.b", less("a", "b")),
        ("a < right.b", less("a", "b")),
        ("left.a < b", less("a", "b")),
        ("right.b > left.a", less("a", "b")),
        ("right.b < left.a", greater("a", "b")),
        ('left."x y" = right.`z`', equal("x y", "z")),
        ('"left.a" < b', less("left.a", "b")),
        ("left. < b", less("left.", "b")),
        ("a < 5", OneSided("a", "<", constant="5")),
        ("5 < a", OneSided("a", ">", constant="5")),
        ("left.a >= -1.5e3", OneSided("a", ">=", constant="-1.5e3", side=0)),
        ("a < `5`", less("a", "5")),
        ("right.a = 'it''s'", OneSided("a", "=", constant="it's", quoted=True, side=1)),
        ("'or' <> a", OneSided("a", "<>", constant="or", quoted=True)),
        ("left.a != left.b", OneSided("a", "<>", other="b", side=0)),
        ("a < b and c = d", Conjunction.of(A, B)),
        ("a < b OR c = d", Disjunction.of(A, B)),
        ("a<b or c=d and a<b", Disjunction.of(A, Conjunction.of(B, A))),
        ("a < b or c = 'x' or c = d", Disjunction.of(A, OneSided("c", "=", constant="x", quoted=True), B)),
        ("order < android", less("order", "android")),
        ('a < "b"or c = d', Disjunction.of(A, B)),
    ],
)
def test_what_a_text_means(text: str, condition: Any) -> None:
    assert parse_where(text) == condition


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 < 2", "compares two constants"),
        ("a < left.b", "say which input 'a' is a column of"),
        ("right.b > a", "say which input 'a' is a column of"),
        ("a < b and", "is not a comparison"),
        ("a < b or or c = d", "is not a comparison"),
        ("a < b c = d", "is not a comparison"),
        ("a < 'x", "is not a comparison"),
        ("(a < b) or c = d", "no parentheses: give several"),
    ],
)
def test_what_is_no_condition(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_where(text)


LEFT = pa.schema([("n", pa.int32()), ("s", pa.string()), ("t", pa.timestamp("s")), ("both", pa.int64())])
RIGHT = pa.schema([("d", pa.decimal128(5, 2)), ("b", pa.binary()), ("l", pa.list_(pa.int8())), ("both", pa.int64())])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("both = 1", "'both', which both inputs have; write left.both or right.both"),
        ("sn = 1", "'sn', which neither input has: did you mean .*columns of the left input: n, s"),
        ("right.n = 1", "'n' is not in the right input"),
        ("s < 5", r"'s' of the left input \(string\) with 5, a number; write it in single quotes: s < '5'"),
        ("n < 'five'", r"\(int32\) with 'five', which does not read as int32"),
        ("t < 'yesterday'", "'yesterday', which does not read as timestamp"),
        ("left.n = left.s", "nothing in common"),
        ("l = 1", "is nested, and no constant"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_data(text: str, message: str) -> None:
    with pytest.raises((InputError, UnsupportedError), match=message):
        bind(parse_where(text), LEFT, RIGHT)


@pytest.mark.parametrize(
    "text",
    [
        "n < 99999999999999999999",
        "n = 1e400",
        "d >= 1.005",
        "d < '1.005'",
        "n < '2.5'",
        "t < '2024-01-01 10:00:00.123'",
        "t < '2024-01-01'",
        "b = 'bytes'",
        "s = ''",
        "left.both = 0",
    ],
)
def test_what_fits(text: str) -> None:
    assert bind(parse_where(text), LEFT, RIGHT).text == text


def test_alternatives_with_predicates_and_constants_know_their_columns() -> None:
    bound = bind(equal("both") & (parse_where("n < d") | parse_where("b = 'x'")), LEFT, RIGHT)
    assert bound.shared == ("both",)
    assert bound.columns == (("both", "n"), ("both", "d", "b"))
    assert [part.text for part in bound.compared()] == ["left.both = right.both", "left.n < right.d"]
    assert bind(equal("n", "both") | equal("both"), LEFT, RIGHT).shared == ()  # not equal in every row
