"""Closing up byte strings when some rows of a store go."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int64 = npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def keep_bytes(offsets: Int64, heap: npt.NDArray[np.uint8], index: Int64) -> int:
    """Move the chosen rows, in ascending order, to the front, in place; returns the bytes they take."""
    end = 0
    for k in range(len(index)):
        start, stop = offsets[index[k]], offsets[index[k] + 1]
        if start != end:
            for i in range(stop - start):
                heap[end + i] = heap[start + i]
        end += stop - start
        offsets[k + 1] = end
    return end
