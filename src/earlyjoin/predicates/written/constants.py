"""What a constant in a condition may mean beside a column of some type.

A number is exact beside integers and decimals, up to the 76 digits of Arrow's widest decimal, and a float beside
floats. Text in quotes is read as the column's type, or as one that holds more of it: moments between two ticks of the
column, decimals beside integers. A moment without an offset is one of the column's time zone.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import zoneinfo
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as pt

from earlyjoin.errors import InputError
from earlyjoin.predicates.encoding.types import UNITS, value_type
from earlyjoin.predicates.written.durations import parse_duration

NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
"""A number as texts may have it."""

MOST_DIGITS = 76
"""Of Arrow's widest decimal."""
_MOST_EXPONENT_DIGITS = 6
_FLOAT_WORDS = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
_TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?", re.ASCII)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", re.ASCII)


def constants(text: str, type_: pa.DataType, *, quoted: bool, what: str) -> Iterator[pa.Array]:
    """What a constant may mean beside values of a type, the likeliest first: an array of one value each.

    ``what`` is the condition, for messages.
    """
    type_ = value_type(type_)
    if not quoted:
        yield _number(text, what, floating=pt.is_floating(type_))
        return
    yield from _read(text, type_, what)
    yield pa.array([text], pa.string())


def _read(text: str, type_: pa.DataType, what: str) -> Iterator[pa.Array]:
    """Text in quotes as a value of a type, or of one that holds more."""
    if pt.is_floating(type_):
        yield from _floats(text.strip(), type_, what)
    elif pt.is_integer(type_) or pt.is_decimal(type_):
        if NUMBER.fullmatch(text.strip()):
            yield _number(text.strip(), what, floating=False)
    elif pt.is_timestamp(type_):
        yield from _moments(text, type_)
    elif pt.is_date(type_):
        yield from _cast(text, type_, *(pa.timestamp(unit) for unit in ("s", "us", "ns")))
    elif pt.is_time(type_):
        yield from _ticks(
            _of_day(text.strip()), [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")], type_
        )
    elif pt.is_duration(type_):
        yield from _ticks(_length(text.strip()), [pa.duration(unit) for unit in UNITS], type_)
    elif not pt.is_null(type_):
        yield from _cast(text, type_)


def _cast(text: str, *types: pa.DataType) -> Iterator[pa.Array]:
    for type_ in types:
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            yield pa.array([text], pa.string()).cast(type_)


def _number(text: str, what: str, *, floating: bool) -> pa.Array:
    """An integer or a decimal without rounding; a float beside floats."""
    if NUMBER.fullmatch(text) is None:
        raise InputError(f"where: {what}: {text!r} is not a number")
    if floating:
        return pa.array([_float(text, what)], pa.float64())
    number, digits, scale = _exact(text, what)
    if scale == 0 and -(2**63) <= number < 2**63:
        return pa.array([int(number)], pa.int64())
    kind = pa.decimal128 if digits <= 38 else pa.decimal256
    return pa.array([number], kind(digits, scale))


def _float(text: str, what: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise InputError(f"where: {what}: {text} is beyond the largest float; compare with 'inf' in quotes if need be")
    return number


def _exact(text: str, what: str) -> tuple[Decimal, int, int]:
    """The value, its digits and how many of them stand behind the point. The context of decimals is not asked."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("+-").partition(".")
    written = (whole + fraction).lstrip("0")
    digits = written.rstrip("0")
    if not digits:
        return Decimal(0), 1, 0
    if len(exponent.lstrip("+-0")) <= _MOST_EXPONENT_DIGITS:
        power = int(exponent or "0") - len(fraction) + len(written) - len(digits)
        scale = max(0, -power)
        precision = max(0, len(digits) + power) + scale
        if precision <= MOST_DIGITS:
            each = tuple(map(int, digits)) + (0,) * max(0, power)
            return Decimal((mantissa.startswith("-"), each, -scale)), precision, scale
    raise InputError(
        f"where: {what}: the constant has more than {MOST_DIGITS} digits, the most that numbers are compared with; "
        "round it"
    )


def _floats(text: str, type_: pa.DataType, what: str) -> Iterator[pa.Array]:
    if NUMBER.fullmatch(text) is not None:
        number = pa.array([_float(text, what)], pa.float64())
        narrow = pa.array([text], pa.string()).cast(type_)
        yield number if math.isinf(narrow[0].as_py()) else narrow
    elif _FLOAT_WORDS.fullmatch(text):
        yield pa.array([float(text)], pa.float64())


def _moments(text: str, type_: pa.DataType) -> Iterator[pa.Array]:
    """Moments as exact as the column, then finer ones."""
    units = list(UNITS)[list(UNITS).index(type_.unit) :]
    plain = _cast(text, *(pa.timestamp(unit) for unit in units))
    if type_.tz is None:
        yield from plain
        return
    for moment in plain:
        with suppress(ValueError, zoneinfo.ZoneInfoNotFoundError, OverflowError):
            yield _in_zone(moment, type_.tz)
    yield from _cast(text, *(pa.timestamp(unit, "UTC") for unit in units))


def _in_zone(moment: pa.Array, zone: str) -> pa.Array:
    """A moment on the clocks of a zone.

    The first of two that they show the same; one that they pass over is as long after the change as it is after the
    last moment before it. So have Java and Spark it.
    """
    ticks = moment.cast(pa.int64())[0].as_py()
    a_second = UNITS[moment.type.unit]
    shown = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=ticks // a_second)
    offset = _zone(zone).utcoffset(shown)
    assert offset is not None
    seconds = offset // dt.timedelta(seconds=1)
    return pa.array([ticks - seconds * a_second], pa.int64()).cast(pa.timestamp(moment.type.unit, "UTC"))


def _zone(name: str) -> dt.tzinfo:
    found = _OFFSET.fullmatch(name)
    if found is None:
        return zoneinfo.ZoneInfo(name)
    sign, hours, minutes = found.groups()
    offset = dt.timedelta(hours=int(hours), minutes=int(minutes or 0))
    return dt.timezone(-offset if sign == "-" else offset)


def _of_day(text: str) -> int | None:
    """Nanoseconds since midnight."""
    found = _TIME_OF_DAY.fullmatch(text)
    if found is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups()[:3])
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return ((hours * 60 + minutes) * 60 + seconds) * 10**9 + int((found[4] or "").ljust(9, "0"))


def _length(text: str) -> int | None:
    """Nanoseconds in a length of time, which may be negative."""
    try:
        return -parse_duration(text[1:]) if text.startswith("-") else parse_duration(text)
    except InputError:
        return None


def _ticks(nanoseconds: int | None, types: list[pa.DataType], type_: pa.DataType) -> Iterator[pa.Array]:
    """In the unit of the type, or the first finer one that has the value."""
    for wanted in types:
        size = 10**9 // UNITS[wanted.unit]
        if nanoseconds is not None and UNITS[wanted.unit] >= UNITS[type_.unit] and nanoseconds % size == 0:
            ticks = nanoseconds // size
            if -(2**63) <= ticks < 2**63:
                yield pa.array([ticks], pa.int32() if wanted.bit_width == 32 else pa.int64()).cast(wanted)
            return
