"""A column of Spark against a constant, as the core compares them.

Spark gives both sides of a comparison one type, and where that would need too many digits it rounds. So the constant is
brought to the places of the column first: what lies between two of its values becomes the nearest one that the operator
allows (``c < 1.005`` is ``c <= 1.00`` beside hundredths), and what lies beyond all its values is decided without Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from earlyjoin.predicates.encoding.types import UNITS, value_type
from earlyjoin.spark.session import functions

_MOST = 10**38
_MOST_INTEGER = 2**63
"""Beside integers Spark takes a comparison with more for true, even where the value is null."""
_A_SECOND = 10**6
"""Ticks of all of Spark's moments."""


def compared(left: Any, op: str, right: Any) -> Any:
    """A comparison of two Columns."""
    each: dict[str, Callable[[], Any]] = {
        "=": lambda: left == right,
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
        "<>": lambda: left != right,
    }
    return each[op]()


def against_constant(column: Any, type_: pa.DataType, op: str, constant: pa.Scalar) -> Any:
    """A column of an Arrow type, compared with a constant."""
    type_ = value_type(type_)
    if pt.is_boolean(type_) and not pt.is_boolean(constant.type):
        column, type_ = column.cast("int"), pa.int32()
    if pt.is_floating(type_):
        return compared(column, op, functions().lit(float(constant.as_py())))
    places = _places(type_, constant)
    if places is None:
        return compared(column, op, _literal(constant))
    if places.denominator != 1 and op in ("=", "<>"):
        return _decided(column, holds=op == "<>")
    most = _MOST_INTEGER if pt.is_integer(type_) else _MOST
    if op in ("<", "<="):
        op, number = op if places.denominator == 1 else "<=", floor(places)
    else:
        op, number = op if places.denominator == 1 or op in ("=", "<>") else ">=", ceil(places)
    if not -most <= number < most:
        return _decided(column, holds=op in (("<", "<=", "<>") if number > 0 else (">", ">=", "<>")))
    return compared(column, op, _at_places(number, type_, constant.type))


def _places(type_: pa.DataType, constant: pa.Scalar) -> Fraction | None:
    """The constant in units of the column's last place; None where it is not a number of them."""
    if pt.is_integer(type_):
        return Fraction(constant.as_py())
    if pt.is_decimal(type_):
        places: int = 10**type_.scale
        return Fraction(constant.as_py()) * places
    if pt.is_timestamp(constant.type) or pt.is_time(constant.type) or pt.is_duration(constant.type):
        whole = pa.int32() if constant.type.bit_width == 32 else pa.int64()
        return Fraction(constant.cast(whole).as_py() * _A_SECOND, UNITS[constant.type.unit])
    return None


def _at_places(number: int, type_: pa.DataType, given: pa.DataType) -> Any:
    """So many units of the column's last place; as text where Python's value would get another type or zone."""
    f = functions()
    if pt.is_integer(type_):
        return f.lit(number)
    if pt.is_decimal(type_):
        digits = str(abs(number))
        text = format(Decimal((number < 0, tuple(map(int, digits)), -type_.scale)), "f")
        return f.lit(text).cast(f"decimal({max(type_.precision, len(digits))},{type_.scale})")
    if pt.is_duration(given):
        return f.lit(timedelta(microseconds=number))
    if pt.is_timestamp(given) and given.tz is not None:
        return f.timestamp_micros(f.lit(number))
    if pt.is_timestamp(given):
        return f.lit(pa.scalar(number, pa.timestamp("us")).cast(pa.string()).as_py()).cast("timestamp_ntz")
    return f.lit(pa.scalar(number, pa.time64("us")).cast(pa.string()).as_py()).cast("time(6)")


def _decided(column: Any, *, holds: bool) -> Any:
    """The same for every value; a null compares with nothing."""
    return column.isNotNull() & functions().lit(holds)


def _literal(value: pa.Scalar) -> Any:
    if pt.is_binary(value.type) or pt.is_large_binary(value.type):
        return functions().lit(bytearray(value.as_py()))
    return functions().lit(value.as_py())
