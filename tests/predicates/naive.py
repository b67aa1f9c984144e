"""The oracle: predicates over plain Python values, one pair at a time, without NumPy and without words.

A value is what an Arrow value means: int, Fraction (decimals, and seconds for everything temporal), float, bool, str,
bytes, or None.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
OPERATORS = {
    "=": lambda c: c == 0,
    "<>": lambda c: c != 0,
    "<": lambda c: c < 0,
    "<=": lambda c: c <= 0,
    ">": lambda c: c > 0,
    ">=": lambda c: c >= 0,
}


def meaning(raw: Any, type_: pa.DataType) -> Any:
    """What a raw value (ticks since the epoch for temporal types) of an Arrow type means."""
    if raw is None or pt.is_null(type_):
        return None
    if pt.is_dictionary(type_):
        return meaning(raw, type_.value_type)
    if pt.is_date32(type_):
        return Fraction(raw * 86400)
    if pt.is_date64(type_):
        return Fraction(raw // 86_400_000 * 86400)
    if pt.is_timestamp(type_) or pt.is_time(type_) or pt.is_duration(type_):
        return Fraction(raw, TICKS[type_.unit])
    return Fraction(raw) if isinstance(raw, Decimal) else raw


def alike(*values: Any, types: tuple[pa.DataType, ...]) -> tuple[Any, ...]:
    """All as floats if any of the columns is a float column."""
    plain = [t.value_type if pt.is_dictionary(t) else t for t in types]
    if any(pt.is_floating(t) for t in plain):
        return tuple(None if v is None else float(v) for v in values)
    return values


def order(a: Any, b: Any) -> int | None:
    """-1, 0, 1, or None if either is null; NaN is the largest and equal to itself."""
    if a is None or b is None:
        return None
    if isinstance(a, float):
        a_nan, b_nan = math.isnan(a), math.isnan(b)
        if a_nan or b_nan:
            return int(a_nan) - int(b_nan)
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    return int(a > b) - int(a < b)


def compares(a: Any, op: str, b: Any) -> bool:
    """Whether ``a op b`` is true, not false or unknown."""
    c = order(a, b)
    return c is not None and OPERATORS[op](c)


def equal(a: Any, b: Any, *, null_safe: bool = False) -> bool:
    """Equality of one pair of values."""
    if null_safe and (a is None or b is None):
        return a is None and b is None
    return compares(a, "=", b)


def band(a: Any, b: Any, eps: Any) -> bool:
    """|a - b| <= eps."""
    if a is None or b is None:
        return False
    return abs(a - b) <= eps  # comparisons with NaN are false


def _proper(start: Any, end: Any) -> bool:
    if any(v is None or (isinstance(v, float) and math.isnan(v)) for v in (start, end)):
        return False
    return start <= end


def overlaps(a: tuple[Any, Any], b: tuple[Any, Any], *, closed: bool = True) -> bool:
    """Whether two intervals (start, end) share a point."""
    if not _proper(*a) or not _proper(*b):
        return False
    if closed:
        return a[0] <= b[1] and b[0] <= a[1]
    return a[0] < b[1] and b[0] < a[1]


def intersects(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether two rectangles (x1, y1, x2, y2) share a point."""
    return all(overlaps((a[k], a[k + 2]), (b[k], b[k + 2])) for k in (0, 1))


def near(a: tuple[Any, ...], b: tuple[Any, ...], eps: float) -> bool:
    """Whether two points are at most eps apart, in float arithmetic, coordinate by coordinate."""
    if any(v is None or not math.isfinite(v) for v in a + b):
        return False
    total = 0.0
    for p, q in zip(a, b, strict=True):
        step = float(p) - float(q)
        total += step * step
    return total <= eps * eps
