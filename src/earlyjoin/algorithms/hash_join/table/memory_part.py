"""The memory part of one partition of one side: rows, keys, stamps, flags and an index of its own."""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.hash_join.table.stored_form import StoredKeys
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state.budget import Budget, BytesAccount
from earlyjoin.state.clock import LogicalClock
from earlyjoin.state.growable import Growable
from earlyjoin.state.hash_index import Cursor, HashIndex
from earlyjoin.state.key_store import KeyStore
from earlyjoin.state.rows.store import RowStore
from earlyjoin.state.snapshot import Snapshot


class MemoryPart:
    """Rows that later rows of the other side will probe.

    A row whose ``matched`` flag is set and whose side is *expendable* is dead: it needs no further match, no longer
    counts as a row in memory, and is left out when the part is written.
    """

    def __init__(self, side: int, schema: pa.Schema, budget: Budget, *, flags: bool, expendable: bool) -> None:
        self.side = side
        self.schema = schema
        self.rows = RowStore(schema, BytesAccount(budget, "payload"))
        self._count = budget.account("rows")
        self._keys = KeyStore(budget.account("keys"))
        self._index = HashIndex(budget.account("index"))
        self._stamps = budget.account("arrival stamps")
        self._arrivals = Growable(np.int64, self._stamps)
        self._origins: Growable | None = None
        self._matched = Growable(np.bool_, budget.account("flags")) if flags else None
        self.expendable = expendable
        self._dead = 0
        self.generation = 0
        """Grows with every insert, keep and clear: a probe in the middle of a chain must start that chain again."""

    def __len__(self) -> int:
        """Rows held, dead ones included."""
        return len(self.rows)

    @property
    def live(self) -> int:
        """Rows that count."""
        return len(self.rows) - self._dead

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        held = self.rows.nbytes + self._keys.nbytes + self._index.nbytes + self._arrivals.nbytes
        return held + sum(part.nbytes for part in (self._matched, self._origins) if part is not None)

    @property
    def keys(self) -> Keys | None:
        """All keys; None when empty."""
        return self._keys.keys() if len(self) else None

    @property
    def arrivals(self) -> Int64:
        """Arrival stamp of each row."""
        return cast(Int64, self._arrivals.data)

    @property
    def departures(self) -> Int64:
        """Departure stamp of each row: NEVER, but for rows that were read back from disk."""
        if self._origins is None:
            return np.full(len(self), LogicalClock.NEVER, dtype=np.int64)
        return cast(Int64, self._origins.data[:, 0])

    @property
    def labels(self) -> Int64:
        """Label of the run from which each row was read back, -1 for rows that never left."""
        if self._origins is None:
            return np.full(len(self), -1, dtype=np.int64)
        return cast(Int64, self._origins.data[:, 1])

    @property
    def matched(self) -> Bool | None:
        """A flag a row: has it matched? A view that is valid until the next insert; None when nobody asks."""
        return cast(Bool, self._matched.data) if self._matched is not None else None

    def insert(
        self,
        batch: pa.RecordBatch,
        keys: Keys,
        arrivals: Int64,
        *,
        matched: Bool | None = None,
        departures: Int64 | None = None,
        labels: Int64 | None = None,
    ) -> int:
        """Add rows, all with valid keys, and return the number of the first; on BudgetExceeded nothing has changed."""
        first = len(self.rows)
        born_dead = int(np.count_nonzero(matched)) if self.expendable and matched is not None else 0
        self._count.reserve(rows=batch.num_rows)
        try:
            self._index.reserve(first + batch.num_rows)
            self._arrivals.append(arrivals)
            if departures is not None and self._origins is None:
                self._start_origins(first)
            if self._origins is not None:
                origins = self._origins.extend(batch.num_rows)
                origins[:, 0] = LogicalClock.NEVER if departures is None else departures
                origins[:, 1] = -1 if labels is None else labels
            if self._matched is not None:
                self._matched.extend(batch.num_rows)[:] = False if matched is None else matched
            self._keys.append(Keys(keys.words, keys.heap))
            self.rows.append(batch)
        except BudgetExceeded:
            self._truncate(first)
            self._count.release(rows=batch.num_rows)
            raise
        self._dead += born_dead
        stored = self._keys.keys()
        assert stored is not None
        self._index.insert(stored, first)
        self.generation += 1
        return first

    def _start_origins(self, rows: int) -> None:
        origins = Growable(np.int64, self._stamps, width=2)
        origins.extend(rows)[:] = (LogicalClock.NEVER, -1)
        self._origins = origins

    def _truncate(self, first: int) -> None:
        self._keys.truncate(first)
        self._arrivals.truncate(first)
        for part in (self._matched, self._origins):
            if part is not None:
                part.truncate(first)

    def probe(
        self, probing: Keys, cursor: Cursor, out_probing: Int64, out_stored: Int64, *, once: bool
    ) -> tuple[int, int]:
        """Find rows with equal keys that are not dead; see :meth:`HashIndex.probe`."""
        stored = self.keys
        if stored is None:
            cursor.row = len(probing)
            return 0, 0
        skip = self.matched if self.expendable else None
        return self._index.probe(stored, probing, cursor, out_probing, out_stored, once=once, skip=skip)

    def bury(self) -> int:
        """Count the rows that died since the last call; their place is free once the part is cleared, as in EHJ."""
        if not self.expendable or self._matched is None:
            return 0
        died = int(np.count_nonzero(self._matched.data)) - self._dead
        self._dead += died
        return died

    def living(self) -> Int64:
        """Numbers of the rows that are not dead."""
        if not self._dead:
            return np.arange(len(self), dtype=np.int64)
        assert self.matched is not None
        return np.flatnonzero(~self.matched)

    def keep(self, index: Int64) -> None:
        """Let these rows, in ascending order, be all there are; they get the numbers from 0 on."""
        self._count.release(rows=len(self) - len(index))
        self.rows.keep(index)
        self._keys.keep(index)
        for part in (self._arrivals, self._origins, self._matched):
            if part is not None:
                part.keep(index)
        self._dead = int(np.count_nonzero(self._matched.data)) if self.expendable and self._matched is not None else 0
        self._index.clear()
        self._index.reserve(len(index))  # less than it had
        stored = self._keys.keys()
        assert stored is not None
        self._index.insert(stored, 0)
        self.generation += 1

    def clear(self) -> None:
        """Forget all rows and give the memory back."""
        self.rows.clear()
        self._keys.clear()
        self._index.clear()
        self._arrivals.clear()
        if self._origins is not None:
            self._origins.clear()
            self._origins = None
        if self._matched is not None:
            self._matched.clear()
        self._count.clear()
        self._dead = 0
        self.generation += 1

    def save(self, saved: Snapshot, name: str) -> None:
        """Put the rows and what is known of them into a snapshot."""
        everything = np.arange(len(self), dtype=np.int64)
        saved.tables[f"rows-{name}"] = pa.Table.from_batches([self.rows.batch(everything)])
        saved.arrays[f"stamps-{name}"] = np.stack([self.arrivals, self.departures, self.labels])
        if self.matched is not None:
            saved.arrays[f"matched-{name}"] = self.matched.copy()

    def load(self, saved: Snapshot, name: str, key: StoredKeys) -> None:
        """Take the rows of a snapshot, if it has any."""
        if f"rows-{name}" not in saved.tables:
            return
        stamps, matched, start = saved.arrays[f"stamps-{name}"], saved.arrays.get(f"matched-{name}"), 0
        read_back = bool((stamps[2] >= 0).any())
        for batch in saved.tables[f"rows-{name}"].to_batches():
            stop = start + batch.num_rows
            self.insert(
                batch,
                key.encode(batch),
                stamps[0, start:stop],
                matched=matched[start:stop] if matched is not None else None,
                departures=stamps[1, start:stop] if read_back else None,
                labels=stamps[2, start:stop] if read_back else None,
            )
            start = stop
