"""String views: 16 bytes a value, the length first; values longer than 12 bytes lie in a data buffer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

INLINE = 12
"""Bytes that a view holds itself."""


@njit(cache=True, nogil=True)
def outside_bytes(views: npt.NDArray[np.int32], first: int, stop: int) -> int:
    """Bytes that the views ``first`` to ``stop`` have in data buffers; a view is four words, its length the first."""
    total = 0
    for row in range(first, stop):
        length = views[4 * row]
        if length > INLINE:
            total += length
    return total
