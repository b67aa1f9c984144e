"""Cutting batches to size: small ones first, so that the first results come soon, then ever larger ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.local.sources.base import BatchSizes


class Cutter:
    """Drops the first ``skip_rows`` rows, then cuts batches to at most ``size.first`` rows, twice that, up to ``most``.

    Slices share memory with the batch they come from. A batch that is already small enough stays as it is, so a live
    source never waits to fill one up.
    """

    def __init__(self, size: BatchSizes, skip_rows: int = 0) -> None:
        if skip_rows < 0:
            raise InputError(f"start_row must not be negative, got {skip_rows}")
        self._limit = size.first
        self._most = size.most
        self.skip_rows = skip_rows

    def skipped(self, rows: int) -> None:
        """The source has left out that many rows itself, by cheaper means."""
        self.skip_rows -= rows

    def cut(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows of ``batch`` that are wanted, in non-empty pieces."""
        rows = batch.num_rows
        at = min(self.skip_rows, rows)
        self.skip_rows -= at
        while at < rows:
            take = min(self._limit, rows - at)
            yield batch if take == rows else batch.slice(at, take)
            at += take
            self._limit = min(2 * self._limit, self._most)


def gather(pieces: Iterable[pa.RecordBatch], size: BatchSizes) -> Iterator[pa.RecordBatch]:
    """Joins pieces of at most ``size.first`` rows into batches that grow from ``size.first`` to ``size.most`` rows.

    A reader with one fixed batch size can then give its first rows at once without paying for small batches later.
    """
    held: list[pa.RecordBatch] = []
    rows, target = 0, size.first
    for piece in pieces:
        if held and rows + piece.num_rows > target:
            yield _joined(held)
            held, rows, target = [], 0, min(2 * target, size.most)
        held.append(piece)
        rows += piece.num_rows
        if rows >= target:  # do not wait for the next piece to learn that this batch is full
            yield _joined(held)
            held, rows, target = [], 0, min(2 * target, size.most)
    if held:
        yield _joined(held)


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)
