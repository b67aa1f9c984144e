"""Comparing the words of pairs of rows: the pieces that the ``holds`` of every predicate is made of."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earlyjoin.kernels import byte_strings
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys

Int8 = npt.NDArray[np.int8]


def valid_pairs(left: Keys, i: Int64, right: Keys, j: Int64) -> Bool:
    """True where both rows can match at all; a new array that the caller may narrow down."""
    result = np.ones(len(i), dtype=np.bool_) if left.valid is None else left.valid[i]
    if right.valid is not None:
        result &= right.valid[j]
    return result


def equal_pairs(left: Keys, i: Int64, right: Keys, j: Int64) -> Bool:
    """True where words and bytes are equal; says nothing about validity."""
    result = np.ones(len(i), dtype=np.bool_)
    for word in range(left.width):
        result &= left.words[:, word][i] == right.words[:, word][j]
    if left.heap is not None and right.heap is not None:
        byte_strings.keep_equal(left.heap.offsets, left.heap.data, i, right.heap.offsets, right.heap.data, j, result)
    return result


def compare_pairs(left: Keys, i: Int64, right: Keys, j: Int64) -> Int8:
    """-1, 0 or 1 for each pair: the lexicographic order of the words, then of the bytes."""
    order = np.zeros(len(i), dtype=np.int8)
    for word in range(left.width):
        a, b = left.words[:, word][i], right.words[:, word][j]
        step = (a > b).astype(np.int8) - (a < b).astype(np.int8)
        order = np.where(order == 0, step, order)
    if left.heap is not None and right.heap is not None:
        tied = np.flatnonzero(order == 0)
        order[tied] = byte_strings.compare(
            left.heap.offsets, left.heap.data, i[tied], right.heap.offsets, right.heap.data, j[tied]
        )
    return order


def both(a: Bool | None, b: Bool | None) -> Bool | None:
    """The conjunction of two masks, where None means all true."""
    if a is None or b is None:
        return b if a is None else a
    return a & b
