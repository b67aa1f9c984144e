"""The run that a merge writes for one side: rows come in order, and leave a page at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.hash_join.merging.chunk import ChunkSide
from earlyjoin.algorithms.hash_join.rules import Stamps
from earlyjoin.algorithms.hash_join.table.disk_part import DiskRun, PartWriter, SideFiles
from earlyjoin.algorithms.sweep_areas import SweepWords
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Account
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.rows.store import empty_columns

_ROW_NBYTES = 40
"""Bytes of a row's word, stamps and number."""


class _Rows(NamedTuple):
    """Rows in the order of their words."""

    batch: pa.RecordBatch
    words: SweepWords
    stamps: Stamps
    numbers: Int64 | None


class MergeOutput:
    """Writes rows of chunks; few rows wait until there is a page. After :meth:`pause` it goes on in another run."""

    def __init__(self, files: SideFiles, label: int, account: Account) -> None:
        self._files, self._label, self._account = files, label, account
        self._writer: PartWriter | None = None
        self._waiting: list[_Rows] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that wait."""
        return sum(batch_nbytes(rows.batch) + _ROW_NBYTES * len(rows.words) for rows in self._waiting)

    def write(self, side: ChunkSide, chosen: Int64, words: SweepWords) -> None:
        """Add rows of a chunk, ascending by word."""
        most = self._page_rows(side)
        for start in range(0, len(chosen), most):  # a page at a time: a gather is one more copy
            self._add(side, chosen[start : start + most], words[start : start + most])

    def _page_rows(self, side: ChunkSide) -> int:
        """Rows that make about a page."""
        limit, part = self._files.pages.limit, self._files.page_part
        if limit.rows is not None:
            return max(1, limit.rows // part)
        row_nbytes = batch_nbytes(side.rows.batch) / max(1, len(side.rows)) + _ROW_NBYTES
        return max(1, int((limit.bytes or 0) / part / row_nbytes))

    def _add(self, side: ChunkSide, chosen: Int64, words: SweepWords) -> None:
        columns = side.rows.take(chosen)
        batch = pa.RecordBatch.from_arrays(columns, schema=side.rows.schema) if columns else empty_columns(len(chosen))
        numbers = side.numbers[chosen] if side.numbers is not None else None
        rows = _Rows(batch, words.copy(), side.stamps.take(chosen), numbers)
        self._waiting.append(rows)
        size = batch_nbytes(batch) + _ROW_NBYTES * len(words), len(words)
        if self._fills_a_page() or not self._account.try_reserve(*size):
            self._write_out()

    def _fills_a_page(self) -> bool:
        limit, part = self._files.pages.limit, self._files.page_part
        if limit.rows is not None:
            return part * sum(len(rows.words) for rows in self._waiting) >= limit.rows
        return part * self.nbytes >= (limit.bytes or 0)

    def _write_out(self) -> None:
        if self._waiting:
            if self._writer is None:
                self._writer = PartWriter(self._files, self._label)
            batches, words, stamps, numbers = zip(*self._waiting, strict=True)
            columns = len(batches[0].schema)
            batch = pa.concat_batches(batches) if columns else empty_columns(sum(map(len, words)))
            merged = Stamps(*(np.concatenate(part) for part in zip(*stamps, strict=True)))
            known = None if numbers[0] is None else np.concatenate(numbers)
            self._writer.write(
                batch, merged.arrivals, merged.departures, None, words=np.concatenate(words), numbers=known
            )
        self._waiting = []
        self._account.clear()

    def pause(self) -> DiskRun | None:
        """Finish what was written so far."""
        self._write_out()
        if self._writer is None:
            return None
        run, self._writer = self._writer.close(), None
        return run
