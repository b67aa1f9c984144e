"""Which storage form a type has, and gathering from arrays of any type."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Account
from earlyjoin.state.rows.columns import Column, FixedColumn, HeapColumn
from earlyjoin.state.rows.dictionaries import plain_type
from earlyjoin.state.rows.inner_views import converted, without_inner_views
from earlyjoin.state.rows.nested_columns import ChunkedColumn, DictionaryColumn


def column_for(type_: pa.DataType, account: Account) -> Column:
    """The storage form of a type."""
    is_ = pa.types
    if is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_):
        return HeapColumn(type_, account)
    if is_.is_binary(type_) or is_.is_large_binary(type_) or is_.is_binary_view(type_):
        return HeapColumn(type_, account)
    if is_.is_dictionary(type_):
        values = column_for(plain_type(type_), account)
        # Arrow cannot encode nested values: those stay as they come.
        return ChunkedColumn(type_, account) if isinstance(values, ChunkedColumn) else DictionaryColumn(type_, values)
    flat = is_.is_primitive(type_) or is_.is_decimal(type_) or is_.is_fixed_size_binary(type_)
    if flat and not (is_.is_fixed_size_binary(type_) and type_.byte_width == 0):
        return FixedColumn(type_, account)
    return ChunkedColumn(type_, account)


def take_array(values: pa.Array, index: pa.Array) -> pa.Array:
    """``values.take(index)`` for every type, views included (Arrow has no kernel for those)."""
    if not (pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type)):
        return converted(converted(values, without_inner_views(values.type)).take(index), values.type)
    # A view is 16 bytes that point into shared data buffers: gather the views, share the data.
    validity, views, *data = values.buffers()
    fixed = pa.Array.from_buffers(pa.binary(16), len(values), [validity, views], offset=values.offset).take(index)
    return pa.Array.from_buffers(values.type, len(fixed), [*fixed.buffers(), *data])


def contiguous(index: Int64) -> bool:
    """Is the index a run of consecutive rows? Then a slice does what a gather would."""
    count = len(index)
    return count > 0 and int(index[-1]) - int(index[0]) == count - 1 and bool((np.diff(index) == 1).all())
