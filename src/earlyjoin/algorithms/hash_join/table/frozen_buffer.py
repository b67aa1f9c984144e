"""The page buffer of a frozen partition (EHJ section 4.1): rows on their way to disk that are never probed."""

from __future__ import annotations

import pyarrow as pa

from earlyjoin.algorithms.hash_join.table.disk_part import DiskRun, PartWriter, SideFiles
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.encoding.keys import Bool, Int64
from earlyjoin.state.budget import Budget
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.side_store import ARRIVAL, MATCHED, SideStore


class FrozenBuffer:
    """Collects rows and appends them to one open run. Without room for a buffer, rows are written as they come."""

    def __init__(self, files: SideFiles, label: int, memory: Budget, *, rows: int, nbytes: int) -> None:
        self._files, self._label = files, label
        self._writer: PartWriter | None = None
        self._most_bytes: int | None = nbytes if memory.limit.rows is None else None
        """Size of the buffer until the first rows tell how many it will hold."""
        # Booked whether used or not: what is left for others must not depend on how rows come in batches.
        self._room = memory.account("page buffer")
        self._most_rows = rows if memory.limit.rows is None or self._room.try_reserve(rows=rows) else 0
        self._held = SideStore(files.schema, memory, ARRIVAL, MATCHED, counts_rows=False)

    @property
    def room_rows(self) -> int:
        """Rows of a memory in rows that are booked for it."""
        return self._room.rows

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return self._held.nbytes

    @property
    def rows(self) -> int:
        """Rows in the buffer and in the open run."""
        return len(self._held) + (self._writer.rows if self._writer is not None else 0)

    def add(self, batch: pa.RecordBatch, arrivals: Int64, matched: Bool | None) -> None:
        """Take rows; write when the buffer is full."""
        if self._most_bytes is not None:
            # None, if a single row is larger: buffers of many partitions would hold more rows than there is room for.
            self._most_rows = int(self._most_bytes / (batch_nbytes(batch) / batch.num_rows + 9))
            self._most_bytes = None
        if not self._buffered(batch, arrivals, matched):
            self._write_out()
            if not self._buffered(batch, arrivals, matched):
                self._write(batch, arrivals, matched)

    def _buffered(self, batch: pa.RecordBatch, arrivals: Int64, matched: Bool | None) -> bool:
        if batch.num_rows + len(self._held) > self._most_rows:
            return False
        try:
            self._held.insert(batch, None, arrival=arrivals, matched=matched)
        except BudgetExceeded:
            return False
        return True

    def _write_out(self) -> None:
        if len(self._held):
            self._write(self._held.rows.view(0, len(self._held)), self._held.arrivals, self._held.matched)
        self._held.truncate(0)  # the room stays: the buffer will fill again

    def _write(self, batch: pa.RecordBatch, arrivals: Int64, matched: Bool | None) -> None:
        if self._writer is None:
            self._writer = PartWriter(self._files, self._label, buffered=True)
        self._writer.write(batch, arrivals, arrivals + 1, matched)

    def empty(self) -> bool:
        """Write what is buffered and give its bytes back; False when there are none."""
        held = self.nbytes > 0
        self._write_out()
        self._held.clear()
        return held

    def close_run(self) -> DiskRun | None:
        """Write what is buffered and finish the run; further rows start another."""
        self.empty()  # the clean-up needs the room more than they do
        if self._writer is None:
            return None
        run, self._writer = self._writer.close(), None
        return run

    def discard(self) -> None:
        """Give the memory back; an open run is removed. Nothing is written any more: that may be what has failed."""
        if self._writer is not None:
            self._writer.close().run.delete()
            self._writer = None
        self._held.clear()
        self._room.clear()
