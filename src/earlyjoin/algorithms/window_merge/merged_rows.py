"""The run that a merge writes for one side: rows come in order, and leave a page at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.sweep_areas import SweepWords
from earlyjoin.algorithms.window_merge.window import WindowSide
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Account
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.rows.store import empty_columns

ROW_NBYTES = 40
"""Bytes of a row's word, stamps and number."""


class InOrder(NamedTuple):
    """Rows in the order of their words."""

    batch: pa.RecordBatch
    words: SweepWords
    arrivals: Int64 | None
    departures: Int64 | None
    numbers: Int64 | None

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return batch_nbytes(self.batch) + ROW_NBYTES * len(self.words)


class MergedRows(ABC):
    """Few rows wait until there is a page of them, or no room to wait in."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._waiting: list[InOrder] = []
        self.rows = 0
        """Rows that wait."""

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that wait."""
        return sum(rows.nbytes for rows in self._waiting)

    def write(self, side: WindowSide, chosen: Int64, words: SweepWords) -> None:
        """Add rows of a window, ascending by word."""
        start = 0
        while start < len(chosen):  # a page at a time: a gather is one more copy
            stop = start + max(1, self._most(side))
            self._add(side, chosen[start:stop], words[start:stop])
            start = stop

    def _add(self, side: WindowSide, chosen: Int64, words: SweepWords) -> None:
        columns = side.rows.take(chosen)
        batch = pa.RecordBatch.from_arrays(columns, schema=side.rows.schema) if columns else empty_columns(len(chosen))
        marks = (side.arrivals, side.departures, side.numbers)
        rows = InOrder(batch, words.copy(), *(mark[chosen] if mark is not None else None for mark in marks))
        self._waiting.append(rows)
        self.rows += len(words)
        if self._fills_a_page() or not self._account.try_reserve(rows.nbytes, len(words)):
            self.write_out()

    def write_out(self) -> None:
        """Write the rows that wait."""
        try:
            if self._waiting:
                batches, *columns = zip(*self._waiting, strict=True)
                batch = pa.concat_batches(batches) if len(batches[0].schema) else empty_columns(self.rows)
                joined: list[Any] = [None if part[0] is None else np.concatenate(part) for part in columns]
                self._write(InOrder(batch, *joined))
        finally:  # what has failed is not tried again
            self.drop_waiting()

    def drop_waiting(self) -> None:
        """Forget the rows that wait: nothing is written any more, which may be what has failed."""
        self._waiting, self.rows = [], 0
        self._account.clear()

    @abstractmethod
    def _most(self, side: WindowSide) -> int:
        """Rows of the side that make about a page, with those that wait."""

    @abstractmethod
    def _fills_a_page(self) -> bool:
        """Do the rows that wait?"""

    @abstractmethod
    def _write(self, rows: InOrder) -> None:
        """Put rows into the file."""
