"""One input's rows in memory with their keys, arrival stamps and flags; they leave memory as one run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.budget import Budget, row_too_large
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.pages import PageLayout, cut_pages
from earlyjoin.state.disk.runs import Run, RunWriter
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.rows.store import BatchRows
from earlyjoin.state.side_store import ARRIVAL, MATCHED, SideStore


class Residents(SideStore):
    """Rows of one side in memory."""

    def __init__(
        self, side: int, schema: pa.Schema, key: BoundPredicate | None, budget: Budget, *, flags: bool
    ) -> None:
        super().__init__(schema, budget, ARRIVAL, *([MATCHED] if flags else []))
        self.side = side
        self.key = key
        self._layout = PageLayout(schema, [ARRIVAL.name])

    def write(self, path: Path, counters: Counters, pages: Budget) -> Run:
        """Write all rows as one run whose pages each fit half of the ``pages`` budget."""
        writer = RunWriter(path, self._layout.schema, counters)
        account = pages.account("page being written")
        most, limit = self._likely_page_rows(pages), pages.limit
        if limit.rows is not None:
            most = max(1, limit.rows // 2)
        limit_bytes = limit.bytes // 2 if limit.bytes is not None else None
        for _, page, _ in cut_pages(len(self), most, limit_bytes, self._page):
            if not account.try_reserve(batch_nbytes(page)):
                raise row_too_large(batch_nbytes(page) / page.num_rows, pages, "writing")
            writer.write(page)
            account.clear()
        return writer.close()

    def _page(self, start: int, stop: int) -> tuple[pa.RecordBatch, int]:
        """Some rows with their arrival stamps, and what they will take in memory once they are read again."""
        rows = self.rows.batch(np.arange(start, stop, dtype=np.int64))
        page = self._layout.page(rows, [self.arrivals[start:stop]])
        return page, self.read_page(page).nbytes

    def _likely_page_rows(self, pages: Budget) -> int:
        """Rows that fill half of the ``pages`` budget if all are of average size: few pages are built in vain."""
        if pages.limit.bytes is None:
            return len(self)
        return max(1, int(pages.limit.bytes / 2 / max(1, self.nbytes / len(self))))

    def read_page(self, page: pa.RecordBatch) -> Page:
        """Give a page of a run its keys again."""
        payload = self._layout.rows_of(page)
        keys = self.key.encode(self.side, payload) if self.key is not None else None
        nbytes = batch_nbytes(page) + (keys.nbytes if keys is not None else 0)
        return Page(BatchRows(payload), keys, self._layout.marks_of(page)[0], nbytes)


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
