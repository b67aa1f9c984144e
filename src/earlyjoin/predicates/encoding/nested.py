"""Structs and lists into bytes that are equal exactly when the values are, so that they go where strings go.

A field or an element is its length, its bytes and a flag that tells a null from an empty value; every one says where it
ends, so those of a list simply follow each other. Leaves are the words of their common domain: 1 equals 1.0 there, -0.0
equals 0.0, and NaN itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from earlyjoin.kernels import byte_strings as kernels
from earlyjoin.predicates.encoding.buffers import empty_strings, plain, present
from earlyjoin.predicates.encoding.columns import InputColumn
from earlyjoin.predicates.encoding.keys import Bool, Bytes, Int64
from earlyjoin.predicates.encoding.strings import heap_of, one_heap
from earlyjoin.predicates.encoding.types import BYTES, Domain, Kind
from earlyjoin.predicates.encoding.words import ordinal_words


def nested_heap(array: pa.Array, column: InputColumn, domain: Domain) -> Bytes:
    """The bytes of a column of any domain; those of a null are empty."""
    array = plain(array)
    return _without(_bytes(array, column, domain), present(array))


def _bytes(array: pa.Array, column: InputColumn, domain: Domain) -> Bytes:
    if pt.is_null(array.type):
        return empty_strings(len(array))
    if domain.kind in BYTES:
        return heap_of(array)
    if domain.kind is Kind.STRUCT:
        # flatten() makes the fields of a null struct null: what lies under it is not looked at.
        fields = zip(array.flatten(), domain.inner, strict=True)
        return one_heap([_marked(values, column, inner) for values, inner in fields]) or empty_strings(len(array))
    if domain.kind is Kind.LIST:
        offsets, elements = _elements(array)
        marked = _marked(elements, column, domain.inner[0])
        return Bytes(marked.offsets[offsets], marked.data)
    words = ordinal_words(array, replace(column, type=array.type), domain)
    data = np.ascontiguousarray(words).view(np.uint8).reshape(-1)
    return Bytes(np.arange(len(array) + 1, dtype=np.int64) * (8 * domain.width), data)


def _marked(array: pa.Array, column: InputColumn, domain: Domain) -> Bytes:
    """Every value with its length before it and a flag behind it."""
    array = plain(array)
    valid, rows = present(array), len(array)
    heap = _without(_bytes(array, column, domain), valid)
    flags = np.ones(rows, dtype=np.uint8) if valid is None else valid.astype(np.uint8)
    return Bytes(*kernels.chain(heap.offsets, heap.data, np.arange(rows + 1, dtype=np.int64), flags))


def _elements(array: pa.Array) -> tuple[Int64, pa.Array]:
    """Where the lists begin and end among the elements that they have, and these."""
    if pt.is_fixed_size_list(array.type):
        size, rows = array.type.list_size, len(array)
        return np.arange(rows + 1, dtype=np.int64) * size, array.values.slice(array.offset * size, rows * size)
    if len(array) == 0:
        return np.zeros(1, dtype=np.int64), array.values.slice(0, 0)
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    return offsets - offsets[0], array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _without(heap: Bytes, valid: Bool | None) -> Bytes:
    """Nothing instead of what lies under a null."""
    if valid is None:
        return heap
    lengths = np.diff(heap.offsets)
    kept = heap.take(np.flatnonzero(valid))
    offsets = np.zeros(len(heap) + 1, dtype=np.int64)
    np.cumsum(np.where(valid, lengths, 0), out=offsets[1:])
    return Bytes(offsets, kept.data)
