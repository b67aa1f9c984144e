"""Lengths of time as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlyjoin.errors import InputError
from earlyjoin.predicates import parse_duration

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("10 minutes", 600 * SECOND),
        ("5s", 5 * SECOND),
        ("1.5 hours", 5400 * SECOND),
        ("1h 30min", 5400 * SECOND),
        ("1 hour, 30 minutes", 5400 * SECOND),
        ("1 day and 2 h", 26 * 3600 * SECOND),
        ("250 ms", SECOND // 4),
        ("0.5us", 500),
        ("3 µs", 3000),
        ("7ns", 7),
        ("2 weeks", 14 * 86400 * SECOND),
        ("10 Minutes", 600 * SECOND),
        (".5 s", SECOND // 2),
        ("0 s", 0),
        ("0.1 s", SECOND // 10),
        ("10min", 600 * SECOND),
    ],
)
def test_accepted(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text", ["", " ", "5", "s", "-5s", "5 parsecs", "5 months", "5 M", "1e3 s", "5s x", "1 2 s", "nan s"]
)
def test_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a length of time: write a number and a unit"):
        parse_duration(text)


def test_below_a_nanosecond() -> None:
    with pytest.raises(InputError, match="not a whole number of nanoseconds"):
        parse_duration("0.5 ns")


@given(st.integers(0, 10**12), st.sampled_from(["ns", "us", "ms", "s", "min", "h", "d", "w"]))
def test_integers_scale(count: int, unit: str) -> None:
    assert parse_duration(f"{count}{unit}") == count * parse_duration(f"1 {unit}")
