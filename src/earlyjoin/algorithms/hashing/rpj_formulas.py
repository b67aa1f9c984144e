"""What the RPJ paper computes: results until the next flush (equations 2 and 4), and what a task costs (section 5.3).

Equations 5 and 6 are in :mod:`~earlyjoin.algorithms.hashing.arrival_statistics`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earlyjoin.predicates.keys import Int64

Float64 = npt.NDArray[np.float64]


def expected_results(memory: Int64, arrival: Float64, flushed: int, values_a_partition: float = 1.0) -> float:
    """n_rslt of equation 4: results in memory from a flush of ``flushed`` rows until the next.

    ``memory[i, j]`` are the rows left, ``arrival[i, j]`` is p_arr, ``values_a_partition`` is s. With one value to a
    column, and s = 1, it is equation 2.

    >>> expected_results(np.array([[0, 10], [10, 5]]), np.array([[0.35, 0.25], [0.10, 0.30]]), 15)
    141.0
    """
    rows = memory[0] * arrival[1] + arrival[0] * memory[1] + flushed * arrival[0] * arrival[1]
    return float(flushed / values_a_partition * rows.sum())


@dataclass(frozen=True, slots=True)
class PageCosts:
    """c_ran and c_seq: what reading or writing a page costs, after a seek and right behind the last."""

    random: float = 10.0
    sequential: float = 1.0


def md_cost(runs: Int64, pages: Int64, costs: PageCosts) -> Float64:
    """E_t of an md-task: the disk partition (runs, pages) is scanned, with a seek for each run.

    >>> float(md_cost(np.array(2), np.array(10), PageCosts(random=10, sequential=1)))
    28.0
    """
    return np.asarray(runs * costs.random + np.maximum(0, pages - runs) * costs.sequential, dtype=np.float64)


def merge_passes(runs: Int64, fan_in: int) -> Int64:
    """How often the rows of a partition are merged until one run is left; at least once.

    >>> merge_passes(np.array([1, 2, 3, 10, 11, 100, 101]), 10)
    array([1, 1, 1, 1, 2, 2, 3])
    """
    passes = np.ones(np.shape(runs), dtype=np.int64)
    reach = np.full(np.shape(runs), fan_in, dtype=np.int64)
    while (reach < runs).any():
        passes += reach < runs
        reach *= fan_in
    return passes


def dd_cost(runs: Int64, pages: Int64, fan_in: int, costs: PageCosts) -> Float64:
    """E_t of a dd-task: both disk partitions are read and written once in every pass of PSMJ, page by page.

    ``runs`` and ``pages`` have a row for each side.

    PAPER UNCLEAR: the number of passes is printed as the logarithm of the number of pages; a merge works on runs, so
    it is that of the number of runs here.
    """
    passes = merge_passes(np.maximum(runs[0], runs[1]), fan_in)
    return np.asarray(2 * costs.random * (pages[0] + pages[1]) * passes, dtype=np.float64)
