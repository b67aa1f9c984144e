"""One input of a nested loop: its rows in memory, and runs of those that left memory together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.protocol import Context
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state.budget import Budget, row_too_large
from earlyjoin.state.disk.flag_file import FlagFile
from earlyjoin.state.disk.pages import PageLayout, PageSlot, cut_pages
from earlyjoin.state.disk.runs import Run, RunWriter
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.rows.store import BatchRows
from earlyjoin.state.side_store import ARRIVAL, MATCHED, SideStore
from earlyjoin.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class SpilledRun:
    """Rows that left memory together."""

    run: Run
    last_arrival: int
    departure: int
    first: int
    """Number of its first row among all rows of the side that have left memory: its place in the file of flags."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a run in memory."""

    rows: BatchRows
    keys: Keys | None
    arrivals: Int64
    nbytes: int

    def __len__(self) -> int:
        return len(self.arrivals)


class StoredSide(SideStore):
    """Rows in memory; ``runs`` are those that left it, of which one page is in memory at a time."""

    def __init__(
        self, side: int, schema: pa.Schema, key: BoundPredicate | None, memory: Budget, reading: Budget,
        context: Context, *, flags: bool,
    ) -> None:  # fmt: skip
        super().__init__(schema, memory, ARRIVAL, *([MATCHED] if flags else []))
        self.side = side
        self.runs: list[SpilledRun] = []
        self._key, self._context, self._reading = key, context, reading
        self._layout = PageLayout(schema, [ARRIVAL.name])
        self._slot: PageSlot[Page] = PageSlot(reading, context.counters)
        self._flags = FlagFile(context.spill) if flags else None

    def encode(self, rows: pa.RecordBatch) -> Keys | None:
        """Keys of rows; None when the condition has no keys."""
        return self._key.encode(self.side, rows) if self._key is not None else None

    # Rows on disk

    def spill(self, departure: int) -> None:
        """Write all rows as one run whose pages each fit half of the memory for reading, and forget them in memory."""
        writer = RunWriter(self._context.spill.new_path(".pages"), self._layout.schema, self._context.counters)
        account, limit = self._reading.account("page being written"), self._reading.limit
        limit_bytes = limit.bytes // 2 if limit.bytes is not None else None
        for _, page, _ in cut_pages(len(self), self._page_rows(), limit_bytes, self._page):
            if not account.try_reserve(batch_nbytes(page)):
                raise row_too_large(batch_nbytes(page) / page.num_rows, self._reading, "writing")
            writer.write(page)
            account.clear()
        first = self.runs[-1].first + self.runs[-1].run.rows if self.runs else 0
        self.runs.append(SpilledRun(writer.close(), int(self.arrivals[-1]), departure, first))
        if self._flags is not None and self.matched is not None:
            self._flags.append(self.matched)
        super().clear()
        self._context.counters.flushes += 1

    def _page_rows(self) -> int:
        """Rows that fill half of the memory for reading if all are of average size: few pages are built in vain."""
        limit = self._reading.limit
        if limit.bytes is None:
            return max(1, (limit.rows or 0) // 2)
        return max(1, int(limit.bytes / 2 / max(1, self.nbytes / len(self))))

    def _page(self, start: int, stop: int) -> tuple[pa.RecordBatch, int]:
        """Some rows with their arrival stamps, and what they will take in memory once they are read again."""
        rows = self.rows.batch(np.arange(start, stop, dtype=np.int64))
        page = self._layout.page(rows, [self.arrivals[start:stop]])
        return page, self._made(page).nbytes

    def _made(self, page: pa.RecordBatch) -> Page:
        rows = self._layout.rows_of(page)
        keys = self.encode(rows)
        nbytes = batch_nbytes(page) + (keys.nbytes if keys is not None else 0)
        return Page(BatchRows(rows), keys, self._layout.marks_of(page)[0], nbytes)

    def read(self, spilled: SpilledRun, number: int) -> tuple[Page, int] | None:
        """A page and the number of its first row among all that left memory, or None behind the last page."""
        run = spilled.run
        if number >= run.pages:
            return None
        return self._slot.hold(run, number, number + 1, self._made), spilled.first + run.starts[number]

    @property
    def page_nbytes(self) -> int:
        """Bytes of the page in memory."""
        return self._slot.nbytes

    def drop_page(self) -> None:
        """Let the page in memory go."""
        self._slot.drop()

    def matched_on_disk(self, first: int, count: int) -> Bool | None:
        """Copies of the flags of some rows; ``mark`` keeps what was set. None when nobody asks."""
        return None if self._flags is None else self._flags.read(np.arange(first, first + count, dtype=np.int64))

    def mark(self, first: int, matched: Bool | None) -> None:
        """Keep the flags of some rows on disk."""
        if self._flags is not None and matched is not None:
            self._flags.mark(first + np.flatnonzero(matched))

    # State

    def save_all(self, snapshot: Snapshot) -> None:
        """Rows in memory and on disk."""
        self.save(snapshot, f"rows-{self.side}")
        if self._flags is not None:
            self._flags.save(snapshot, f"flags-{self.side}")
        runs: list[dict[str, Any]] = [
            {"run": one.run.save(snapshot), "last_arrival": one.last_arrival, "departure": one.departure,
             "first": one.first} for one in self.runs
        ]  # fmt: skip
        snapshot.values[f"runs-{self.side}"] = runs

    def load_all(self, snapshot: Snapshot) -> None:
        """The inverse of ``save_all``."""
        for batch, notes in self.saved(snapshot, f"rows-{self.side}"):
            self.insert(batch, self.encode(batch), **notes)
        for values in snapshot.values[f"runs-{self.side}"]:
            run = Run.load(snapshot, values["run"], self._context.spill)
            self.runs.append(SpilledRun(**(values | {"run": run})))
        if self._flags is not None:
            self._flags.load(snapshot, f"flags-{self.side}", sum(one.run.rows for one in self.runs))

    def close(self) -> None:
        """Give memory back and remove the runs."""
        super().clear()
        self._slot.drop()
        for one in self.runs:
            one.run.delete()
        self.runs.clear()
        if self._flags is not None:
            self._flags.delete()
