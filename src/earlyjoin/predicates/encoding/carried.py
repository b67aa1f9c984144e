"""The form in which columns travel through a join when Arrow cannot gather, join or encode their own type.

Unions, run-end encoded values, list views and dictionaries of nested values become structs, lists and plain values when
they arrive, and are given their own type back when rows are built. All other types travel as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from earlyjoin.errors import InputError

_MEMBER = "member of a union"
"""The first field of a union's form: which of the others has the value."""


def carried_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of the rows of an input on their way."""
    types = [carried_type(field.type) for field in schema]
    if all(one == field.type for one, field in zip(types, schema, strict=True)):
        return schema
    return pa.schema([field.with_type(one) for one, field in zip(types, schema, strict=True)])


def empty_table(schema: pa.Schema) -> pa.Table:
    """No rows of any types; Arrow's own ``Schema.empty_table`` has no unions."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def carried_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch as its rows travel."""
    schema = carried_schema(batch.schema)
    if schema is batch.schema or not batch.num_columns:
        return batch
    return pa.RecordBatch.from_arrays([to_carried(column) for column in batch.columns], schema=schema)


def restored_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch that has travelled, in the types of ``schema``."""
    if not batch.num_columns:
        return batch
    pairs = zip(batch.columns, schema, strict=True)
    return pa.RecordBatch.from_arrays([from_carried(column, field.type) for column, field in pairs], schema=schema)


def carried_type(type_: pa.DataType) -> pa.DataType:
    """The type itself where Arrow has all that a join needs, otherwise one that holds the same values."""
    return _form(type_) if _needs_form(type_) else type_


def is_carried_union(type_: pa.DataType) -> bool:
    """Is a type the form of a union?"""
    return bool(pt.is_struct(type_) and type_.num_fields and type_.field(0).name == _MEMBER)


def to_carried(values: pa.Array) -> pa.Array:
    """Values of any type, as they travel."""
    return _down(values) if _needs_form(values.type) else values


def from_carried(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Values that have travelled, in their own type again; a null of a union is one of its first member."""
    return _up(values, type_) if _needs_form(type_) else values


def _is_list_view(type_: pa.DataType) -> bool:
    return bool(pt.is_list_view(type_) or pt.is_large_list_view(type_))


def _needs_form(type_: pa.DataType) -> bool:
    if isinstance(type_, pa.BaseExtensionType):
        return _needs_form(type_.storage_type)
    if pt.is_union(type_) or pt.is_run_end_encoded(type_) or _is_list_view(type_):
        return True
    if pt.is_dictionary(type_):
        value = type_.value_type
        return bool(pt.is_nested(value) or isinstance(value, pa.BaseExtensionType) or pt.is_null(value))
    return any(_needs_form(type_.field(number).type) for number in range(type_.num_fields))


def _form(type_: pa.DataType) -> pa.DataType:
    """Without unions, run ends, dictionaries and views, at any depth."""
    if isinstance(type_, pa.BaseExtensionType):
        return _form(type_.storage_type)
    if pt.is_dictionary(type_) or pt.is_run_end_encoded(type_):
        return _form(type_.value_type)
    if pt.is_string_view(type_) or pt.is_binary_view(type_):
        return pa.large_string() if pt.is_string_view(type_) else pa.large_binary()
    if pt.is_union(type_):
        members = [pa.field(str(n), _form(type_.field(n).type)) for n in range(type_.num_fields)]
        return pa.struct([pa.field(_MEMBER, pa.int8()), *members])
    fields = [type_.field(n).with_type(_form(type_.field(n).type)) for n in range(type_.num_fields)]
    if pt.is_struct(type_):
        return pa.struct(fields)
    if pt.is_map(type_):
        key, item = (one.with_type(_form(one.type)) for one in (type_.key_field, type_.item_field))
        return pa.map_(key, item, keys_sorted=type_.keys_sorted)
    if pt.is_fixed_size_list(type_):
        return pa.list_(fields[0], type_.list_size)
    if pt.is_large_list(type_) or pt.is_large_list_view(type_):
        return pa.large_list(fields[0])
    return pa.list_(fields[0]) if pt.is_list(type_) or pt.is_list_view(type_) else type_


def _down(values: pa.Array) -> pa.Array:
    """From its own type to its form."""
    type_, form = values.type, _form(values.type)
    if len(values) == 0:
        return pa.nulls(0, form)
    if isinstance(type_, pa.BaseExtensionType):
        return _down(values.storage)
    if pt.is_dictionary(type_):
        return _down(values.dictionary).take(values.indices)
    if pt.is_run_end_encoded(type_):
        rows = np.arange(values.offset, values.offset + len(values))
        ends = values.run_ends.to_numpy(zero_copy_only=False)
        return _down(values.values).take(pa.array(np.searchsorted(ends, rows, side="right")))
    if pt.is_union(type_):
        return _union_down(values, form)
    if _is_list_view(type_):
        return _list_view_down(values, form)
    if pt.is_string_view(type_) or pt.is_binary_view(type_):
        return values.cast(form)
    return _with_children(values, form, _down) if type_.num_fields else values


def _up(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """From the form of a type back to the type."""
    if len(values) == 0:
        return pa.nulls(0, type_)
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, _up(values, type_.storage_type))
    if pt.is_dictionary(type_):
        return _dictionary_up(values, type_)
    if pt.is_run_end_encoded(type_):
        ends = pa.array(np.arange(1, len(values) + 1), type_.run_end_type)
        return pa.RunEndEncodedArray.from_arrays(ends, _up(values, type_.value_type), type=type_)
    if pt.is_union(type_):
        return _union_up(values, type_)
    if _is_list_view(type_):
        return _list_view_up(values, type_)
    if pt.is_string_view(type_) or pt.is_binary_view(type_):
        return values.cast(type_)
    if not type_.num_fields:
        return values
    inner = [type_.field(number).type for number in range(type_.num_fields)]
    numbers = iter(inner)
    return _with_children(values, type_, lambda child: _up(child, next(numbers)))


def _with_children(values: pa.Array, type_: pa.DataType, convert: Any) -> pa.Array:
    """Structs, lists and maps with every child converted."""
    count, valid = len(values), _bitmap(values)
    if pt.is_struct(type_):
        children = [convert(values.field(number)) for number in range(type_.num_fields)]
        return pa.Array.from_buffers(type_, count, [valid], children=children)
    if pt.is_fixed_size_list(type_):
        inner = values.values.slice(values.offset * type_.list_size, count * type_.list_size)
        return pa.Array.from_buffers(type_, count, [valid], children=[convert(inner)])
    offsets = values.offsets.to_numpy(zero_copy_only=False)
    entries = values.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    buffers = [valid, pa.py_buffer(np.ascontiguousarray(offsets - offsets[0]))]
    return pa.Array.from_buffers(type_, count, buffers, children=[convert(entries)])


def _bitmap(values: pa.Array) -> pa.Buffer | None:
    """Validity from the first row of a slice on."""
    if values.null_count == 0:
        return None
    return pa.py_buffer(np.packbits(pc.is_valid(values).to_numpy(zero_copy_only=False), bitorder="little"))


def _codes(values: pa.Array) -> npt.NDArray[np.int8]:
    """Type codes of a union; Arrow's own ``type_codes`` takes no notice of a slice."""
    return np.frombuffer(values.buffers()[1], np.int8, len(values), values.offset)


def _union_down(values: pa.Array, form: pa.DataType) -> pa.Array:
    codes = _codes(values)
    children = [pa.array(codes)]
    for number, code in enumerate(values.type.type_codes):
        child = values.field(number)
        if values.type.mode == "dense":
            places = np.frombuffer(values.buffers()[2], np.int32, len(values), values.offset * 4)
            child = _down(child).take(pa.array(places, mask=codes != code))
        else:
            rows = np.arange(len(values))
            child = _down(child).take(pa.array(rows, mask=codes != code))
        children.append(child)
    return pa.Array.from_buffers(form, len(values), [None], children=children)


def _union_up(values: pa.Array, type_: pa.DataType) -> pa.Array:
    codes = pc.fill_null(values.flatten()[0], type_.type_codes[0]).to_numpy(zero_copy_only=False)
    children, places = [], np.zeros(len(codes), dtype=np.int32)
    for number, code in enumerate(type_.type_codes):
        child = values.flatten()[number + 1]
        if type_.mode == "dense":
            rows = np.flatnonzero(codes == code)
            places[rows] = np.arange(len(rows))
            child = child.take(pa.array(rows))
        children.append(_up(child, type_.field(number).type))
    buffers = [None, pa.py_buffer(np.ascontiguousarray(codes))]
    if type_.mode == "dense":
        buffers.append(pa.py_buffer(places))
    return pa.Array.from_buffers(type_, len(codes), buffers, children=children)


def _list_view_down(values: pa.Array, form: pa.DataType) -> pa.Array:
    sizes = values.sizes.to_numpy(zero_copy_only=False).astype(np.int64)
    if values.null_count:
        sizes = np.where(pc.is_valid(values).to_numpy(zero_copy_only=False), sizes, 0)
    starts = values.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    places = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
    kind = np.int64 if pt.is_large_list(form) else np.int32
    buffers = [_bitmap(values), pa.py_buffer(offsets.astype(kind))]
    return pa.Array.from_buffers(form, len(values), buffers, children=[_down(values.values).take(pa.array(places))])


def _list_view_up(values: pa.Array, type_: pa.DataType) -> pa.Array:
    offsets = values.offsets.to_numpy(zero_copy_only=False)
    inner = values.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    starts, sizes = (np.ascontiguousarray(one) for one in (offsets[:-1] - offsets[0], np.diff(offsets)))
    buffers = [_bitmap(values), pa.py_buffer(starts), pa.py_buffer(sizes)]
    return pa.Array.from_buffers(type_, len(values), buffers, children=[_up(inner, type_.value_type)])


def _dictionary_up(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Nested values get an entry each: Arrow cannot tell which are equal."""
    if pt.is_nested(values.type) or pt.is_null(values.type):
        present = np.flatnonzero(pc.is_valid(values).to_numpy(zero_copy_only=False))
        places = np.zeros(len(values), dtype=np.int64)
        places[present] = np.arange(len(present))
        absent = np.ones(len(values), dtype=np.bool_)
        absent[present] = False
        indices, entries = pa.array(places, mask=absent), values.take(pa.array(present))
    else:
        found = values.dictionary_encode()
        indices, entries = found.indices, found.dictionary
    try:
        indices = indices.cast(type_.index_type)
    except pa.ArrowInvalid:
        raise InputError(
            f"a batch has {len(entries):,} values, more than the indices of {type_} can number; decode the column or "
            "give it wider indices"
        ) from None
    return pa.DictionaryArray.from_arrays(indices, _up(entries, type_.value_type), ordered=type_.ordered)
