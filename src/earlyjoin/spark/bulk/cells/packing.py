"""Sending rows to their cells: whole rows as Arrow, packed, so that Spark moves few large values instead of many rows.

::

    batches of a side ──▶ chunks ──▶ cells of every row ──▶ for each cell its rows, as one Arrow message ──▶ shuffle

A packed row of Spark's is ``(cell, side, rows)``. Which cells a row goes to depends on the row alone and on how many
rows exactly like it came before in the same task, never on its place: a task that is run again, after a failure or as
a speculative copy, may get its rows in another order and still sends the same rows to every cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from earlyjoin.kernels.hashing import hash_words
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.spark.bulk.cells import Node, Space, assign
from earlyjoin.spark.bulk.cells.axes import UInt64
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.rows.store import one_batch

PACKED = "cell int, side tinyint, rows binary"
"""What the packing of both sides gives, as Spark writes schemas."""
_PACKED_SCHEMA = pa.schema([("cell", pa.int32()), ("side", pa.int8()), ("rows", pa.binary())])

_CHUNK_ROWS = 65536
_CHUNK_NBYTES = 8 * 2**20
_MOST_COUNTED = 2**20
"""Different rows of split cells that are counted; a task with more of them has few copies of each to spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packer:
    """What Spark calls with the batches of a part of one side: rows in, packed rows out."""

    space: Space
    tree: Node
    side: int
    schema: pa.Schema
    """The side's columns as the condition knows them, by position."""
    salted: bool
    """Is there one more column, a hash of the whole row?"""
    keep_unmatchable: bool
    """Must rows that can match nothing arrive as well?"""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        copies = Copies()
        for chunk in _chunks(batches):
            yield from self._pack(chunk, copies)

    def _pack(self, chunk: pa.RecordBatch, copies: Copies) -> Iterator[pa.RecordBatch]:
        rows = with_schema(chunk, self.schema)
        salts = None
        if self.salted:
            hashes = chunk.column(chunk.num_columns - 1).to_numpy(zero_copy_only=False).view(np.uint64)
            salts = copies.salts(hashes)
        places = self.space.homes(rows, salts) if self.side == self.space.home else self.space.guests(rows, salts)
        numbers, cells = assign(self.tree, places, keep_unmatchable=self.keep_unmatchable)
        # A row with many copies would make the packed chunk many times as large, so it goes out in pieces.
        step = max(1, int(_CHUNK_NBYTES / max(1.0, batch_nbytes(rows) / max(1, rows.num_rows))))
        for start in range(0, len(numbers), step):
            yield self._packed(rows, numbers[start : start + step], cells[start : start + step])

    def _packed(self, rows: pa.RecordBatch, numbers: Int64, cells: Int64) -> pa.RecordBatch:
        whole = len(numbers) == rows.num_rows and bool((np.diff(numbers) == 1).all())
        taken = rows if whole else rows.take(pa.array(numbers))
        starts = np.concatenate([[0], 1 + np.flatnonzero(np.diff(cells))])
        stops = np.concatenate([starts[1:], [len(cells)]])
        messages = [
            taken.slice(start, stop - start).serialize().to_pybytes()
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ]
        columns = [
            pa.array(cells[starts].astype(np.int32)),
            pa.array(np.full(len(starts), self.side, dtype=np.int8)),
            pa.array(messages, pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_PACKED_SCHEMA)


class Copies:
    """Salts for the rows of one task: of rows that are all alike, each copy gets another one, in whatever order."""

    def __init__(self) -> None:
        self._known = np.empty(0, dtype=np.uint64)
        self._counts = np.empty(0, dtype=np.int64)

    def salts(self, hashes: UInt64) -> Salts:
        """The salts of a chunk with these hashes of whole rows."""
        return Salts(self, hashes)

    def number(self, names: UInt64) -> Int64:
        """How often each name came before, in this call and in earlier ones."""
        fresh, inverse, counts = np.unique(names, return_inverse=True, return_counts=True)
        place = np.searchsorted(self._known, fresh)
        known = np.zeros(len(fresh), dtype=np.bool_)
        inside = place < len(self._known)
        known[inside] = self._known[place[inside]] == fresh[inside]
        before = np.zeros(len(fresh), dtype=np.int64)
        before[known] = self._counts[place[known]]
        self._counts[place[known]] += counts[known]
        if len(self._known) < _MOST_COUNTED:
            at = place[~known]
            self._known = np.insert(self._known, at, fresh[~known])
            self._counts = np.insert(self._counts, at, counts[~known])
        # The place of each row among those of the same name in this call.
        order = np.argsort(inverse, kind="stable")
        first = np.cumsum(counts) - counts
        among = np.empty(len(names), dtype=np.int64)
        among[order] = np.arange(len(names)) - np.repeat(first, counts)
        return np.asarray(before[inverse] + among, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Salts:
    """Random-looking numbers of the rows of a chunk."""

    copies: Copies
    hashes: UInt64

    def __call__(self, rows: Int64, cell: int) -> UInt64:
        """For chosen rows of the chunk, in the leaf that begins with a cell."""
        names = hash_words(np.stack([self.hashes[rows].view(np.int64), np.full(len(rows), cell, np.int64)], axis=1))
        words = np.stack([names.view(np.int64), self.copies.number(names)], axis=1)
        return hash_words(words)


def with_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The first columns of a batch, by position, with the names and types of a schema.

    Types differ in what Spark does not tell apart: the time zone that an instant is shown in, the width of offsets.
    """
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=False)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Small batches put together, so that each cell gets few large messages."""
    waiting: list[pa.RecordBatch] = []
    rows = nbytes = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        waiting.append(batch)
        rows += batch.num_rows
        nbytes += batch_nbytes(batch)
        if rows >= _CHUNK_ROWS or nbytes >= _CHUNK_NBYTES:
            yield one_batch(pa.Table.from_batches(waiting))
            waiting, rows, nbytes = [], 0, 0
    if waiting:
        yield one_batch(pa.Table.from_batches(waiting))
