"""Looking into Arrow arrays as NumPy arrays, without copying where the layout allows; slices included."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from earlyjoin.predicates.encoding.carried import is_carried_union, to_carried
from earlyjoin.predicates.encoding.keys import Bool, Bytes


def plain(array: pa.Array) -> pa.Array:
    """The same values without dictionary or extension; strings, bytes and lists with offsets into one buffer.

    Unions are in the form in which they travel.
    """
    if isinstance(array.type, pa.BaseExtensionType):
        return plain(array.storage)
    if pt.is_list_view(array.type) or pt.is_large_list_view(array.type) or pt.is_union(array.type):
        return to_carried(array)
    if pt.is_dictionary(array.type):
        # The values first: Arrow cannot look up views.
        return plain(array.dictionary).take(array.indices)
    if pt.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pt.is_binary_view(array.type) or pt.is_fixed_size_binary(array.type):
        return array.cast(pa.large_binary())
    return array


def validity(array: pa.Array) -> Bool | None:
    """True where the value is not null; None when no value is null."""
    if array.null_count == 0:
        return None
    bits = array.buffers()[0]
    if bits is None:  # of a type that keeps none
        valid: Bool = pc.is_valid(array).to_numpy(zero_copy_only=False)
        return valid
    # to_numpy would import pandas for booleans.
    first, last = array.offset, array.offset + len(array)
    held = np.frombuffer(bits, np.uint8, (last + 7) // 8 - first // 8, first // 8)
    return np.unpackbits(held, count=first % 8 + len(array), bitorder="little")[first % 8 :].view(np.bool_)


def present(array: pa.Array) -> Bool | None:
    """As ``validity``, where a union is also null when the member that it has is null."""
    if not is_carried_union(array.type):
        return validity(array)
    # only the member that has the value can be anything but null
    members = [present(member) for member in array.flatten()[1:]]
    known = [valid for valid in members if valid is not None]
    return None if len(known) < len(members) else np.logical_or.reduce(known, axis=0)


def fixed_width(array: pa.Array, dtype: npt.DTypeLike, items: int = 1) -> npt.NDArray[Any]:
    """The values of an array of fixed-width type, ``items`` of ``dtype`` a value; under a null lies anything."""
    kind = np.dtype(dtype)
    count = len(array) * items
    if count == 0:
        return np.empty(0, dtype=kind)
    return np.frombuffer(array.buffers()[1], kind, count, array.offset * items * kind.itemsize)


def of_numbers(values: npt.NDArray[Any]) -> pa.Array:
    """As ``pyarrow.array``, which would import pandas to ask whether this is a pandas object."""
    held = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(held.dtype), len(held), [None, pa.py_buffer(held)])


def byte_strings(array: pa.Array) -> Bytes:
    """The bytes of a plain string or binary array; a null has the bytes that lie under it."""
    rows = len(array)
    if rows == 0:
        return empty_strings(0)
    _, offsets_buffer, data_buffer = array.buffers()
    dtype = np.dtype(np.int64 if pt.is_large_string(array.type) or pt.is_large_binary(array.type) else np.int32)
    offsets = np.frombuffer(offsets_buffer, dtype, rows + 1, array.offset * dtype.itemsize)
    has_data = data_buffer is not None and data_buffer.size > 0
    data = np.frombuffer(data_buffer, np.uint8) if has_data else np.empty(0, dtype=np.uint8)
    return Bytes(offsets.astype(np.int64, copy=False), data)


def empty_strings(rows: int) -> Bytes:
    """As many empty strings."""
    return Bytes(np.zeros(rows + 1, dtype=np.int64), np.empty(0, dtype=np.uint8))


def blank_nulls(array: pa.Array) -> pa.Array:
    """Plain strings or bytes with every null replaced by the empty one, so that nulls have equal bytes."""
    if array.null_count == 0 or pt.is_null(array.type):
        return array
    text = pt.is_string(array.type) or pt.is_large_string(array.type)
    return array.fill_null("" if text else b"")
