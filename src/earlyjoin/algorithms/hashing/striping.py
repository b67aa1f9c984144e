"""Stripes of a table: rows of a partition by further bits of their hash, so that it can be taken piece by piece.

A run that is flushed lies on disk in the order of its stripes. A clean-up that finds no room for a partition takes as
many of its stripes as fit, of both sides, and then the next ones: every page is read once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from earlyjoin.algorithms.hashing.disk_part import Stripes
from earlyjoin.algorithms.hashing.memory_part import MemoryPart
from earlyjoin.kernels.partitioning import order_by_partition
from earlyjoin.predicates.keys import Bool, Int64

if TYPE_CHECKING:
    from earlyjoin.algorithms.hashing.table import PartitionedTable

_GROWN = 1.5
"""Bytes that rows from disk may take in memory, for each byte of their pages: index and room to grow included."""


class Striping:
    """What a table does by stripes; with one stripe a partition is taken as a whole."""

    def __init__(self, table: PartitionedTable, count: int) -> None:
        self._table = table
        self.count = count

    def ordered(self, part: MemoryPart, leaving: Int64) -> tuple[Int64, Int64 | None]:
        """Rows in the order of their stripes, and where each stripe ends; as they are if there is only one."""
        keys = part.keys
        if self.count == 1 or keys is None:
            return leaving, None
        order, starts = order_by_partition(self._table.partitioner.stripes(keys)[leaving], self.count)
        return leaving[order], starts[1:]

    def before(self, part: MemoryPart, stripe: int, start: int = 0, stop: int | None = None) -> Bool:
        """For each row of a memory part (from ``start`` to ``stop``): does it lie in a stripe before this one?"""
        stop = len(part) if stop is None else stop
        keys = part.keys
        if stripe >= self.count or keys is None:
            return np.ones(stop - start, dtype=np.bool_)
        return np.less(self._table.partitioner.stripes(keys.slice(start, stop)), stripe)

    def forget_before(self, side: int, partition: int, stripe: int) -> None:
        """Drop the rows of a memory part that lie in stripes before this one: they will never be needed again."""
        if stripe >= self.count:
            self._table.forget(side, partition)
        else:
            self._table.keep(side, partition, ~self.before(self._table.parts[side][partition], stripe))

    def rows_of_next(self, side: int, partition: int, last: Stripes) -> int:
        """Rows on disk of the stripe behind the ``last`` ones."""
        return sum(run.rows_of((last[1], last[1] + 1)) for run in self._table.runs[side][partition])

    def fitting(self, side: int, partition: int, last: Stripes) -> Stripes:
        """Stripes on disk behind the ``last`` ones, as many as there is room for in memory; at least one."""
        in_rows = self._table.room_rows() is not None
        first = last[1]
        stop = first + 1 if in_rows else first + max(1, last[1] - last[0])  # a memory part keeps the bytes that it had
        while stop < self.count and self._have_room(side, partition, (first, stop + 1)):
            stop += 1
        return first, min(stop, self.count)

    def _have_room(self, side: int, partition: int, stripes: Stripes) -> bool:
        runs, rows, memory = self._table.runs[side][partition], self._table.room_rows(), self._table.memory
        if rows is not None:
            return sum(run.rows_of(stripes) for run in runs) <= rows
        return _GROWN * sum(run.nbytes_of(stripes) for run in runs) <= (memory.limit.bytes or 0) - memory.used_bytes
