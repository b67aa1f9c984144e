"""The memory part of one partition of one side: a side store that knows rows which were read back from disk."""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.hash_join.table.stored_form import StoredKeys
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state.budget import Budget
from earlyjoin.state.clock import LogicalClock
from earlyjoin.state.side_store import ARRIVAL, MATCHED, Note, SideStore
from earlyjoin.state.snapshot import Snapshot

_NEVER_LEFT = (LogicalClock.NEVER, -1)
_ORIGIN = Note(name="origin", account=ARRIVAL.account, width=2, default=_NEVER_LEFT, rare=True)
"""For rows that were read back from disk: when they left memory, and the label of their run."""


class MemoryPart(SideStore):
    """Rows that later rows of the other side will probe.

    A row whose ``matched`` flag is set and whose side is *expendable* is dead: its place is free, it needs no further
    match, no longer counts as a row in memory, and is left out when the part is written.
    """

    def __init__(self, side: int, schema: pa.Schema, budget: Budget, *, flags: bool, expendable: bool) -> None:
        notes = [ARRIVAL, _ORIGIN, *([MATCHED] if flags else [])]
        freed_by = MATCHED.name if expendable and flags else None
        super().__init__(schema, budget, *notes, index=True, freed_by=freed_by)
        self.side = side
        self.expendable = expendable
        self._room = budget.account("rows")

    @property
    def departures(self) -> Int64:
        """Departure stamp of each row: NEVER, but for rows that were read back from disk."""
        return self._origin(0)

    @property
    def labels(self) -> Int64:
        """Label of the run from which each row was read back, -1 for rows that never left."""
        return self._origin(1)

    def _origin(self, column: int) -> Int64:
        origins = self.note(_ORIGIN.name)
        if origins is None:
            return np.full(len(self), _NEVER_LEFT[column], dtype=np.int64)
        return cast(Int64, origins[:, column])

    def add(
        self,
        batch: pa.RecordBatch,
        keys: Keys,
        arrivals: Int64,
        *,
        matched: Bool | None = None,
        departures: Int64 | None = None,
        labels: Int64 | int = -1,
    ) -> int:
        """Insert rows, all with valid keys; those that were read back have departures and labels."""
        self._room.reserve(rows=batch.num_rows)  # asked for first, so that a refusal leaves no array grown
        self._room.clear()
        origins = None
        if departures is not None:
            origins = np.column_stack([departures, np.broadcast_to(labels, len(departures))])
        return self.insert(batch, Keys(keys.words, keys.heap), arrival=arrivals, matched=matched, origin=origins)

    def load(self, saved: Snapshot, name: str, key: StoredKeys) -> None:
        """Take the rows of a snapshot, if it has any."""
        for batch, notes in self.saved(saved, name):
            self.insert(batch, key.encode(batch), **notes)
