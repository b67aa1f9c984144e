"""Sweep areas over keys of several words or with bytes (PMJ section 3, table 1): found by one word, then compared.

Elements are a tuple ``(sweep words, handles, words, begins, ends, data, order)``: the bytes of element k are
``data[begins[k]:ends[k]]``, ``data`` is empty for keys without a heap, and ``order`` lists the elements by value.
Querying keys are a tuple ``(words, offsets, data, valid)``. Queries go on and end as in ``sweep_ranges``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import int64, njit

from earlyjoin.kernels.hashing import mix64
from earlyjoin.kernels.sweep_ranges import first_within

Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]
Stored = tuple[Int64, Int64, Int64, Int64, Int64, UInt8, Int64]
Asking = tuple[Int64, Int64, UInt8, npt.NDArray[np.bool_]]


@njit(cache=True, nogil=True)
def _sweep_word(words: Int64, row: int) -> Any:
    """The only word, or a hash of all of them: a first column of few values must not keep half of the rows together."""
    if words.shape[1] == 1:
        return words[row, 0]
    h = mix64(words[row, 0])
    for column in range(1, words.shape[1]):
        h = mix64(h * np.uint64(31) ^ mix64(words[row, column]))
    return int64(h)


@njit(cache=True, nogil=True)
def sweep_words(words: Int64) -> Int64:
    """One word for each row, equal for equal rows."""
    out = np.empty(words.shape[0], dtype=np.int64)
    for row in range(words.shape[0]):
        out[row] = _sweep_word(words, row)
    return out


@njit(cache=True, nogil=True)
def _compare(words: Int64, a: int, others: Int64, b: int) -> int:
    for column in range(words.shape[1]):
        if words[a, column] != others[b, column]:
            return -1 if words[a, column] < others[b, column] else 1
    return 0


@njit(cache=True, nogil=True)
def _compare_bytes(data: UInt8, begin: int, end: int, other: UInt8, other_begin: int, other_end: int) -> int:
    for k in range(min(end - begin, other_end - other_begin)):
        if data[begin + k] != other[other_begin + k]:
            return -1 if data[begin + k] < other[other_begin + k] else 1
    order = (end - begin) - (other_end - other_begin)
    return -1 if order < 0 else (1 if order > 0 else 0)


@njit(cache=True, nogil=True)
def _against(stored: Stored, k: int, asking: Asking, row: int) -> int:
    """-1, 0 or 1: the order of element ``k`` and querying row ``row``."""
    order = _compare(stored[2], k, asking[0], row)
    if order == 0 and asking[1].size:
        order = _compare_bytes(stored[5], stored[3][k], stored[4][k], asking[2], asking[1][row], asking[1][row + 1])
    return order


@njit(cache=True, nogil=True)
def equal_pairs(
    stored: Stored, asking: Asking, row: int, place: int, out_handles: Int64, out_rows: Int64
) -> tuple[int, int, int]:
    """Elements with the querying row's words and bytes."""
    sweep, handles = stored[0], stored[1]
    words, valid = asking[0], asking[3]
    found = 0
    room = len(out_handles)
    hint = 0
    while row < len(words):
        if valid.size and not valid[row]:
            row += 1
            continue
        query = _sweep_word(words, row)
        if place < 0:
            place = first_within(sweep, query, np.int64(0), hint)
            hint = place
        while place < len(sweep) and sweep[place] == query:
            if _against(stored, place, asking, row) == 0:
                if found == room:
                    return found, row, place
                out_handles[found] = handles[place]
                out_rows[found] = row
                found += 1
            place += 1
        row += 1
        place = -1
    return found, row, -1


@njit(cache=True, nogil=True)
def _border(stored: Stored, asking: Asking, row: int, behind: int) -> int:
    """How many elements lie before the querying row, or (``behind`` 1) do not lie behind it."""
    order = stored[6]
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) >> 1
        if _against(stored, order[middle], asking, row) < behind:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def order_pairs(
    stored: Stored, asking: Asking, lower: int, upper: int, row: int, place: int, out_handles: Int64, out_rows: Int64
) -> tuple[int, int, int]:
    """Elements by their order, as ``sweep_ranges.order_pairs`` finds them; places are positions in that order."""
    handles, order = stored[1], stored[6]
    valid = asking[3]
    n = len(order)
    found = 0
    room = len(out_handles)
    while row < len(asking[0]):
        if valid.size and not valid[row]:
            row += 1
            continue
        begin = _border(stored, asking, row, 0)
        end = _border(stored, asking, row, 1)
        before = 0 if lower == 0 else (begin if lower == 1 else end)
        behind = begin if upper == 1 else (end if upper == 2 else n)
        if place < 0:
            place = 0
        while place < n:
            if place >= before and place < behind:
                place = behind
                continue
            stop = before if place < before else n
            stop = min(stop, place + room - found)
            if stop == place:
                return found, row, place
            for k in range(place, stop):
                out_handles[found] = handles[order[k]]
                out_rows[found] = row
                found += 1
            place = stop
        row += 1
        place = -1
    return found, row, -1


@njit(cache=True, nogil=True)
def _before(stored: Stored, a: int, b: int) -> bool:
    order = _compare(stored[2], a, stored[2], b)
    if order == 0:
        order = _compare_bytes(stored[5], stored[3][a], stored[4][a], stored[5], stored[3][b], stored[4][b])
    return order <= 0


@njit(cache=True, nogil=True)
def _merge(stored: Stored, order: Int64, first: int, middle: int, stop: int, room: Int64) -> None:
    """Merge two neighbouring sorted parts of ``order``; ``room`` holds the first of them meanwhile."""
    count = middle - first
    room[:count] = order[first:middle]
    a, b = 0, middle
    for k in range(first, stop):
        if a == count:
            return
        if b == stop or _before(stored, room[a], order[b]):
            order[k] = room[a]
            a += 1
        else:
            order[k] = order[b]
            b += 1


@njit(cache=True, nogil=True)
def sort_in(stored: Stored, old: int) -> None:
    """Bring the elements from ``old`` on to their places in the order; no sweep word is below those before."""
    sweep, order = stored[0], stored[6]
    n = len(order)
    if old == n:
        return
    first = np.searchsorted(sweep[:old], sweep[old], side="left")
    room = np.empty(max(n - old, old - first), dtype=np.int64)
    size = 1
    while size < n - old:
        for begin in range(old, n - size, 2 * size):
            _merge(stored, order, begin, begin + size, min(begin + 2 * size, n), room)
        size *= 2
    _merge(stored, order, first, old, n, room)
