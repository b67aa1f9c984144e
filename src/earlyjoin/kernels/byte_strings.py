"""Comparing, joining and abbreviating byte strings that lie in a heap (int64 offsets and uint8 data)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, uint8, uint64

Offsets = npt.NDArray[np.int64]
Data = npt.NDArray[np.uint8]

_EIGHT = np.uint64(8)
_TOP_BIT = np.uint64(1 << 63)
_PREFIX_BYTES = 8


@njit(cache=True, nogil=True)
def _equal(left_offsets, left, i, right_offsets, right, j, out):  # type: ignore[no-untyped-def]
    for k in range(len(out)):
        if not out[k]:
            continue
        a, b = left_offsets[i[k]], right_offsets[j[k]]
        length = left_offsets[i[k] + 1] - a
        if right_offsets[j[k] + 1] - b != length:
            out[k] = False
            continue
        for p in range(length):
            if left[a + p] != right[b + p]:
                out[k] = False
                break


@njit(cache=True, nogil=True)
def _compare(left_offsets, left, i, right_offsets, right, j, out):  # type: ignore[no-untyped-def]
    for k in range(len(out)):
        a, b = left_offsets[i[k]], right_offsets[j[k]]
        left_length = left_offsets[i[k] + 1] - a
        right_length = right_offsets[j[k] + 1] - b
        order = left_length - right_length
        for p in range(min(left_length, right_length)):
            if left[a + p] != right[b + p]:
                order = np.int64(left[a + p]) - np.int64(right[b + p])
                break
        out[k] = 1 if order > 0 else (-1 if order < 0 else 0)


@njit(cache=True, nogil=True)
def _prefixes(offsets, data, out):  # type: ignore[no-untyped-def]
    for row in range(len(out)):
        start, stop = offsets[row], offsets[row + 1]
        word = uint64(0)
        for p in range(_PREFIX_BYTES):
            word <<= _EIGHT
            if start + p < stop:
                word |= uint64(data[start + p])
        out[row] = word ^ _TOP_BIT


@njit(cache=True, nogil=True)
def _chain(first_offsets, first, second_offsets, second, offsets, data):  # type: ignore[no-untyped-def]
    for row in range(len(offsets) - 1):
        at = offsets[row]
        length = uint64(first_offsets[row + 1] - first_offsets[row])
        for _ in range(8):
            data[at] = uint8(length & uint64(255))
            length >>= _EIGHT
            at += 1
        for p in range(first_offsets[row], first_offsets[row + 1]):
            data[at] = first[p]
            at += 1
        for p in range(second_offsets[row], second_offsets[row + 1]):
            data[at] = second[p]
            at += 1


def keep_equal(
    left_offsets: Offsets,
    left: Data,
    i: npt.NDArray[np.int64],
    right_offsets: Offsets,
    right: Data,
    j: npt.NDArray[np.int64],
    candidates: npt.NDArray[np.bool_],
) -> None:
    """Clear ``candidates[k]`` where string ``i[k]`` of the left differs from string ``j[k]`` of the right; in place."""
    _equal(left_offsets, left, i, right_offsets, right, j, candidates)


def compare(
    left_offsets: Offsets,
    left: Data,
    i: npt.NDArray[np.int64],
    right_offsets: Offsets,
    right: Data,
    j: npt.NDArray[np.int64],
) -> npt.NDArray[np.int8]:
    """-1, 0 or 1 for each pair: the bytewise order, where a prefix comes before the longer string."""
    out = np.empty(len(i), dtype=np.int8)
    _compare(left_offsets, left, i, right_offsets, right, j, out)
    return out


def prefixes(offsets: Offsets, data: Data) -> npt.NDArray[np.int64]:
    """The first eight bytes as a signed word: words in order imply strings in order, equal words decide nothing."""
    out = np.empty(len(offsets) - 1, dtype=np.uint64)
    _prefixes(offsets, data, out)
    return out.view(np.int64)


def chain(first_offsets: Offsets, first: Data, second_offsets: Offsets, second: Data) -> tuple[Offsets, Data]:
    """One string a row out of two: the length of the first in eight bytes, the first, the second.

    The length makes it one to one: ("a", "bc") and ("ab", "c") stay apart.
    """
    offsets = np.zeros(len(first_offsets), dtype=np.int64)
    np.cumsum(np.diff(first_offsets) + np.diff(second_offsets) + 8, out=offsets[1:])
    data = np.empty(int(offsets[-1]), dtype=np.uint8)
    _chain(first_offsets, first, second_offsets, second, offsets, data)
    return offsets, data
