"""One input's rows in memory with their keys, arrival stamps and flags; they leave memory as one run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.budget import Budget, row_too_large
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.runs import Run, RunWriter
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.rows.store import BatchRows
from earlyjoin.state.side_store import ARRIVAL, MATCHED, SideStore

_ARRIVAL = pa.field("__arrival", pa.int64(), nullable=False)


class Residents(SideStore):
    """Rows of one side in memory."""

    def __init__(
        self, side: int, schema: pa.Schema, key: BoundPredicate | None, budget: Budget, *, flags: bool
    ) -> None:
        super().__init__(schema, budget, ARRIVAL, *([MATCHED] if flags else []))
        self.side = side
        self.key = key

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        """Rows ``start`` to ``stop`` with their arrival stamps as the last column: what a page of a run holds."""
        index = np.arange(start, stop, dtype=np.int64)
        arrays = [*self.rows.take(index), pa.array(self.arrivals[start:stop])]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema.append(_ARRIVAL))

    def write(self, path: Path, counters: Counters, pages: Budget) -> Run:
        """Write all rows as one run whose pages each fit half of the ``pages`` budget."""
        writer = RunWriter(path, self.schema.append(_ARRIVAL), counters)
        account = pages.account("page being written")
        start = 0
        while start < len(self):
            stop = len(self) if pages.limit.rows is None else start + max(1, pages.limit.rows // 2)
            stop = min(stop, len(self), start + self._likely_page_rows(pages))
            page = self.batch(start, stop)
            while pages.limit.bytes is not None and 2 * self.page_nbytes(page) > pages.limit.bytes and stop - start > 1:
                stop = start + (stop - start) // 2
                page = self.batch(start, stop)
            if not account.try_reserve(batch_nbytes(page)):
                raise row_too_large(batch_nbytes(page) / page.num_rows, pages, "writing")
            writer.write(page)
            account.clear()
            start = stop
        return writer.close()

    def _likely_page_rows(self, pages: Budget) -> int:
        """Rows that fill half of the ``pages`` budget if all are of average size: few pages are built in vain."""
        if pages.limit.bytes is None:
            return len(self)
        return max(1, int(pages.limit.bytes / 2 / max(1, self.nbytes / len(self))))

    def page_nbytes(self, page: pa.RecordBatch) -> int:
        """What a page will hold in memory once it is read and its keys are made."""
        return self.read_page(page).nbytes

    def read_page(self, page: pa.RecordBatch) -> Page:
        """Give a page of a run its keys again."""
        payload = page.select([])
        if len(self.schema):
            payload = pa.RecordBatch.from_arrays(page.columns[:-1], schema=self.schema)
        keys = self.key.encode(self.side, payload) if self.key is not None else None
        nbytes = batch_nbytes(page) + (keys.nbytes if keys is not None else 0)
        return Page(BatchRows(payload), keys, page.column(page.num_columns - 1).to_numpy(), nbytes)


class Page:
    """A page of a run in memory."""

    __slots__ = ("arrivals", "keys", "nbytes", "rows")

    def __init__(self, rows: BatchRows, keys: Keys | None, arrivals: Int64, nbytes: int) -> None:
        self.rows = rows
        self.keys = keys
        self.arrivals = arrivals
        self.nbytes = nbytes

    def __len__(self) -> int:
        return len(self.arrivals)
