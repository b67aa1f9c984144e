"""Lengths of time as people write them, to whole nanoseconds."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction

from earlyjoin.errors import InputError

_SECOND = 10**9

_NANOSECONDS: dict[str, int] = {
    name: size
    for size, names in {
        1: "ns nanosecond nanoseconds",
        10**3: "us µs μs microsecond microseconds",
        10**6: "ms millisecond milliseconds",
        _SECOND: "s sec secs second seconds",
        60 * _SECOND: "m min mins minute minutes",
        3600 * _SECOND: "h hr hrs hour hours",
        86400 * _SECOND: "d day days",
        7 * 86400 * _SECOND: "w week weeks",
    }.items()
    for name in names.split()
}

_PART = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Zµμ]+)\s*(?:,|and\b)?")


def parse_duration(text: str) -> int:
    """The nanoseconds in a text such as ``"10 minutes"``, ``"5s"``, ``"1.5 hours"`` or ``"1h 30min"``.

    Units run from ns to weeks; months and years have no fixed length. A text without a unit, a negative one, and one
    that is not a whole number of nanoseconds are refused with InputError.

    >>> parse_duration("1.5 hours") == 5400 * 10**9
    True
    """
    total, at = Fraction(0), 0
    while at < len(text.rstrip()):
        part = _PART.match(text, at)
        if part is None:
            raise _not_a_duration(text)
        number, unit = part.groups()
        # "Minutes" is clear; "M" may mean months, so single letters count as they are.
        size = _NANOSECONDS.get(unit.lower() if len(unit) > 1 else unit)
        if size is None:
            raise _not_a_duration(text)
        total += Fraction(number) * size
        at = part.end()
    if at == 0:
        raise _not_a_duration(text)
    if total.denominator != 1:
        raise InputError(f"{text!r} is not a whole number of nanoseconds")
    return int(total)


def _not_a_duration(text: str) -> InputError:
    return InputError(
        f"{text!r} is not a length of time: write a number and a unit (ns, us, ms, s, min, h, days, weeks), "
        "such as '10 minutes', '5s' or '1h 30min'"
    )


def timedelta_nanoseconds(delta: datetime.timedelta) -> int:
    """The nanoseconds in a timedelta, also in pandas' subclass that counts below the microsecond."""
    seconds = delta.days * 86400 + delta.seconds
    return seconds * _SECOND + delta.microseconds * 1000 + int(getattr(delta, "nanoseconds", 0))
