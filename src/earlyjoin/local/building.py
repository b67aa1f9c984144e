"""From matches to batches of rows, inside a share of the memory.

Rows that travel packed become columns again only here, and thousands of columns cost as much for two rows as for
twenty. So small pieces of such rows are kept, packed, until there are enough of them, some time has passed, or input is
waited for::

    matches ──▶ few packed rows ──▶ held ──▶ one batch
                     └─ the first of all, or a large piece ──▶ a batch at once
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.output import OutputSchema
from earlyjoin.algorithms.protocol import Matches
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Budget, row_too_large
from earlyjoin.state.clock import Clock
from earlyjoin.state.rows.stacked import StackedRows
from earlyjoin.state.rows.storage import take_array
from earlyjoin.state.rows.store import BatchRows, Rows

_HELD_S = 0.1
"""No row is held back for longer, as long as the operator goes on."""
_HELD_SHARE = 0.6
"""Of the memory for rows that go out: they are there once more while they are put together."""
_PADDING_NBYTES = 128
"""Of an array that holds nothing but its own values."""


class OutputBuilder:
    """Builds rows from matches inside a share of the budget (None: output does not count, as with budgets in rows)."""

    def __init__(self, output: OutputSchema, budget: Budget | None, clock: Clock) -> None:
        self._output, self._clock = output, clock
        self._budget, self._account = budget, budget.account("output batch") if budget is not None else None
        self._rest: tuple[Matches, int] | None = None
        self._held: list[Matches] = []
        self._held_nbytes, self._given_s = 0, float("-inf")

    @property
    def holds(self) -> bool:
        """Are there rows that were taken and not given out?"""
        return bool(self._held)

    @property
    def overdue(self) -> bool:
        """Have they been there for long?"""
        return self.holds and self._clock.now() - self._given_s > _HELD_S

    def build(self, matches: Matches) -> Iterator[pa.RecordBatch]:
        """The rows of the matches and those held back, in as few batches as fit; or none, if they are held back too."""
        if self._account is None or self._account.limit.bytes is None:
            yield self._output.build(matches.rows, matches.index)
            return
        start = 0
        while start < len(matches):
            index = tuple(None if numbers is None else numbers[start:] for numbers in matches.index)
            count = min(len(matches) - start, self._output.fitting(matches.rows, index, self._account.limit.bytes))
            if self._hold(matches, start, count):
                start += count
                continue
            if self._held:
                self._rest = (matches, start)
                yield from self.give_held()
                self._rest = None  # what follows may be held back in its turn
                continue
            batch = self._piece(matches, start, count)
            size = self._output.nbytes(batch)
            if count == 1 and size > self._account.limit.bytes and self._budget is not None:
                raise row_too_large(size, self._budget, "rows that go out")
            start += count
            self._rest = (matches, start)
            yield from self._given(batch, size)
        self._rest = None

    def give_held(self) -> Iterator[pa.RecordBatch]:
        """The rows that were held back."""
        if self._held:
            batch = self._stacked()
            self._held, self._held_nbytes = [], 0
            assert self._account is not None
            self._account.clear()
            yield from self._given(batch, self._output.nbytes(batch))

    def unbuilt(self) -> list[pa.RecordBatch]:
        """The rows of the matches in hand that were not given out yet; when a batch goes out, nothing is held back."""
        if self._rest is None or self._rest[1] >= len(self._rest[0]):
            return []
        matches, start = self._rest
        return [self._piece(matches, start, len(matches) - start)]

    def _given(self, batch: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
        """The batch, which counts until the next one is asked for."""
        assert self._account is not None
        assert self._account.limit.bytes is not None
        # Sizes are known before, but for padding and nested values, which are averages.
        self._account.reserve(min(size, self._account.limit.bytes))
        yield batch
        self._account.clear()
        self._given_s = self._clock.now()

    def _hold(self, matches: Matches, start: int, count: int) -> bool:
        """Keep a small piece for later?"""
        assert self._account is not None
        if not self._output.packings or self._clock.now() - self._given_s > _HELD_S:
            return False
        index = tuple(None if numbers is None else numbers[start : start + count] for numbers in matches.index)
        nbytes = int(self._output.sizes(matches.rows, index).sum())
        if self._held_nbytes + nbytes > _HELD_SHARE * (self._account.limit.bytes or 0):
            return False
        piece = _copied(matches, index)
        if (self._held and not _alike(self._held[-1], piece)) or not self._account.try_reserve(nbytes):
            return False
        self._held.append(piece)
        self._held_nbytes += nbytes
        return True

    def _stacked(self) -> pa.RecordBatch:
        rows: list[Rows | None] = []
        index: list[Int64 | None] = []
        for side, first in enumerate(self._held[0].rows):
            parts = [part for held in self._held if (part := held.rows[side]) is not None]
            rows.append(StackedRows(parts) if first is not None else None)
            index.append(None if first is None else np.arange(sum(map(len, parts)), dtype=np.int64))
        return self._output.build(tuple(rows), tuple(index))

    def _piece(self, matches: Matches, start: int, count: int) -> pa.RecordBatch:
        if start == 0 and count == len(matches):
            return self._output.build(matches.rows, matches.index)
        index = tuple(None if numbers is None else numbers[start : start + count] for numbers in matches.index)
        return self._output.build(matches.rows, index)


def _alike(one: Matches, other: Matches) -> bool:
    """Can both be put together? They have rows of the same sides, in the same types."""
    sides = zip(one.rows, other.rows, strict=True)
    return all(a is b if a is None or b is None else a.schema.equals(b.schema) for a, b in sides)


def _copied(matches: Matches, index: tuple[Int64 | None, ...]) -> Matches:
    """The chosen rows as they travel: those in memory may leave it, and a slice would keep the whole of a page."""
    taken: list[Rows | None] = []
    numbers: list[Int64 | None] = []
    for source, chosen in zip(matches.rows, index, strict=True):
        if source is None or chosen is None:
            taken.append(None)
            numbers.append(None)
        else:
            arrays = [_own(array) for array in source.take(chosen)]
            taken.append(BatchRows(pa.RecordBatch.from_arrays(arrays, names=source.schema.names)))
            numbers.append(np.arange(len(chosen), dtype=np.int64))
    return Matches(tuple(taken), tuple(numbers))


def _own(array: pa.Array) -> pa.Array:
    """The values alone."""
    if array.get_total_buffer_size() <= array.nbytes + _PADDING_NBYTES:
        return array
    return take_array(array, pa.array(np.arange(len(array), dtype=np.int64)))
