"""Combinations of rows, one of each side: cross products in pieces, each from where the last one ended."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int64 = npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def combinations(starts: Int64, counts: Int64, cursor: Int64, out: Int64) -> int:
    """Fill ``out`` (a line for each side) with the next combinations and return how many there are.

    Box b holds, for each side s, the places from ``starts[b, s]`` on, ``counts[b, s]`` of them and at least one.
    ``cursor`` is the box, and a place within it for each side; it is moved. The last side turns fastest. All boxes are
    done when ``cursor[0]`` is their number.
    """
    sides, room = out.shape
    last = sides - 1
    found = 0
    while found < room and cursor[0] < starts.shape[0]:
        box = cursor[0]
        first = cursor[sides]
        take = min(room - found, counts[box, last] - first)
        for side in range(last):
            out[side, found : found + take] = starts[box, side] + cursor[1 + side]
        for k in range(take):
            out[last, found + k] = starts[box, last] + first + k
        found += take
        cursor[sides] += take
        side = last
        while side >= 0 and cursor[1 + side] == counts[box, side]:
            cursor[1 + side] = 0
            cursor[side] += 1  # the side before, or the next box
            side -= 1
    return found
