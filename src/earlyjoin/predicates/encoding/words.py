"""One column into words: signed 64-bit integers that are equal and ordered as the values are.

Every kind of value has its function here. What a null means is up to the predicate: words under a null are arbitrary.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from earlyjoin.errors import InputError
from earlyjoin.kernels.ordinals import float_ordinals, unsigned_ordinals
from earlyjoin.kernels.wide_integers import scaled_words
from earlyjoin.predicates.encoding.buffers import fixed_width, validity
from earlyjoin.predicates.encoding.columns import InputColumn
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.predicates.encoding.types import UNITS, Domain, Kind, value_type

_MS_A_DAY = 86_400_000
_SECONDS_A_DAY = 86_400

Float64 = npt.NDArray[np.float64]


def ordinal_words(array: pa.Array, column: InputColumn, domain: Domain) -> Int64:
    """The values as (n, ``domain.width``) words in lexicographic order; for every domain but strings and bytes.

    ``array`` is plain, as :meth:`Column.of` gives it. An int64 column is not copied.
    """
    if pt.is_null(array.type) or domain.kind is Kind.NULL:
        return np.zeros((len(array), domain.width), dtype=np.int64)
    if pt.is_boolean(array.type):
        array = array.cast(pa.uint8())
    if domain.kind is Kind.DECIMAL:
        return _decimal_words(array, domain)
    if domain.kind is Kind.FLOAT:
        words = float_ordinals(float_values(array))
    elif domain.kind is Kind.UNSIGNED:
        words = unsigned_ordinals(_integers(array).astype(np.uint64, copy=False))
    elif domain.kind in (Kind.INTEGER, Kind.BOOLEAN):
        words = _integers(array).astype(np.int64, copy=False)
    else:
        words = _ticks(array, column, domain)
    return words.reshape(-1, 1)


def float_values(array: pa.Array) -> Float64:
    """Numbers of any type as float64, rounded to the nearest; for a null column, zeros."""
    if pt.is_null(array.type):
        return np.zeros(len(array), dtype=np.float64)
    if pt.is_decimal(array.type):
        # Through text: Arrow's own cast makes 23276.282959980403 of the decimal 23276.2829599804.
        array = array.cast(pa.string()).cast(pa.float64())
    if pt.is_integer(array.type):
        return _integers(array).astype(np.float64)
    return fixed_width(array, f"f{array.type.bit_width // 8}").astype(np.float64, copy=False)


def _integers(array: pa.Array) -> npt.NDArray[Any]:
    sign = "i" if pt.is_signed_integer(array.type) else "u"
    return fixed_width(array, f"{sign}{array.type.bit_width // 8}")


def _decimal_words(array: pa.Array, domain: Domain) -> Int64:
    """Decimals and integers at the scale of the domain."""
    if pt.is_integer(array.type):
        values, scale = _integers(array), 0
        extended = values.astype(np.uint64) if values.dtype.kind == "u" else values.astype(np.int64).view(np.uint64)
        # An unsigned value may have the top bit set without being negative, so it gets a limb of zeros above.
        limbs = np.zeros((len(values), 2), dtype=np.uint64)
        limbs[:, 0] = extended
        if values.dtype.kind == "i":
            limbs[:, 1] = (values.astype(np.int64) >> 63).view(np.uint64)
    else:
        scale = array.type.scale
        if array.type.bit_width == 32:
            limbs = fixed_width(array, np.int32).astype(np.int64).view(np.uint64).reshape(-1, 1)
        else:
            items = array.type.bit_width // 64
            limbs = fixed_width(array, np.uint64, items).reshape(-1, items)
    power = domain.scale - scale
    if domain.width == 1:
        words: Int64 = limbs[:, :1].view(np.int64) * np.int64(10**power)
        return words
    return scaled_words(limbs, power, domain.width)


def _ticks(array: pa.Array, column: InputColumn, domain: Domain) -> Int64:
    """Dates, timestamps, times and durations as ticks of the domain's unit (dates: days)."""
    type_ = array.type
    values = fixed_width(array, f"i{type_.bit_width // 8}").astype(np.int64, copy=False)
    if pt.is_date(type_):
        # A date64 should be whole days; one that is not means the day it lies in.
        days = values // _MS_A_DAY if pt.is_date64(type_) else values
        if domain.kind is Kind.DATE:
            return days
        return _finer(days, _SECONDS_A_DAY * UNITS[domain.unit], array, column, domain)
    return _finer(values, UNITS[domain.unit] // UNITS[type_.unit], array, column, domain)


def _finer(values: Int64, factor: int, array: pa.Array, column: InputColumn, domain: Domain) -> Int64:
    """``values * factor``, or an InputError naming the first value whose product has more than 64 bits."""
    if factor == 1 or len(values) == 0:
        return values
    beyond = (values > (2**63 - 1) // factor) | (values < -(2**63 // factor))
    if beyond.any():
        valid = validity(array)
        if valid is not None:
            beyond &= valid
        if beyond.any():
            first = int(values[int(np.argmax(beyond))])
            unit = "days" if pt.is_date(value_type(column.type)) else value_type(column.type).unit
            raise InputError(
                f"{column}: the value {first} ({unit}) does not fit in 64 bits when it is compared as {domain}; "
                "cast the column of the finer unit to a coarser one, or leave such values out"
            )
    return values * np.int64(factor)
