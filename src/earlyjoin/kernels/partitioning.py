"""Ordering rows by partition: a counting sort."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def order_by_partition(numbers: Int32, count: int) -> tuple[Int64, Int64]:
    """The rows ordered by partition, equal ones in their old order, and where each of ``count`` partitions starts."""
    starts = np.zeros(count + 1, dtype=np.int64)
    for row in range(len(numbers)):
        starts[numbers[row] + 1] += 1
    for partition in range(count):
        starts[partition + 1] += starts[partition]
    at = starts[:-1].copy()
    order = np.empty(len(numbers), dtype=np.int64)
    for row in range(len(numbers)):
        partition = numbers[row]
        order[at[partition]] = row
        at[partition] += 1
    return order, starts
