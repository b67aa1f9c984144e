"""Merging: two ascending orders of the same words become one (PMJ section 3.1)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int64 = npt.NDArray[np.int64]
Words = npt.NDArray[np.int64] | npt.NDArray[np.float64]


@njit(cache=True, nogil=True)
def merged_order(words: Words, first: Int64, second: Int64) -> Int64:
    """Row numbers of both orders, ascending by word; of equal words those of ``first`` come first."""
    out = np.empty(len(first) + len(second), dtype=np.int64)
    i = 0
    j = 0
    for k in range(len(out)):
        if j >= len(second) or (i < len(first) and words[first[i]] <= words[second[j]]):
            out[k] = first[i]
            i += 1
        else:
            out[k] = second[j]
            j += 1
    return out
