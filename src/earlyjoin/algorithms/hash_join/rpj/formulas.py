"""What the RPJ paper computes: results until the next flush (equations 2 and 4), and what a task costs (section 5.3).

Equations 5 and 6 are in :mod:`~earlyjoin.algorithms.hash_join.rpj.arrival_statistics`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earlyjoin.algorithms.merge_join.merge_tree import smallest_first
from earlyjoin.predicates.encoding.keys import Int64

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


def merged_pages(sizes: Sequence[int], fan_in: int) -> int:
    """Pages that the merges of a dd-task read, if ``sizes`` are the pages of its slots and the smallest go first.

    >>> merged_pages([4, 4], 2), merged_pages([100, 1, 1], 2), merged_pages([1] * 100, 10)
    (8, 104, 200)
    """
    left = sorted(sizes)
    pages = 0
    while len(left) > fan_in:
        chosen = smallest_first(left, fan_in, fan_in)
        merged = sum(left[: len(chosen)])
        pages += merged
        del left[: len(chosen)]
        insort(left, merged)
    return pages + sum(left)


def dd_cost(merged: Int64, costs: PageCosts) -> Float64:
    """E_t of a dd-task: every page that its merges read is written again, and each access is a random one.

    PAPER UNCLEAR: the paper takes all pages as often as the logarithm of their number says. A merge works on runs, of
    which most are short and one, left by the last task, is long; so what the merges will read is counted.
    """
    return np.asarray(2 * costs.random * merged, dtype=np.float64)
