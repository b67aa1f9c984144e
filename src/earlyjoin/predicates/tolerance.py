"""The largest distance that still matches, ``eps``: reading it exactly, and turning it into the words' unit."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np

from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates.encoding.types import TEMPORAL, UNITS, Domain, Kind
from earlyjoin.predicates.written.durations import parse_duration, timedelta_nanoseconds

Tolerance = int | float | Decimal | datetime.timedelta | str
"""A number, a length of time, or either one as text."""

MAX_EPS_WORD = 2**63 - 1
_DAY_NS = 86_400 * 10**9
_SECOND_NS = 10**9
_MAX_EXPONENT = 400  # beyond any float; keeps Decimal("1e1000000000") from becoming an integer of that many digits


def number_eps(eps: object, what: str) -> Fraction:
    """A distance between numbers, exactly as it was written (0.1 means one tenth), or InputError."""
    value: Any = eps
    if isinstance(value, str):
        try:
            value = Decimal(value)
        except InvalidOperation:
            raise InputError(f"{what}: eps must be a number, got {eps!r}") from None
    value = _without_numpy(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise InputError(f"{what}: eps must be a number, got {eps!r}")
    if not (value.is_finite() if isinstance(value, Decimal) else isinstance(value, int) or math.isfinite(value)):
        raise InputError(f"{what}: eps must be finite, got {eps!r}")
    if value < 0:
        raise InputError(f"{what}: eps must not be negative, got {eps!r}")
    if isinstance(value, Decimal) and value.adjusted() > _MAX_EXPONENT:
        raise InputError(f"{what}: eps is too large, got {eps!r}")
    # repr gives the shortest text that reads back as the same float: what was written.
    return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)


def float_eps(eps: object, what: str) -> float:
    """A distance between floats."""
    try:
        return float(number_eps(eps, what))
    except OverflowError:
        raise InputError(f"{what}: eps is too large for float64, got {eps!r}") from None


def plain_eps(eps: object, what: str) -> Tolerance:
    """``eps`` as a plain Python value; what can be no distance in any domain is refused, before the types are known."""
    if isinstance(eps, datetime.timedelta):
        nanoseconds = timedelta_nanoseconds(eps)
        if nanoseconds < 0:
            raise InputError(f"{what}: eps must not be negative, got {eps!r}")
        # A pandas Timedelta may be finer than Python's.
        return f"{nanoseconds} ns" if nanoseconds % 1000 else datetime.timedelta(microseconds=nanoseconds // 1000)
    if isinstance(eps, str):
        if _is_number(eps):
            number_eps(eps, what)
        else:
            parse_duration(eps)
        return eps
    number_eps(eps, what)
    plain: int | float | Decimal = _without_numpy(eps)
    return plain


def eps_in_words(eps: object, domain: Domain, what: str) -> int | float:
    """``eps`` in the unit of the domain's words: an int of at most 63 bits, or a float for floats.

    Words of an exact domain are whole numbers, so rounding ``eps`` down changes no answer.
    """
    if domain.kind is Kind.FLOAT:
        _refuse_time(eps, domain, what)
        return float_eps(eps, what)
    if domain.kind in TEMPORAL:
        unit_ns = _DAY_NS if domain.kind is Kind.DATE else _SECOND_NS // UNITS[domain.unit]
        word = math.floor(_time_eps(eps, domain, what) / unit_ns)
    else:
        _refuse_time(eps, domain, what)
        word = math.floor(number_eps(eps, what) * Fraction(10) ** domain.scale)
    if word <= MAX_EPS_WORD:
        return word
    if domain.kind is Kind.DATE or domain.kind is Kind.DECIMAL or (domain.kind is Kind.INTEGER and domain.digits <= 10):
        return MAX_EPS_WORD  # no two values are that far apart, so nothing changes
    raise InputError(f"{what}: eps {eps!r} does not fit in 63 bits as {domain}; the largest is {MAX_EPS_WORD}")


def _time_eps(eps: object, domain: Domain, what: str) -> Fraction:
    """``eps`` in nanoseconds; a bare number counts days for dates and seconds for the rest."""
    if isinstance(eps, datetime.timedelta):
        return Fraction(timedelta_nanoseconds(eps))
    if isinstance(eps, str) and not _is_number(eps):
        return Fraction(parse_duration(eps))
    return number_eps(eps, what) * (_DAY_NS if domain.kind is Kind.DATE else _SECOND_NS)


def _without_numpy(value: Any) -> Any:
    if isinstance(value, np.floating):
        return float(value)
    return value.item() if isinstance(value, np.generic) else value


def _is_number(text: str) -> bool:
    try:
        Decimal(text)
    except InvalidOperation:
        return False
    return True


def _refuse_time(eps: object, domain: Domain, what: str) -> None:
    if isinstance(eps, datetime.timedelta) or (isinstance(eps, str) and not _is_number(eps)):
        raise UnsupportedError(f"{what}: eps {eps!r} is a length of time but the columns are compared as {domain}")
