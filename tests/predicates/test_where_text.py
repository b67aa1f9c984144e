"""Conditions as text: columns of either input, constants, and, or."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej
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


CONSTANTS = pa.schema(
    [
        ("wide", pa.decimal256(60, 2)),
        ("n", pa.int64()),
        ("f", pa.float64()),
        ("berlin", pa.timestamp("us", "Europe/Berlin")),
        ("offset", pa.timestamp("s", "+02:00")),
        ("time", pa.time32("s")),
        ("lasts", pa.duration("s")),
    ]
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("wide = 1" + 45 * "0", 10**45),
        ("n < 1" + 60 * "0", 10**60),
        ("n = '1.50'", 1.5),
        ("n = ' 7 '", 7),
        ("n = 0e999999999999999999999", 0),
        ("f = 'inf'", math.inf),
        ("berlin > '2024-01-01'", dt.datetime(2023, 12, 31, 23, tzinfo=dt.UTC)),
        ("berlin > '2024-01-01T00:00:00Z'", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ("berlin > '2024-01-01 00:00:00+05:00'", dt.datetime(2023, 12, 31, 19, tzinfo=dt.UTC)),
        ("berlin = '2024-10-27 02:30:00'", dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC)),  # shown twice
        ("berlin = '2024-03-31 02:30:00'", dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC)),  # passed over
        ("offset = '2024-07-01 12:00:00.5'", dt.datetime(2024, 7, 1, 10, 0, 0, 500_000, tzinfo=dt.UTC)),
        ("time < '00:00:01'", dt.time(0, 0, 1)),
        ("time < '7:30'", dt.time(7, 30)),
        ("time < '00:00:01.5'", dt.time(0, 0, 1, 500_000)),
        ("lasts < '5s'", dt.timedelta(seconds=5)),
        ("lasts < '-1h 30min'", -dt.timedelta(minutes=90)),
        ("lasts < '5 ms'", dt.timedelta(milliseconds=5)),
    ],
)
def test_the_value_of_a_constant(text: str, value: Any) -> None:
    (filter_,) = bind(parse_where(text), CONSTANTS, pa.schema([("other", pa.int8())])).filters
    found = filter_.constant.as_py()  # type: ignore[union-attr]
    assert (found.astimezone(dt.UTC) if isinstance(value, dt.datetime) else found) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n < 1e999999999", "more than 76 digits"),
        ("n < 1e-77", "more than 76 digits"),
        ("n < 1e12345678901234567890", "more than 76 digits"),
        ("n < 1" + 5000 * "1", "more than 76 digits"),
        ("n = 1e400", "more than 76 digits"),
        ("f < 1e99999999", "beyond the largest float"),
        ("f < '1e400'", "beyond the largest float"),
        ("n = 'sNaN'", "does not read as int64"),
        ("n = '1_000'", "does not read as int64"),
        ("n = 'inf'", "does not read as int64"),
        ("n = '0x10'", "does not read as int64"),
        ("wide = 'Infinity'", "does not read as decimal"),
        ("time < '24:00'", "does not read as time32"),
        ("lasts < '5'", "does not read as duration"),
        ("berlin < 'noon'", "does not read as timestamp"),
    ],
)
def test_constants_that_are_none(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        bind(parse_where(text), CONSTANTS, pa.schema([("other", pa.int8())]))


def test_a_constant_made_by_hand_has_the_grammar_of_texts() -> None:
    with pytest.raises(InputError, match="'1_0' is not a number"):
        bind(OneSided("n", "<", constant="1_0"), CONSTANTS, pa.schema([("other", pa.int8())]))


def test_long_constants_are_not_rounded() -> None:
    near = [10**45 - 1, 10**45, 10**45 + 1]
    table = pa.table({"k": [1, 1, 1], "c": pa.array(near, pa.decimal256(60, 0))})
    keys = pa.table({"k": [1]})
    for sign, wanted in {"=": near[1:2], "<": near[:1], ">": near[2:], "<>": near[::2]}.items():
        result = ej.join(table, keys, on="k", where=f"c {sign} 1{45 * '0'}").to_arrow()
        assert sorted(map(int, result["c"].to_pylist())) == wanted
