"""band: distances against the oracle, every form of eps, the int64 limits."""

from __future__ import annotations

import datetime
import itertools
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.types as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates import LEFT, Capability, band
from predicates import naive
from predicates.samples import FAMILIES, FLOATS, INTEGERS, Table, expected, matrix, one, pool, table

NARROW = [pa.decimal32(9, 4), pa.decimal64(18, 6), pa.decimal128(5, 2), pa.decimal128(3, 5), pa.decimal128(6, -2)]
TIMES = [p for f in ("local times", "instants", "times", "durations") for p in itertools.product(FAMILIES[f], repeat=2)]


def fits(a: pa.DataType, b: pa.DataType) -> bool:
    """Whether band takes the pair: all but exact numbers that together need more than one word."""
    if pt.is_floating(a) or pt.is_floating(b):
        return True
    if pt.is_integer(a) and pt.is_integer(b):
        return pa.uint64() not in (a, b) or not (pt.is_signed_integer(a) or pt.is_signed_integer(b))
    digits = {8: 3, 16: 5, 32: 10, 64: 19}
    whole = [digits[t.bit_width] if pt.is_integer(t) else t.precision - t.scale for t in (a, b)]
    return max(whole) + max(0 if pt.is_integer(t) else t.scale for t in (a, b)) <= 18


NUMBERS = list(itertools.product(INTEGERS + FLOATS + NARROW, repeat=2))


def agrees(left: Table, right: Table, eps: Any, meaning: Any) -> None:
    bound = band("k", eps=eps).bind(left.schema, right.schema)
    types = (left.types["k"], right.types["k"])

    def holds(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
        p, q = naive.alike(*a, *b, types=types)
        return naive.band(p, q, float(meaning) if isinstance(p, float) else meaning)

    assert matrix(bound, left.batch, right.batch) == expected(left, right, holds)


@pytest.mark.parametrize(("left", "right"), [p for p in NUMBERS if fits(*p)], ids=str)
def test_every_pair_of_numbers(left: pa.DataType, right: pa.DataType) -> None:
    a, b = one(left, [*pool(left), None]), one(right, [*pool(right), None], lead=1)
    for eps in (0, 1, 0.1, Decimal("1.25"), "0.01", 2**62, 2**63 - 1):
        agrees(a, b, eps, Fraction(str(eps)))


@pytest.mark.parametrize(("left", "right"), [p for p in NUMBERS if not fits(*p)], ids=str)
def test_wide_numbers_are_refused(left: pa.DataType, right: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match=r"column 'k' of the left input .*column 'k' of the right .*cast both"):
        band("k", eps=1).bind(pa.schema({"k": left}), pa.schema({"k": right}))


@pytest.mark.parametrize(("left", "right"), TIMES, ids=str)
def test_every_pair_of_times(left: pa.DataType, right: pa.DataType) -> None:
    a, b = one(left, [*pool(left), None]), one(right, [*pool(right), None], lead=1)
    for eps, seconds in (
        (datetime.timedelta(microseconds=1), Fraction(1, 10**6)),
        ("1 day", Fraction(86400)),
        ("1.5 hours", Fraction(5400)),
        ("1ns", Fraction(1, 10**9)),
        (pd.Timedelta(1, "ns"), Fraction(1, 10**9)),
        (datetime.timedelta(hours=36), Fraction(36 * 3600)),
    ):
        agrees(a, b, eps, seconds)
    days = pt.is_date(left) and pt.is_date(right)
    agrees(a, b, 1, Fraction(86400 if days else 1))
    agrees(a, b, "0.5", Fraction(43200 if days else Fraction(1, 2)))


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_random_columns(data: st.DataObject) -> None:
    left, right = data.draw(st.sampled_from([p for p in NUMBERS if fits(*p)]))
    eps = data.draw(st.sampled_from([0, 1, 3, 0.5, 100]))
    agrees(data.draw(table({"k": left})), data.draw(table({"k": right})), eps, Fraction(eps))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6),
    st.integers(0, 2**63 - 1),
)
def test_int64_never_wraps(left: list[int], right: list[int], eps: int) -> None:
    limits = [-(2**63), 2**63 - 1]
    agrees(one(pa.int64(), left + limits), one(pa.int64(), right + limits), eps, eps)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(), min_size=1, max_size=8), st.lists(st.floats(), min_size=1, max_size=8), st.data())
def test_float_window_holds_all_matches(left: list[float], right: list[float], data: st.DataObject) -> None:
    gaps = [abs(a - b) for a in left for b in right if np.isfinite(a - b)]
    eps = data.draw(st.sampled_from(gaps) if gaps else st.just(1.0))
    check_window(one(pa.float64(), left), one(pa.float64(), right), eps)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers(0, 2**63 - 1))
def test_int_window_is_exact(values: list[int], eps: int) -> None:
    bound = band("k", eps=eps).bind(pa.schema({"k": pa.int64()}), pa.schema({"k": pa.int64()}))
    low, high = bound.window(np.array(values, dtype=np.int64))
    assert low.tolist() == [max(v - eps, -(2**63)) for v in values]
    assert high.tolist() == [min(v + eps, 2**63 - 1) for v in values]


def check_window(left: Table, right: Table, eps: Any) -> None:
    bound = band("k", eps=eps).bind(left.schema, right.schema)
    held = np.array(matrix(bound, left.batch, right.batch))
    low, high = bound.window(bound.encode(LEFT, left.batch).words[:, 0])
    words = bound.encode(1, right.batch).words[:, 0]
    inside = (low[:, None] <= words[None, :]) & (words[None, :] <= high[:, None])
    assert not (held & ~inside).any()


def test_eps_word_and_words() -> None:
    cases = [
        (pa.int32(), 2.9, 2, np.int64),
        (pa.float32(), 2.5, 2.5, np.float64),
        (pa.decimal128(10, 2), 0.29, 29, np.int64),
        (pa.timestamp("ms"), "5s", 5000, np.int64),
        (pa.date32(), 2, 2, np.int64),
        (pa.date32(), datetime.timedelta(hours=47), 1, np.int64),
        (pa.decimal128(10, 2), 10**30, 2**63 - 1, np.int64),
        (pa.int8(), 10**30, 2**63 - 1, np.int64),
    ]
    for type_, eps, word, dtype in cases:
        bound = band("k", eps=eps).bind(pa.schema({"k": type_}), pa.schema({"k": type_}))
        assert bound.eps_word == word
        assert bound.encode(LEFT, one(type_, []).batch).words.dtype == dtype
        assert bound.capabilities == Capability.SORTABLE | Capability.BANDED | Capability.SWEEPABLE


def test_null_column_matches_nothing() -> None:
    for other in (pa.null(), pa.int64(), pa.float64(), pa.date32()):
        some = one(other, pool(other)[:2] or [None, None])
        assert matrix(
            band("k", eps=9).bind(pa.schema({"k": pa.null()}), some.schema), one(pa.null(), [None]).batch, some.batch
        ) == [[False, False]]


@pytest.mark.parametrize(
    ("eps", "message"),
    [
        (-1, "negative"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        (Decimal("NaN"), "finite"),
        (Decimal("sNaN"), "finite"),
        ("inf", "finite"),
        ("-3", "negative"),
        ("-3 s", "not a length of time"),
        (datetime.timedelta(seconds=-1), "negative"),
        ("soon", "not a length of time"),
        (None, "must be a number"),
        (True, "must be a number"),
        (Decimal("1e5000"), "too large"),
    ],
)
def test_bad_eps(eps: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        band("k", eps=eps)


@pytest.mark.parametrize(
    ("type_", "eps", "message"),
    [
        (pa.int64(), 2**63, "does not fit in 63 bits"),
        (pa.timestamp("ns"), "20000 weeks", "does not fit in 63 bits"),
        (pa.int64(), "5 s", "is a length of time but the columns are compared as integer"),
        (pa.float64(), datetime.timedelta(1), "is a length of time"),
        (pa.float64(), 10**400, "too large"),
        (pa.string(), 1, "band needs columns with distances"),
        (pa.bool_(), 1, "band needs columns with distances"),
    ],
)
def test_eps_that_does_not_fit_the_columns(type_: pa.DataType, eps: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        band("k", eps=eps).bind(pa.schema({"k": type_}), pa.schema({"k": type_}))


def test_eps_is_kept_as_a_plain_value() -> None:
    cases = [
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.int64(3), 3),
        (pd.Timedelta("5s"), datetime.timedelta(seconds=5)),
        (pd.Timedelta(1, "ns"), "1 ns"),
    ]
    for eps, kept in cases:
        assert band("k", eps=eps).eps == kept
        assert type(band("k", eps=eps).eps) is type(kept)


def test_text() -> None:
    assert str(band("a", "b", eps="10 minutes")) == "|left.a - right.b| <= 10 minutes"
