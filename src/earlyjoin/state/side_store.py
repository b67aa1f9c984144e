"""What one input keeps in memory: rows, keys, notes about each row and an index, all under the same row numbers.

An algorithm says once what it wants to know of a row (has it matched? when did it come?) and makes a store for each
side, or for each partition of a side, so that what is probed together lies together. Rows are numbered from 0 in the
order in which they came; only ``keep`` and ``drop_freed`` give other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state.budget import Budget, BytesAccount
from earlyjoin.state.growable import Growable
from earlyjoin.state.hash_index import Cursor, HashIndex
from earlyjoin.state.key_store import KeyStore
from earlyjoin.state.rows.store import RowStore
from earlyjoin.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that is known of every row."""

    name: str
    account: str
    """What the budget calls its memory."""
    dtype: npt.DTypeLike | None = np.int64
    """None: that of the first values."""
    width: int | None = None
    default: Any = 0
    """For rows of which nothing is said."""
    rare: bool = False
    """Is there nothing to keep until something is said of a row?"""
    saved: bool = True
    """Is it part of a snapshot? Otherwise who loads one must know it."""


MATCHED = Note(name="matched", account="flags", dtype=np.bool_, default=False)
ARRIVAL = Note(name="arrival", account="arrival stamps")


class SideStore:
    """Rows that later rows of the other sides will meet.

    ``freed_by`` names a note of flags: rows whose flag is set are free. They are passed over by probes and left out by
    ``living``; their place is had back by ``drop_freed``, ``keep`` or ``clear``. (:mod:`earlyjoin.state.slots` gives
    rows numbers that stay.) ``counts_rows`` is not set where somebody else counts them in a memory in rows.
    """

    def __init__(
        self,
        schema: pa.Schema,
        budget: Budget,
        *notes: Note,
        index: bool = False,
        freed_by: str | None = None,
        counts_rows: bool = True,
    ) -> None:
        self.schema = schema
        self.rows = RowStore(schema, budget.account("payload") if counts_rows else BytesAccount(budget, "payload"))
        self.generation = 0
        """Grows with every insert, keep and clear: a probe in the middle of a chain must start that chain again."""
        self._keys = KeyStore(budget.account("keys"))
        self._index = HashIndex(budget.account("index")) if index else None
        self._accounts = {note.account: budget.account(note.account) for note in notes}
        self._declared = notes
        self._notes: dict[str, Growable] = {}
        for note in notes:
            if note.dtype is not None and not note.rare:
                self._begin(note)
        self._freed_by = freed_by
        self._freed = 0

    def __len__(self) -> int:
        """Rows held, free ones included."""
        return len(self.rows)

    @property
    def live(self) -> int:
        """Rows that are not free, as far as ``count_freed`` has counted."""
        return len(self.rows) - self._freed

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        held = self.rows.nbytes + self._keys.nbytes + sum(note.nbytes for note in self._notes.values())
        return held + (self._index.nbytes if self._index is not None else 0)

    @property
    def keys(self) -> Keys | None:
        """All keys, as views that are valid until the next change; None without rows, or for rows without keys."""
        return self._keys.keys() if len(self.rows) else None

    @property
    def key_nbytes(self) -> float:
        """Bytes of a key, on average."""
        return self._keys.nbytes / max(1, len(self))

    def note(self, name: str) -> npt.NDArray[Any] | None:
        """What is known of each row, as a view that is valid until the next insert; None when it is not kept."""
        note = self._notes.get(name)
        return note.data if note is not None else None

    @property
    def matched(self) -> Bool | None:
        """A flag a row: has it matched? None when nobody asks."""
        return cast("Bool | None", self.note(MATCHED.name))

    @property
    def arrivals(self) -> Int64:
        """When each row came."""
        return cast(Int64, self._notes[ARRIVAL.name].data)

    # Rows in

    def insert(self, batch: pa.RecordBatch, keys: Keys | None, **notes: Any) -> int:
        """Add rows at the end and return the number of the first; on BudgetExceeded nothing has changed.

        ``notes`` has an array or a single value by the name of each note that is not to be the default.
        """
        first, count = len(self.rows), batch.num_rows
        try:
            if self._index is not None:
                self._index.reserve(first + count)
            for note in self._declared:
                self._append(note, notes.get(note.name), first, count)
            if keys is not None:
                self._keys.append(keys)
            self.rows.append(batch)
        except BudgetExceeded:
            self._forget_from(first)
            raise
        if self._index is not None:
            stored = self._keys.keys()
            assert stored is not None
            self._index.insert(stored, first)
        if (freed := notes.get(self._freed_by or "")) is not None:
            self._freed += int(np.count_nonzero(np.broadcast_to(freed, count)))
        self.generation += 1
        return first

    def _append(self, note: Note, values: Any, first: int, count: int) -> None:
        kept = self._notes.get(note.name)
        if kept is None:
            if values is None:
                return
            kept = self._begin(note, values, first)
        kept.extend(count)[:] = note.default if values is None else values

    def _begin(self, note: Note, values: Any = None, rows: int = 0) -> Growable:
        dtype = note.dtype if note.dtype is not None else values.dtype
        kept = Growable(dtype, self._accounts[note.account], width=note.width)
        kept.extend(rows)[:] = note.default
        self._notes[note.name] = kept  # only now: a refusal must not leave notes that are shorter than the rows
        return kept

    # Probing

    def probe(
        self,
        probing: Keys,
        cursor: Cursor,
        out_probing: Int64,
        out_stored: Int64,
        *,
        once: bool = False,
        skip: Bool | None = None,
    ) -> tuple[int, int]:
        """Find rows with equal keys that are not free; see :meth:`HashIndex.probe`."""
        stored = self.keys
        if stored is None or self._index is None:
            cursor.row = len(probing)
            return 0, 0
        if self._freed_by is not None:
            skip = cast("Bool | None", self.note(self._freed_by))
        return self._index.probe(stored, probing, cursor, out_probing, out_stored, once=once, skip=skip)

    # Rows out

    def free(self, index: Int64) -> None:
        """These rows are needed no longer."""
        flags = self.note(self._freed_by or "")
        assert flags is not None, "nothing says which rows are free"
        flags[index] = True
        self.count_freed()

    def count_freed(self) -> int:
        """Count the rows whose flags were set since the last call."""
        flags = self.note(self._freed_by) if self._freed_by is not None else None
        if flags is None:
            return 0
        freed = int(np.count_nonzero(flags)) - self._freed
        self._freed += freed
        return freed

    def living(self) -> Int64:
        """Numbers of the rows that are not free."""
        flags = self.note(self._freed_by or "") if self._freed else None
        return np.arange(len(self), dtype=np.int64) if flags is None else np.flatnonzero(~flags)

    def drop_freed(self) -> Int64:
        """Let free rows go, so that others find room; returns the old numbers of those that stay, in order."""
        staying = self.living()
        if len(staying) < len(self):
            self.keep(staying)
        return staying

    def keep(self, index: Int64) -> None:
        """Let these rows, in ascending order, be all there are; they get the numbers from 0 on."""
        self.rows.keep(index)
        self._keys.keep(index)
        for note in self._notes.values():
            note.keep(index)
        self._freed = 0
        self.count_freed()
        if self._index is not None:
            self._index.clear()
            self._index.reserve(len(index))  # less than it had
            stored = self._keys.keys()
            assert stored is not None
            self._index.insert(stored, 0)
        self.generation += 1

    def truncate(self, length: int) -> None:
        """Forget the rows from ``length`` on; not for stores with an index."""
        assert self._index is None
        self._forget_from(length)
        self.rows.truncate(length)
        self._freed = 0
        self.count_freed()

    def _forget_from(self, length: int) -> None:
        self._keys.truncate(length)
        for note in self._notes.values():
            note.truncate(length)

    def clear(self) -> None:
        """Forget all rows and give the memory back."""
        self.rows.clear()
        self._keys.clear()
        if self._index is not None:
            self._index.clear()
        for note in self._declared:
            if note.name in self._notes:
                self._notes[note.name].clear()
                if note.rare:
                    del self._notes[note.name]
        self._freed = 0
        self.generation += 1

    # Snapshots

    def all_rows(self) -> pa.RecordBatch:
        """The rows, in the order in which they came."""
        return self.rows.batch(np.arange(len(self), dtype=np.int64))

    def save(self, snapshot: Snapshot, name: str) -> None:
        """Put rows and notes into a snapshot; keys and index are made again from the rows."""
        snapshot.tables[name] = pa.Table.from_batches([self.all_rows()])
        for note in self._declared:
            if note.saved and note.name in self._notes:
                snapshot.arrays[f"{name}-{note.name}"] = self._notes[note.name].data.copy()

    def saved(self, snapshot: Snapshot, name: str) -> Iterator[tuple[pa.RecordBatch, dict[str, Any]]]:
        """What ``save`` gave, batch by batch: the rows and their notes, to be inserted again."""
        start = 0
        arrays = {note.name: snapshot.arrays.get(f"{name}-{note.name}") for note in self._declared}
        for batch in snapshot.tables[name].to_batches() if name in snapshot.tables else ():
            stop = start + batch.num_rows
            if batch.num_rows:
                yield batch, {note: known[start:stop] for note, known in arrays.items() if known is not None}
            start = stop
