"""Row groups of Parquet files with too many columns to be read side by side.

A reader of a column holds its dictionary and its current page, decompressed and decoded: up to 4 MB, however short
the batches are. 150 columns of text take 190 MB. So the columns of a wide row group are read a few at a time from its
first row to its last, and wait in a file until their turn comes::

    columns 1 to 6 ──▶ pages 0, 1, 2, …  ┐
    columns 7 to 12 ─▶ pages 0, 1, 2, …  ├─ file ──▶ page 0 of all columns, page 1 of all columns, …
    …                                    ┘

The first page does not wait: it is read on its own before, at the price of decoding its rows twice. Reading through
the file takes about as long as reading side by side, whose many dictionaries do not fit the caches of a processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from earlyjoin.errors import SpillClosed
from earlyjoin.state.disk.checked_files import BlockReader, BlockWriter
from earlyjoin.state.disk.runs import PageFormat
from earlyjoin.state.disk.spill import SpillDirectory

OPEN_BYTES = 16 << 20
"""What the readers of all columns may hold together."""
TOGETHER_BYTES = 6 << 20
"""What those of columns that are read together may hold, where all would hold too much."""
_MOST_COLUMN_BYTES = 4 << 20
"""Measured for columns of any size with pages and dictionaries of 1 MB, as most writers make them."""
_HELD_FOR_BYTE = 3
"""Measured for columns that are one page: compressed, decompressed, and decoded or as entries of a dictionary."""
_DECODED_BYTES = 2 << 20
"""Pages of this size together are decoded at once."""


def column_parts(group: Any, names: Sequence[str]) -> list[list[str]] | None:
    """The columns of a row group's metadata in parts that may be read together; None: all of them may."""
    if _HELD_FOR_BYTE * group.total_byte_size <= OPEN_BYTES or len(set(names)) < len(names):
        return None
    if group.num_columns * _MOST_COLUMN_BYTES <= OPEN_BYTES:
        return None
    held = dict.fromkeys(names, 0)
    for chunk in (group.column(number) for number in range(group.num_columns)):
        path = chunk.path_in_schema
        name = path if path in held else path.split(".", 1)[0]
        if name in held:
            held[name] += min(_MOST_COLUMN_BYTES, _HELD_FOR_BYTE * chunk.total_uncompressed_size)
    if sum(held.values()) <= OPEN_BYTES:
        return None
    parts: list[list[str]] = []
    room = 0
    for name, nbytes in held.items():
        if nbytes > room:
            parts.append([])
            room = TOGETHER_BYTES
        parts[-1].append(name)
        room -= nbytes
    return parts


class WideGroup:
    """One row group of an open Parquet file, in pages of so many rows."""

    def __init__(self, file: Any, group: int, parts: list[list[str]], rows: int) -> None:
        self._file = file
        self._group = group
        self._parts = parts
        self._page_rows = rows
        found = file.metadata.row_group(group)
        self._pages = -(-found.num_rows // rows)
        self._decoded_rows = rows * max(1, _DECODED_BYTES * len(parts) // max(1, found.total_byte_size // self._pages))

    def read(self, spill: SpillDirectory, *, early: bool) -> Iterator[pa.RecordBatch]:
        """All pages; ``early`` gives the first one before the rest is read."""
        if early:
            yield self._first_page()
        if self._pages > early:
            try:
                path = spill.new_path(".columns")
            except SpillClosed:  # so has the query, and nobody waits for rows
                return
            try:
                yield from self._through_file(path, int(early), spill)
            finally:
                path.unlink(missing_ok=True)

    def _first_page(self) -> pa.RecordBatch:
        return _beside([next(self._batches(part, self._page_rows)) for part in self._parts])

    def _through_file(self, path: Path, first: int, spill: SpillDirectory) -> Iterator[pa.RecordBatch]:
        writer = BlockWriter(path)
        formats = []
        try:
            for part in self._parts:
                formats.append(self._write(part, writer, first))
                if spill.closed:
                    return
        finally:
            writer.close()
        reader = BlockReader(path, tuple(writer.ends), tuple(writer.sums))
        count = self._pages - first
        try:
            for page in range(count):
                yield _beside([form.page(reader.read(at * count + page)) for at, form in enumerate(formats)])
        finally:
            reader.close()

    def _write(self, part: list[str], writer: BlockWriter, first: int) -> PageFormat:
        form = None
        for batch in self._batches(part, self._decoded_rows):
            if form is None:
                form = PageFormat(batch.schema)
            for start in range(first * self._page_rows, batch.num_rows, self._page_rows):
                writer.write(form.block(batch.slice(start, self._page_rows)))
            first = 0
        assert form is not None
        return form

    def _batches(self, part: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        for batch in self._file.iter_batches(rows, row_groups=[self._group], columns=part, use_threads=False):
            yield batch.select(part)


def _beside(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    """The columns of all pieces."""
    fields = [field for piece in pieces for field in piece.schema]
    return pa.RecordBatch.from_arrays(
        [column for piece in pieces for column in piece.columns], schema=pa.schema(fields)
    )
