"""Which pairs were joined before: the rules of :mod:`earlyjoin.state.joined`, each with the state that it needs.

A rule is asked about pairs of one partition that a task on disk found, and answers for all of them at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from earlyjoin.algorithms.hash_join.table.table import PartitionedTable
from earlyjoin.predicates.encoding.keys import Bool, Int64
from earlyjoin.state import joined


class Stamps(NamedTuple):
    """What is known of one row of each pair."""

    arrivals: Int64
    departures: Int64
    """NEVER for rows that are in memory and always were."""
    labels: Int64
    """Label of the run that the row lies in, -1 for rows in memory."""

    def take(self, index: Int64) -> Stamps:
        """The stamps of some rows."""
        return Stamps(*(part[index] for part in self))


class DuplicateRule(Protocol):
    """Was a pair of rows joined before?"""

    def joined(self, partition: int, left: Stamps, right: Stamps) -> Bool:
        """For each pair (side 0, side 1) of the partition."""
        ...

    def save(self) -> dict[str, Any]:
        """Plain values for a snapshot."""
        ...

    def load(self, values: dict[str, Any]) -> None:
        """Take over what ``save`` gave."""
        ...


class NeverJoined:
    """DHJ: what lies on disk has not met anything."""

    def joined(self, partition: int, left: Stamps, right: Stamps) -> Bool:
        """No pair was."""
        return np.zeros(len(left.arrivals), dtype=np.bool_)

    def save(self) -> dict[str, Any]:
        """There is no state."""
        return {}

    def load(self, values: dict[str, Any]) -> None:
        """There is no state."""


class ResidenceRule:
    """XJoin: together in memory once, or seen by a memory-disk task (RPJ section 2.1)."""

    def __init__(self, partitions: int) -> None:
        self.history = [[joined.ProbeHistory() for _ in range(partitions)] for _ in range(2)]
        """For each side and partition: when its memory part was joined with the other side's disk part."""
        self.last_moment = np.zeros((2, partitions), dtype=np.int64)

    def record(self, side: int, partition: int, moment: int) -> None:
        """A memory part was joined with the other side's disk part as both were at this moment."""
        self.history[side][partition].record(moment)
        self.last_moment[side, partition] = moment

    def joined(self, partition: int, left: Stamps, right: Stamps) -> Bool:
        """Condition (i), and (ii) for both sides."""
        met = joined.resided_together((left.arrivals, left.departures), (right.arrivals, right.departures))
        for side, (mine, other) in enumerate(((left, right), (right, left))):
            history = self.history[side][partition]
            if len(history.moments):
                met = met | history.covered(mine.arrivals, mine.departures, other.departures)
        return met

    def save(self) -> dict[str, Any]:
        """All moments."""
        return {"history": [[part.moments.tolist() for part in side] for side in self.history]}

    def load(self, values: dict[str, Any]) -> None:
        """Take them over."""
        self.history = [[joined.ProbeHistory(moments) for moments in side] for side in values["history"]]
        self.last_moment[:] = [[max(moments, default=0) for moments in side] for side in values["history"]]


class EarlyHashRule:
    """EHJ sections 4.4 and 4.5: one stamp a row, because biased flushing freezes S before R."""

    def __init__(self, table: PartitionedTable, build_side: int) -> None:
        self._table = table
        self._r = build_side

    def joined(self, partition: int, left: Stamps, right: Stamps) -> Bool:
        """The three cases, and the probes of the background process."""
        r, s = (left, right) if self._r == 0 else (right, left)
        runs = self._table.runs[1 - self._r][partition]
        probes = {run.label: run.last_probe for run in runs if run.last_probe}
        last_probe = None
        if probes:
            last_probe = np.zeros(len(s.labels), dtype=np.int64)
            for label, moment in probes.items():
                last_probe[s.labels == label] = moment
        frozen_at = self._table.frozen_at[:, partition]
        return joined.early_hash_joined(
            r.arrivals, s.arrivals, int(frozen_at[self._r]), int(frozen_at[1 - self._r]), last_probe
        )

    def save(self) -> dict[str, Any]:
        """The table keeps the stamps."""
        return {}

    def load(self, values: dict[str, Any]) -> None:
        """The table keeps the stamps."""
