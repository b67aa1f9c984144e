"""How many new results a task on disk would give: Er, kept up to date as rows come and go (RPJ section 5.3).

Er of a task is counted in *pairs of rows of one partition* that have not met; the paper's expected number of results is
that divided by s, the number of join values in a partition. Pairs are integers, so Er is exactly zero when there is
nothing left to find, which ends the reactive stage.

* ``memory[i, j]``: memory partition j of side i with the other side's disk partition (Er_mem, for md-tasks).
* ``disk[j]``: disk partitions j of both sides (Er_disk, for dd-tasks).

A row that comes could meet all rows that the other side has on disk. When it is flushed and no md-task has used its
partition since it came, these pairs move from ``memory`` to ``disk``. Rows of the other side that were flushed while it
was in memory had met it before.

PAPER UNCLEAR: section 5.3 takes the rows on disk at the moment of the flush off Er_mem; some of them were flushed after
the row came and were never added. Here those are taken off that were added: the rows on disk when it came (S_bfr).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from earlyjoin.predicates.encoding.keys import Int64

_FLUSH_NBYTES = 128
"""What remembering a flush takes."""


class ExpectedOutput:
    """Er of every task. Moments are ticks of the logical clock."""

    def __init__(self, partitions: int) -> None:
        self.memory = np.zeros((2, partitions), dtype=np.int64)
        self.disk = np.zeros(partitions, dtype=np.int64)
        self._flushes: list[list[list[tuple[int, int]]]] = [[[] for _ in range(partitions)] for _ in range(2)]
        self._last_probe = np.zeros((2, partitions), dtype=np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        flushes = sum(len(history) for side in self._flushes for history in side)
        return self.memory.nbytes + self.disk.nbytes + self._last_probe.nbytes + _FLUSH_NBYTES * flushes

    def on_disk(self, side: int, partition: int) -> int:
        """Rows of a disk partition."""
        history = self._flushes[side][partition]
        return history[-1][1] if history else 0

    def arrived(self, side: int, counts: Int64) -> None:
        """Case 1: so many rows of each partition of a side have come."""
        for partition in np.flatnonzero(counts).tolist():
            self.memory[side, partition] += int(counts[partition]) * self.on_disk(1 - side, partition)

    def flushed(self, side: int, partition: int, arrivals: Int64, moment: int) -> None:
        """Case 2: rows that came at these moments are flushed. Case 3, the other side's Er_mem, does not change."""
        fresh = arrivals[arrivals > self._last_probe[side, partition]]
        pairs = int(self._disk_rows_before(1 - side, partition, fresh).sum())
        self.memory[side, partition] -= pairs
        self.disk[partition] += pairs
        history = self._flushes[side][partition]
        history.append((moment, self.on_disk(side, partition) + len(arrivals)))

    def _disk_rows_before(self, side: int, partition: int, moments: Int64) -> Int64:
        """|S_bfr| for rows that came at these moments: rows of the disk partition that were flushed before."""
        history = np.asarray([(0, 0), *self._flushes[side][partition]], dtype=np.int64)
        rows: Int64 = history[np.searchsorted(history[:, 0], moments) - 1, 1]
        return rows

    def forget_flushes(self, side: int, partition: int, oldest: int) -> None:
        """The other side has no row in memory that came before ``oldest``: earlier flushes need not be told apart."""
        history = self._flushes[side][partition]
        before = sum(moment < oldest for moment, _ in history)
        del history[: max(0, before - 1)]

    def probed(self, side: int, partition: int, moment: int) -> None:
        """An md-task with this memory partition is run at this moment: it will find everything."""
        self.memory[side, partition] = 0
        self._last_probe[side, partition] = moment

    def merged(self, partition: int) -> None:
        """A dd-task is run: it will find everything."""
        self.disk[partition] = 0

    def save(self) -> dict[str, Any]:
        """Plain values for a snapshot."""
        return {
            "memory": self.memory.tolist(),
            "disk": self.disk.tolist(),
            "flushes": self._flushes,
            "last_probe": self._last_probe.tolist(),
        }

    def load(self, values: dict[str, Any]) -> None:
        """The inverse of ``save``."""
        self.memory = np.asarray(values["memory"], dtype=np.int64)
        self.disk = np.asarray(values["disk"], dtype=np.int64)
        self._flushes = [
            [[(moment, rows) for moment, rows in history] for history in side] for side in values["flushes"]
        ]
        self._last_probe = np.asarray(values["last_probe"], dtype=np.int64)
