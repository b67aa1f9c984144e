"""Finding extents that reach far enough, by a tree of maxima (PMJ section 3, temporal and spatial joins).

Extents are sorted by their low ends. ``tops`` is a Fenwick tree over their high ends: ``tops[k]`` is the largest
among the ``lowbit(k + 1)`` high ends up to k. Walking down from the last extent that begins early enough, whole
blocks that end too early are left out, so that a query costs about log n and its matches. Appending costs a few steps
for each extent. Queries go on and end as in ``sweep_ranges``; places count down.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
LEAST = np.iinfo(np.int64).min
MOST = np.iinfo(np.int64).max


@njit(cache=True, nogil=True)
def raise_tops(highs: Int64, tops: Int64, first: int) -> None:
    """Fill ``tops`` from ``first`` on; what lies before is as it should be."""
    for k in range(first, len(highs)):
        number = k + 1
        lowbit = number & -number
        top = highs[k]
        reach = 1
        while reach < lowbit:
            top = max(top, tops[k - reach])
            reach <<= 1
        tops[k] = top


@njit(cache=True, nogil=True)
def interval_pairs(
    area: tuple[Int64, Int64, Int64, Int64], queries: Int64, valid: Bool, closed: bool,
    row: int, place: int, out_handles: Int64, out_rows: Int64,
) -> tuple[int, int, int]:  # fmt: skip
    """Elements ``(lows, highs, tops, handles)`` that overlap the querying intervals (n, 2)."""
    lows, highs, tops, handles = area
    found = 0
    room = len(out_handles)
    while row < len(queries):
        low, high = queries[row, 0], queries[row, 1]
        if (valid.size and not valid[row]) or (not closed and (low == MOST or high == LEAST)):
            row += 1
            continue
        if not closed:
            low, high = low + 1, high - 1
        if place < 0:
            place = np.searchsorted(lows, high, side="right")
        while place > 0:
            if tops[place - 1] < low:
                place -= place & -place
                continue
            if highs[place - 1] >= low:
                if found == room:
                    return found, row, place
                out_handles[found] = handles[place - 1]
                out_rows[found] = row
                found += 1
            place -= 1
        row += 1
        place = -1
    return found, row, -1
