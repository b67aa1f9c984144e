"""What a flush policy sees and says: statistics of the partitions in, victims out. Policies hold no state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from earlyjoin.algorithms.hash_join import flush_policies
from earlyjoin.predicates.encoding.keys import Bool, Int64


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
    to_come: int | None = None
    """Rows that still have to come into the table, if that is known."""

    @property
    def able(self) -> Int64:
        """Rows in memory that may leave: protected ones only if there are no others."""
        free = np.where(self.protected, 0, self.memory)
        return free if free.any() else self.memory


@dataclass(frozen=True, slots=True)
class Victim:
    """A partition of one side that has to leave memory, or only its oldest ``rows`` rows."""

    side: int
    partition: int
    rows: int | None = None


def largest(statistics: PartitionStatistics) -> list[Victim]:
    """The largest partition of either side (XJoin). DHJ: the largest of the build input, the only one in memory.

    PAPER UNCLEAR: EHJ section 2 says of DHJ only that a victim is selected; the largest frees most with one flush.

    >>> sizes = np.array([[3, 1], [2, 5]])
    >>> none = np.zeros((2, 2), dtype=bool)
    >>> largest(PartitionStatistics(memory=sizes, disk=sizes, arrived=sizes, frozen=none, protected=none))
    [Victim(side=1, partition=1, rows=None)]
    """
    return _whole(flush_policies.flush_largest(statistics.able))


def largest_needed(statistics: PartitionStatistics) -> list[Victim]:
    """XJoin of inputs whose sizes are known: of the largest partition no more rows than still have to come.

    PAPER UNCLEAR: a flush takes a partition, but in EHJ's figure 2 XJoin's memory is full when the inputs end.

    >>> sizes = np.array([[3, 1], [2, 5]])
    >>> none = np.zeros((2, 2), dtype=bool)
    >>> seen = PartitionStatistics(memory=sizes, disk=sizes, arrived=sizes, frozen=none, protected=none, to_come=4)
    >>> largest_needed(seen)
    [Victim(side=1, partition=1, rows=4)]
    """
    to_come = statistics.to_come
    if to_come is None:
        return largest(statistics)
    return [
        replace(victim, rows=to_come) if to_come < statistics.memory[victim.side, victim.partition] else victim
        for victim in largest(statistics)
    ]


def biased(statistics: PartitionStatistics) -> list[Victim]:
    """EHJ section 4.1: the largest partition of S; when S has none left in memory, the smallest of R."""
    return _whole(flush_policies.biased(statistics.able, statistics.frozen, small=statistics.build_side))


def incremental_left(statistics: PartitionStatistics) -> list[Victim]:
    """DPHJ: partitions of S one after the other, then those of R."""
    return _whole(flush_policies.incremental_left(statistics.able, statistics.frozen, left=1 - statistics.build_side))


def _whole(victims: list[flush_policies.Victim]) -> list[Victim]:
    return [Victim(victim.side, victim.partition) for victim in victims]
