"""Strings and bytes into a heap of exact bytes, and one word that is cheap to compare first."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.types as pt

from earlyjoin.kernels import byte_strings as kernels
from earlyjoin.kernels import hashing
from earlyjoin.predicates.encoding.buffers import byte_strings, empty_strings
from earlyjoin.predicates.encoding.keys import Bytes, Int64


def heap_of(array: pa.Array) -> Bytes:
    """The bytes of a string, binary or null column."""
    return empty_strings(len(array)) if pt.is_null(array.type) else byte_strings(array)


def hash_word(heap: Bytes) -> Int64:
    """For equality: rows with different words differ."""
    # Through the module, so that a test can force collisions.
    return hashing.hash_bytes(heap.offsets, heap.data)


def prefix_word(heap: Bytes) -> Int64:
    """For order: rows with different words are ordered as the words."""
    return kernels.prefixes(heap.offsets, heap.data)


def one_heap(heaps: list[Bytes]) -> Bytes | None:
    """The heaps of several columns as one, so that rows have equal bytes only if they do in every column."""
    if not heaps:
        return None
    return reduce(lambda a, b: Bytes(*kernels.chain(a.offsets, a.data, b.offsets, b.data)), heaps)
