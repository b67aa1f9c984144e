"""Which rows leave memory when it is full: pure functions over the sizes of partitions.

=============== ============================== =====================================================================
policy          from                           what leaves
=============== ============================== =====================================================================
all             HMJ (RPJ section 2.2)          everything
smallest        HMJ (RPJ section 2.2)          the partition with fewest rows
largest         XJoin (RPJ section 2.1)        the partition with most rows
adaptive        HMJ (RPJ section 2.2)          a pair of partitions: large, and its loss leaves the sides balanced
optimal         RPJ figure 4                   rows that are least likely to meet an arrival, a given number of them
biased          EHJ section 4.1                the largest S partition not frozen; when there is none, the smallest of R
incremental     DPHJ (EHJ section 2)           left partitions one after the other; then those of the right side
=============== ============================== =====================================================================

Sizes are arrays of shape (2, partitions): rows in memory. A policy names victims that hold at least one row, in the
order in which they leave, and none when memory is empty. Ties go to the lower side, then to the lower partition.
:func:`concurrent` turns victims into pairs, as HMJ flushes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earlyjoin.predicates.encoding.keys import Bool, Int64

Float64 = npt.NDArray[np.float64]
FlushPolicy = Callable[[Int64], list["Victim"]]


class Victim(NamedTuple):
    """The oldest ``rows`` rows of a memory partition, which are to leave."""

    side: int
    partition: int
    rows: int


def flush_all(sizes: Int64) -> list[Victim]:
    """Everything.

    >>> flush_all(np.array([[3, 0], [1, 2]]))
    [Victim(side=0, partition=0, rows=3), Victim(side=1, partition=0, rows=1), Victim(side=1, partition=1, rows=2)]
    """
    return [_whole(sizes, side, partition) for side, partition in np.argwhere(sizes > 0).tolist()]


def flush_smallest(sizes: Int64) -> list[Victim]:
    """The partition with fewest rows, of those that have any: an empty one would free nothing.

    >>> flush_smallest(np.array([[3, 0], [1, 2]]))
    [Victim(side=1, partition=0, rows=1)]
    """
    return _one(sizes, np.argmin(np.where(sizes > 0, sizes, np.iinfo(np.int64).max)))


def flush_largest(sizes: Int64) -> list[Victim]:
    """The partition with most rows.

    >>> flush_largest(np.array([[3, 0], [1, 2]]))
    [Victim(side=0, partition=0, rows=3)]
    """
    return _one(sizes, np.argmax(sizes))


def adaptive(sizes: Int64) -> list[Victim]:
    """A pair of partitions whose sum is large and whose loss leaves both sides about equally much memory.

    PAPER UNCLEAR: HMJ's rule is known in words alone (small difference, large sum). Here a sum is large when it is
    at least half of the largest; of those pairs the one goes whose loss leaves the smallest difference between the
    sides, of equals the largest. While both sides are balanced that is the pair of the
    smallest difference; when they are not, it is the one that restores the balance.

    >>> adaptive(np.array([[9, 5, 1], [1, 5, 1]]))  # left has 15 rows, right 7: losing the first pair leaves 6 and 6
    [Victim(side=0, partition=0, rows=9), Victim(side=1, partition=0, rows=1)]
    """
    sums = sizes.sum(axis=0)
    if not sums.any():
        return []
    imbalance = np.abs(np.subtract(*sizes.sum(axis=1)) - (sizes[0] - sizes[1]))
    large = np.flatnonzero(2 * sums >= sums.max())
    best = large[np.lexsort((large, -sums[large], imbalance[large]))[0]]
    return [_whole(sizes, side, int(best)) for side in (0, 1) if sizes[side, best]]


def optimal_flush(sizes: Int64, arrival: Float64, count: int, *, least: int = 0) -> list[Victim]:
    """``count`` rows, those first whose partner on the other side is least likely to arrive (RPJ figure 4).

    ``arrival[i, j]`` is p_arr: the probability that the next row is of side i and partition j. Rows of partition j of
    the *other* side are worth that much; of equally likely ones the largest leaves first.

    Partitions of little worth refill slowly and would leave again and again in runs of a few rows. With ``least`` they
    wait until they hold so many, if others can leave instead; zero is the paper's flush.

    PAPER UNCLEAR: figure 4 loops on npart and sorts in one of two branches; the loop is on nflush, and every piece
    that leaves is a sorted run (whoever writes it sorts it).

    >>> sizes = np.array([[10, 10], [10, 10]])
    >>> optimal_flush(sizes, np.array([[0.35, 0.25], [0.10, 0.30]]), 15)
    [Victim(side=0, partition=0, rows=10), Victim(side=1, partition=1, rows=5)]
    """
    worth = arrival[::-1].reshape(-1)  # of the rows in memory, by their own side
    flat = sizes.reshape(-1)
    small = flat < least
    order = np.lexsort((-flat, np.where(small, -flat, worth), small))
    available = flat[order]
    before = np.cumsum(available) - available
    taken = np.clip(count - before, 0, available)
    chosen = np.flatnonzero(taken)
    sides, partitions = np.unravel_index(order[chosen], sizes.shape)
    victims = zip(sides.tolist(), partitions.tolist(), taken[chosen].tolist(), strict=True)
    return [Victim(side, partition, rows) for side, partition, rows in victims]


def biased(sizes: Int64, frozen: Bool, *, small: int = 0) -> list[Victim]:
    """EHJ: the largest partition of S that is not frozen, or the smallest of R; ``small`` is the number of side R.

    A partition that was flushed is frozen: it holds a page buffer at most and is no victim any more. Only those with
    rows are chosen.

    >>> biased(np.array([[4, 2], [1, 3]]), np.array([[False, False], [False, True]]))
    [Victim(side=1, partition=0, rows=1)]
    """
    able = (sizes > 0) & ~frozen
    large = 1 - small
    if able[large].any():
        partition = int(np.argmax(np.where(able[large], sizes[large], -1)))
        return [_whole(sizes, large, partition)]
    if able[small].any():
        partition = int(np.argmin(np.where(able[small], sizes[small], np.iinfo(np.int64).max)))
        return [_whole(sizes, small, partition)]
    return []


def incremental_left(sizes: Int64, frozen: Bool, *, left: int = 0) -> list[Victim]:
    """DPHJ: the next left partition that is not frozen, in their order; then those of the right side.

    Its reading rule is :func:`incremental_left_side`.

    >>> incremental_left(np.array([[4, 2], [9, 3]]), np.array([[True, False], [False, False]]))
    [Victim(side=0, partition=1, rows=2)]
    """
    able = (sizes > 0) & ~frozen
    for side in (left, 1 - left):
        partitions = np.flatnonzero(able[side])
        if len(partitions):
            return [_whole(sizes, side, int(partitions[0]))]
    return []


def incremental_left_side(flushed: bool, ended: tuple[bool, bool], *, left: int = 0) -> int | None:
    """What DPHJ reads next once memory has overflowed: the right input to its end, then the left. None: any."""
    if not flushed:
        return None
    return left if ended[1 - left] else 1 - left


def concurrent(sizes: Int64, victims: Iterable[Victim]) -> list[Victim]:
    """HMJ's concurrent flushing: with a partition goes the partition of the same number of the other side, whole.

    >>> concurrent(np.array([[3, 0], [1, 2]]), flush_largest(np.array([[3, 0], [1, 2]])))
    [Victim(side=0, partition=0, rows=3), Victim(side=1, partition=0, rows=1)]
    """
    partitions = dict.fromkeys(victim.partition for victim in victims)
    return [_whole(sizes, side, partition) for partition in partitions for side in (0, 1) if sizes[side, partition]]


HASH_MERGE_POLICIES: dict[str, FlushPolicy] = {
    "all": flush_all,
    "smallest": flush_smallest,
    "largest": flush_largest,
    "adaptive": adaptive,
}
"""The four policies that HMJ compares, by name."""


def _whole(sizes: Int64, side: int, partition: int) -> Victim:
    return Victim(int(side), int(partition), int(sizes[side, partition]))


def _one(sizes: Int64, place: np.intp) -> list[Victim]:
    side, partition = np.unravel_index(place, sizes.shape)
    victim = _whole(sizes, int(side), int(partition))
    return [victim] if victim.rows else []
