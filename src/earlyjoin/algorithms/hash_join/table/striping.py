"""Stripes of a table: rows of a partition by further bits of their hash, so that it can be taken piece by piece.

Runs lie on disk in the order of their stripes. A clean-up that finds no room for a partition takes as many of its
stripes as fit, of both sides, and then the next ones: rows are read once, not once for each fill of the memory. A
partition whose first run is too small for that has no stripes and is taken as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from earlyjoin.algorithms.hash_join.table.disk_part import Stripes
from earlyjoin.algorithms.hash_join.table.memory_part import MemoryPart
from earlyjoin.algorithms.hash_join.table.partitioning import STRIPES
from earlyjoin.kernels.partitioning import order_by_partition
from earlyjoin.predicates.encoding.keys import Bool, Int64

if TYPE_CHECKING:
    from earlyjoin.algorithms.hash_join.table.table import PartitionedTable

_LEAST_PAGES = 4
_LEAST_BYTES = 2**13
"""Pages, or bytes of a memory in bytes, that a stripe of a run should have: neighbours share a page."""
_GROWN = 1.5
"""Bytes that rows from disk may take in memory, for each byte of their pages: index and room to grow included."""


class Striping:
    """What a table does by stripes; without them every partition is taken as a whole."""

    def __init__(self, table: PartitionedTable, *, striped: bool) -> None:
        self._table = table
        self.count = STRIPES if striped else 1

    def ordered(self, side: int, partition: int, leaving: Int64) -> tuple[Int64, Int64 | None]:
        """Rows of a memory part in the order of their stripes, and where each stripe ends; or as they are."""
        part = self._table.parts[side][partition]
        first = not any(runs[partition] for runs in self._table.runs)
        keys = part.keys
        if keys is None or not self._striped(partition) or (first and not self._large_enough(part, len(leaving))):
            return leaving, None
        order, starts = order_by_partition(self._table.partitioner.stripes(keys)[leaving], self.count)
        return leaving[order], starts[1:]

    def _striped(self, partition: int) -> bool:
        """Have all runs of the partition stripes?"""
        return self.count > 1 and all(run.stripe_pages for runs in self._table.runs for run in runs[partition])

    def _large_enough(self, part: MemoryPart, rows: int) -> bool:
        page_rows = self._table.files[part.side].page_rows
        if self._table.room_rows() is not None:
            return rows >= self.count * _LEAST_PAGES * (page_rows or 1)
        return part.nbytes * rows >= self.count * _LEAST_BYTES * len(part)

    def before(self, part: MemoryPart, stripe: int, start: int = 0, stop: int | None = None) -> Bool:
        """For each row of a memory part (from ``start`` to ``stop``): does it lie in a stripe before this one?"""
        stop = len(part) if stop is None else stop
        keys = part.keys
        if stripe >= self.count or keys is None:
            return np.ones(stop - start, dtype=np.bool_)
        return np.less(self._table.partitioner.stripes(keys.slice(start, stop)), stripe)

    def forget_before(self, side: int, partition: int, stripe: int) -> None:
        """Drop the rows of a memory part that lie in stripes before this one: they will never be needed again."""
        self._table.keep(side, partition, ~self.before(self._table.parts[side][partition], stripe))

    def rows_of_next(self, side: int, partition: int, last: Stripes) -> int:
        """Rows on disk of the stripe behind the ``last`` ones; of all of them where there are no stripes."""
        stop = last[1] + 1 if self._striped(partition) else self.count
        return sum(run.rows_of((last[1], stop)) for run in self._table.runs[side][partition])

    def next_fitting(self, side: int, partition: int, last: Stripes) -> Stripes:
        """Stripes on disk behind the ``last`` ones, as many as there is room for in memory; at least one."""
        in_rows = self._table.room_rows() is not None
        first = last[1]
        if not self._striped(partition):
            return first, self.count
        stop = first + 1 if in_rows else first + max(1, last[1] - last[0])  # a memory part keeps the bytes that it had
        while stop < self.count and self._have_room(side, partition, (first, stop + 1)):
            stop += 1
        return first, min(stop, self.count)

    def _have_room(self, side: int, partition: int, stripes: Stripes) -> bool:
        runs, rows, memory = self._table.runs[side][partition], self._table.room_rows(), self._table.memory
        if rows is not None:
            return sum(run.rows_of(stripes) for run in runs) <= rows
        return _GROWN * sum(run.nbytes_of(stripes) for run in runs) <= (memory.limit.bytes or 0) - memory.used_bytes
