"""What a flush policy sees and says: statistics of the partitions in, victims out. Policies hold no state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from earlyjoin.predicates.keys import Bool, Int64

Order = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatistics:
    """Arrays of shape (2, P): one row a side, one column a partition."""

    memory: Int64
    """Rows in memory."""
    disk: Int64
    """Rows on disk."""
    arrived: Int64
    """Rows that have arrived so far."""
    frozen: Bool
    """Partitions that no longer take rows into memory."""
    protected: Bool
    """Partitions that a task in work needs in memory; they may leave only when nothing else can."""
    build_side: int = 0
    """R in the papers."""
    ended: tuple[bool, bool] = (False, False)

    @property
    def candidates(self) -> Bool:
        """Partitions whose flush would free memory: those in memory, protected ones only if there is no other."""
        free = self.memory > 0
        return free & ~self.protected if (free & ~self.protected).any() else free


@dataclass(frozen=True, slots=True)
class Victim:
    """A partition of one side that has to leave memory, or only its oldest ``rows`` rows."""

    side: int
    partition: int
    rows: int | None = None


class FlushPolicy(Protocol):
    """Which rows leave memory when it is full."""

    def __call__(self, statistics: PartitionStatistics) -> list[Victim]:
        """The victims, at least one if any partition has rows in memory."""
        ...


def flush_largest(statistics: PartitionStatistics) -> list[Victim]:
    """XJoin: the largest partition of either side.

    >>> sizes = np.array([[3, 1], [2, 5]])
    >>> none = np.zeros((2, 2), dtype=bool)
    >>> flush_largest(PartitionStatistics(memory=sizes, disk=sizes, arrived=sizes, frozen=none, protected=none))
    [Victim(side=1, partition=1, rows=None)]
    """
    return _first(np.where(statistics.candidates, -statistics.memory, 1))


def biased_flush(statistics: PartitionStatistics) -> list[Victim]:
    """EHJ section 4.1: the largest partition of S; when S has none left in memory, the smallest of R."""
    r, s = statistics.build_side, 1 - statistics.build_side
    candidates = statistics.candidates
    if candidates[s].any():
        return [Victim(s, int(np.argmax(np.where(candidates[s], statistics.memory[s], -1))))]
    if not candidates[r].any():
        return []
    most = np.iinfo(np.int64).max
    return [Victim(r, int(np.argmin(np.where(candidates[r], statistics.memory[r], most))))]


def destage_largest(statistics: PartitionStatistics) -> list[Victim]:
    """DHJ: the largest partition of the build input.

    PAPER UNCLEAR: EHJ section 2 says only that a victim is selected; the largest frees most with one flush.
    """
    return flush_largest(statistics)


def _first(cost: Int64) -> list[Victim]:
    """The place of the smallest cost, ties to the first; none when no cost is 0 or less."""
    at = int(np.argmin(cost))
    side, partition = divmod(at, cost.shape[1])
    return [Victim(side, partition)] if cost[side, partition] <= 0 else []
