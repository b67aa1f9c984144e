"""Numbers that stay while rows come and go: for indexes that point at rows, and for a hand that goes round them.

A side store gives rows other numbers when it lets free ones go. A *slot* is the number by which everybody else knows a
row; it is given out again once it has been freed. Where the row lies is found by ``rows_of``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa

from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state.budget import Budget
from earlyjoin.state.growable import Growable
from earlyjoin.state.side_store import Note, SideStore
from earlyjoin.state.snapshot import Snapshot

_SLOT = Note(name="slot", account="slots")
_FREED = Note(name="freed", account="slots", dtype=np.bool_, default=False)
_NOWHERE = -1


class SlottedStore:
    """A side store whose rows are known by slots. Free rows leave it when they are many or their room is needed."""

    def __init__(self, schema: pa.Schema, budget: Budget, *notes: Note) -> None:
        self.store = SideStore(schema, budget, *notes, _SLOT, _FREED, freed_by=_FREED.name)
        self._places = Growable(np.int64, budget.account(_SLOT.account))
        """The row of each slot; _NOWHERE for slots that are free."""

    def __len__(self) -> int:
        """Slots in use."""
        return self.store.live

    @property
    def capacity(self) -> int:
        """Slots in use or free: all numbers are below it."""
        return self._places.length

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return self.store.nbytes + self._places.nbytes

    @property
    def used(self) -> Bool:
        """For each slot: is it in use?"""
        return cast(Bool, np.not_equal(self._places.data, _NOWHERE))

    def rows_of(self, slots: Int64) -> Int64:
        """The rows of slots in use; valid until the next ``insert`` or ``free``."""
        return cast(Int64, self._places.data[slots])

    def slots_of(self, rows: Int64) -> Int64:
        """The slots of rows of the store."""
        return cast(Int64, self.store.note(_SLOT.name))[rows]

    def insert(self, batch: pa.RecordBatch, keys: Keys | None, **notes: Any) -> Int64:
        """Add rows and return their slots, free ones first; on BudgetExceeded nothing but free rows has gone."""
        count, known = batch.num_rows, self.capacity
        again = np.flatnonzero(~self.used)[:count]
        slots = np.concatenate([again, np.arange(known, known + count - len(again), dtype=np.int64)])
        try:
            self._insert(slots, batch, keys, notes)
        except BudgetExceeded:
            if len(self.store) == self.store.live:
                raise
            self._drop_freed()
            self._insert(slots, batch, keys, notes)
        return slots

    def _insert(self, slots: Int64, batch: pa.RecordBatch, keys: Keys | None, notes: dict[str, Any]) -> None:
        self._places.ensure(max(self.capacity, int(slots.max(initial=-1)) + 1))
        first = self.store.insert(batch, keys, slot=slots, **notes)
        self._places.length = max(self.capacity, int(slots.max(initial=-1)) + 1)
        self._places.data[slots] = np.arange(first, first + len(slots))

    def free(self, slots: Int64) -> None:
        """The rows of these slots, which are in use, are needed no longer."""
        self.store.free(self.rows_of(slots))
        self._places.data[slots] = _NOWHERE
        if 2 * self.store.live < len(self.store):
            self._drop_freed()

    def _drop_freed(self) -> None:
        self.store.drop_freed()
        self._places.data[self.slots_of(np.arange(len(self.store)))] = np.arange(len(self.store))

    def clear(self) -> None:
        """Forget all rows and slots and give the memory back."""
        self.store.clear()
        self._places.clear()

    def save(self, snapshot: Snapshot, name: str) -> None:
        """Put rows, notes and slots into a snapshot."""
        self._drop_freed()
        self.store.save(snapshot, name)
        snapshot.arrays[f"{name}-places"] = self._places.data.copy()

    def load(self, snapshot: Snapshot, name: str) -> Iterator[tuple[pa.RecordBatch, dict[str, Any]]]:
        """What ``save`` gave, into an empty store: ``store.insert`` each batch with its keys and notes."""
        self._places.append(snapshot.arrays[f"{name}-places"])
        return self.store.saved(snapshot, name)
