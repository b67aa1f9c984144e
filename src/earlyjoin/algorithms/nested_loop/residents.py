"""One input's rows in memory with their keys, arrival stamps and flags; they leave memory as one run."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa

from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state.budget import Budget, row_too_large
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.runs import Run, RunWriter
from earlyjoin.state.growable import Growable
from earlyjoin.state.key_store import KeyStore
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.rows.store import BatchRows, RowStore

ARRIVAL = pa.field("__arrival", pa.int64(), nullable=False)


class Residents:
    """Rows of one side in memory."""

    def __init__(
        self, side: int, schema: pa.Schema, key: BoundPredicate | None, budget: Budget, *, flags: bool
    ) -> None:
        self.side = side
        self.schema = schema
        self.key = key
        self.rows = RowStore(schema, budget.account("payload"))
        self._keys = KeyStore(budget.account("keys"))
        self._arrivals = Growable(np.int64, budget.account("arrival stamps"))
        self._matched = Growable(np.bool_, budget.account("flags")) if flags else None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        flags = self._matched.nbytes if self._matched is not None else 0
        return self.rows.nbytes + self._keys.nbytes + self._arrivals.nbytes + flags

    @property
    def keys(self) -> Keys | None:
        """All keys; None before the first row, or when the condition has no keys."""
        return self._keys.keys()

    @property
    def arrivals(self) -> Int64:
        """The stamp of each row."""
        return cast(Int64, self._arrivals.data)

    @property
    def matched(self) -> Bool | None:
        """A flag a row: has it matched? None when nobody asks."""
        return cast(Bool, self._matched.data) if self._matched is not None else None

    def insert(self, batch: pa.RecordBatch, keys: Keys | None, arrivals: Int64) -> None:
        """Add rows at the end; on BudgetExceeded nothing has changed."""
        first = len(self)
        try:
            self._arrivals.append(arrivals)
            if self._matched is not None:
                self._matched.extend(batch.num_rows)[:] = False
            if keys is not None:
                self._keys.append(keys)
            self.rows.append(batch)
        except BudgetExceeded:
            self._arrivals.truncate(first)
            self._keys.truncate(first)
            if self._matched is not None:
                self._matched.truncate(first)
            raise

    def clear(self) -> None:
        """Forget all rows and give the memory back."""
        self.rows.clear()
        self._keys.clear()
        self._arrivals.clear()
        if self._matched is not None:
            self._matched.clear()

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        """Rows ``start`` to ``stop`` with their arrival stamps as the last column: what a page of a run holds."""
        index = np.arange(start, stop, dtype=np.int64)
        arrays = [*self.rows.take(index), pa.array(self.arrivals[start:stop])]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema.append(ARRIVAL))

    def write(self, path: Path, counters: Counters, pages: Budget) -> Run:
        """Write all rows as one run whose pages each fit half of the ``pages`` budget."""
        writer = RunWriter(path, self.schema.append(ARRIVAL), counters)
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
