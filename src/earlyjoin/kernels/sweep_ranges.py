"""Sweep areas over one sorted column (PMJ section 3, table 1): the matches of a word lie side by side.

A query walks from (``row``, ``place``) on and stops when the output is full; ``place`` is a position in the area, -1
at the start of a row. Every function returns ``(found, row, place)``. Querying words may come in any order, but
ascending ones, as a sweep brings them, are found by galloping from the last match. ``valid`` is empty when every row
can match.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.extending import overload

Int64 = npt.NDArray[np.int64]
Words = npt.NDArray[np.int64] | npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]


def exceeds(a: Any, b: Any, eps: Any) -> bool:
    """Whether ``a - b > eps``, rounding as ``predicates.banding.within`` does for floats and exact for int64."""
    raise NotImplementedError("for use in kernels")


@overload(exceeds)  # type: ignore[untyped-decorator, unused-ignore]
def _exceeds(a, b, eps):  # type: ignore[no-untyped-def]
    if isinstance(a, types.Float):
        return lambda a, b, eps: a - b > eps
    # Unsigned, so that the difference of the two ends of the range does not wrap.
    return lambda a, b, eps: a > b and np.uint64(a) - np.uint64(b) > np.uint64(eps)


@njit(cache=True, nogil=True)
def first_within(words: Words, query: Any, eps: Any, hint: int) -> int:
    """The first position whose word is at most ``eps`` below ``query``, or the length; searched from ``hint``."""
    n = len(words)
    low = 0
    high = n
    if hint < n and exceeds(query, words[hint], eps):
        low = hint + 1
        step = 1
        while low + step < n and exceeds(query, words[low + step], eps):
            low += step + 1
            step *= 2
        high = min(n, low + step)
    elif hint > 0 and exceeds(query, words[hint - 1], eps):
        return hint
    else:
        high = min(n, hint)
    while low < high:
        middle = (low + high) >> 1
        if exceeds(query, words[middle], eps):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def band_pairs(
    words: Words, handles: Int64, queries: Words, valid: Bool, eps: Any,
    row: int, place: int, out_handles: Int64, out_rows: Int64,
) -> tuple[int, int, int]:  # fmt: skip
    """Elements whose word is at most ``eps`` from the querying word; ``eps`` 0 is equality."""
    found = 0
    room = len(out_handles)
    n = len(words)
    hint = 0
    while row < len(queries):
        if valid.size and not valid[row]:
            row += 1
            continue
        query = queries[row]
        if place < 0:
            place = first_within(words, query, eps, hint)
            hint = place
        while place < n and not exceeds(words[place], query, eps):
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
def order_pairs(
    words: Int64, handles: Int64, queries: Int64, valid: Bool, lower: int, upper: int,
    row: int, place: int, out_handles: Int64, out_rows: Int64,
) -> tuple[int, int, int]:  # fmt: skip
    """Elements before one border and from another one on, of the run of elements that equal the querying word.

    ``lower`` tells where the elements before end: 0 nowhere, 1 before the equal ones, 2 behind them. ``upper`` tells
    where the elements behind begin: 1 with the equal ones, 2 behind them, 3 nowhere.
    """
    found = 0
    room = len(out_handles)
    n = len(words)
    while row < len(queries):
        if valid.size and not valid[row]:
            row += 1
            continue
        begin = np.searchsorted(words, queries[row], side="left")
        end = np.searchsorted(words, queries[row], side="right")
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
                out_handles[found] = handles[k]
                out_rows[found] = row
                found += 1
            place = stop
        row += 1
        place = -1
    return found, row, -1
