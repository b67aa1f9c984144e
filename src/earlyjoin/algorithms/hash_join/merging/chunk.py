"""Rows of both sides in one range of words, and the pairs of them that may match.

A merge takes sorted runs apart into ranges of words that fit into memory (*chunks*). Inside a chunk candidate pairs
have numbers: pair k belongs to the left row whose range of equal words on the right covers k. So one number says how
far a chunk has been joined, however many pairs a hot key has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.hash_join.rules import Stamps
from earlyjoin.algorithms.hash_join.table.disk_part import DiskPage
from earlyjoin.algorithms.sweep_areas import SweepWords
from earlyjoin.predicates.encoding.keys import Bool, Bytes, Int64, Keys
from earlyjoin.state.rows.store import BatchRows, empty_columns


class Piece(NamedTuple):
    """Rows ``start`` to ``stop`` of a page, whose rows have these words."""

    page: DiskPage
    words: SweepWords
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(slots=True)
class ChunkSide:
    """The rows of one side of a chunk."""

    rows: BatchRows
    keys: Keys
    stamps: Stamps
    numbers: Int64 | None
    matched: Bool | None
    order: Int64
    """The rows in the order of their words."""
    words: SweepWords
    """The words in that order."""

    def __len__(self) -> int:
        return len(self.order)

    @classmethod
    def of(cls, schema: pa.Schema, pieces: Sequence[Piece]) -> ChunkSide | None:
        """Pieces put together; None for no rows."""
        pieces = [piece for piece in pieces if len(piece)]
        if not pieces:
            return None
        words = np.concatenate([piece.words[piece.start : piece.stop] for piece in pieces])
        order = np.argsort(words, kind="stable")
        batches = [piece.page.rows.batch.slice(piece.start, len(piece)) for piece in pieces]
        rows = pa.concat_batches(batches) if len(schema) else empty_columns(len(words))
        numbers = matched = None
        if pieces[0].page.numbers is not None:
            numbers = _joined(pieces, [piece.page.numbers for piece in pieces])
        if pieces[0].page.matched is not None:
            matched = np.concatenate([p.page.matched[p.start : p.stop] for p in pieces if p.page.matched is not None])
        stamps = Stamps(
            _joined(pieces, [piece.page.arrivals for piece in pieces]),
            _joined(pieces, [piece.page.departures for piece in pieces]),
            np.repeat([piece.page.label for piece in pieces], [len(piece) for piece in pieces]),
        )
        keys = joined_keys([piece.page.keys.slice(piece.start, piece.stop) for piece in pieces])
        return cls(BatchRows(rows), keys, stamps, numbers, matched, order, words[order])


class Chunk:
    """Two sides whose pairs of equal words are numbered from 0 to ``total``."""

    def __init__(self, left: ChunkSide | None, right: ChunkSide | None) -> None:
        self.sides = (left, right)
        self.total = 0
        if left is None or right is None:
            return
        self._stops = np.searchsorted(right.words, left.words, side="right")
        counts = self._stops - np.searchsorted(right.words, left.words, side="left")
        self._ends = np.cumsum(counts)
        self.total = int(self._ends[-1])

    def pairs(self, first: int, most: int) -> tuple[Int64, Int64]:
        """Left and right rows of the pairs from ``first`` on, at most so many."""
        left, right = self.sides
        assert left is not None
        assert right is not None
        last = min(self.total, first + most)
        row = int(np.searchsorted(self._ends, first, side="right"))
        stop = int(np.searchsorted(self._ends, last, side="left")) + 1
        ends = np.clip(self._ends[row:stop], first, last)
        here = np.repeat(np.arange(row, stop), np.diff(ends, prepend=first))
        there = self._stops[here] - (self._ends[here] - np.arange(first, last))
        return left.order[here], right.order[there]


def _joined(pieces: Sequence[Piece], columns: Sequence[Int64 | None]) -> Int64:
    parts = [column[p.start : p.stop] for p, column in zip(pieces, columns, strict=True) if column is not None]
    return np.concatenate(parts)


def joined_keys(parts: Sequence[Keys]) -> Keys:
    """The keys of all parts behind each other; all of them can match."""
    words = np.concatenate([part.words for part in parts])
    heaps = [part.heap for part in parts if part.heap is not None]
    if not heaps:
        return Keys(words)
    data = np.concatenate([heap.data[heap.offsets[0] : heap.offsets[-1]] for heap in heaps])
    lengths = np.concatenate([np.diff(heap.offsets) for heap in heaps])
    return Keys(words, Bytes(np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)]), data))
