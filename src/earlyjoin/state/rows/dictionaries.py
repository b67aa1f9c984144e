"""Dictionary-encoded columns across batches, each of which may bring a dictionary of its own."""

from __future__ import annotations

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.state.rows.inner_views import converted, without_inner_views


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values of a dictionary, in a form that Arrow can gather and encode; other types as they are."""
    return without_inner_views(type_.value_type) if pa.types.is_dictionary(type_) else type_


def decoded(values: pa.Array) -> pa.Array:
    """Dictionary-encoded values as plain values."""
    return converted(values.dictionary, plain_type(values.type)).take(values.indices)


def encoded(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Plain values with a dictionary of their own."""
    found = values.dictionary_encode()
    try:
        indices = found.indices.cast(type_.index_type)
    except pa.ArrowInvalid:
        raise InputError(
            f"a batch has {len(found.dictionary):,} different values, more than the indices of {type_} can number; "
            f"decode the column or give it wider indices"
        ) from None
    dictionary = converted(found.dictionary, type_.value_type)
    return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=type_.ordered)
