"""String views inside nested types: Arrow has no kernels for them, so they are stored as large strings."""

from __future__ import annotations

import pyarrow as pa


def without_inner_views(type_: pa.DataType) -> pa.DataType:
    """The type with large strings and bytes for the views inside lists, structs, maps and extensions."""
    is_, inner = pa.types, without_inner_views
    if is_.is_string_view(type_):
        return pa.large_string()
    if is_.is_binary_view(type_):
        return pa.large_binary()
    if isinstance(type_, pa.BaseExtensionType):
        plain = inner(type_.storage_type)
        return type_ if plain == type_.storage_type else plain
    if is_.is_struct(type_):
        return pa.struct([field.with_type(inner(field.type)) for field in type_])
    if is_.is_map(type_):
        key, item = (field.with_type(inner(field.type)) for field in (type_.key_field, type_.item_field))
        return pa.map_(key, item, keys_sorted=type_.keys_sorted)
    if is_.is_list(type_) or is_.is_large_list(type_) or is_.is_fixed_size_list(type_):
        field = type_.value_field.with_type(inner(type_.value_type))
        if is_.is_large_list(type_):
            return pa.large_list(field)
        return pa.list_(field, type_.list_size if is_.is_fixed_size_list(type_) else -1)
    return type_


def converted(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """From a type to its form without inner views, or back."""
    if values.type == type_:
        return values
    if isinstance(values.type, pa.BaseExtensionType):
        return values.storage.cast(type_)
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, values.cast(type_.storage_type))
    return values.cast(type_)
