"""Arrow IPC files: the file format (also called Feather) and the stream format, told apart by their first bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.local.sources.base import BatchSizes, Source
from earlyjoin.local.sources.schemas import conform, merged, project
from earlyjoin.local.sources.slicing import Cutter
from earlyjoin.local.sources.text.faults import opening, reading
from earlyjoin.local.sources.watching import WatchedFiles

FILE_MAGIC = b"ARROW1"
STREAM_MAGIC = b"\xff\xff\xff\xff"
FEATHER_V1_MAGIC = b"FEA1"


class IpcSource(Source):
    """Rows of Arrow IPC files with the same columns, one stored batch at a time.

    Files are read, not mapped: a file that shrinks under a map would kill the process. In the file format ``start_row``
    reads one narrow column of what it skips; a stream has to be read from its beginning.
    """

    files: WatchedFiles

    def __init__(self, files: Sequence[str], *, name: str, columns: Sequence[str] | None = None) -> None:
        self.name = name
        self._files = list(files)
        self.files = WatchedFiles(files)
        schemas = []
        for file in self._files:
            with opening(file, "Arrow IPC"), _opened(file) as reader:
                schemas.append((file, project(reader.schema, columns, file)))
        self.schema = merged(schemas, name)
        self.bytes_hint = sum(os.path.getsize(file) for file in self._files)

    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows from ``start_row`` on."""
        cutter = Cutter(size, start_row)
        for file in self._files:
            for batch in self._stored(file, cutter):
                if batch.schema.names != self.schema.names:  # the reader keeps the order of the file
                    batch = batch.select(self.schema.names)
                yield from cutter.cut(conform(batch, self.schema, file))

    def _stored(self, file: str, cutter: Cutter) -> Iterator[pa.RecordBatch]:
        with self.files.reading(file), reading(file, "Arrow IPC"), _opened(file, self.schema.names) as reader:
            if not hasattr(reader, "get_batch"):
                yield from reader
                return
            first = _skip(file, reader, cutter) if cutter.skip_rows else 0
            for index in range(first, reader.num_record_batches):
                yield reader.get_batch(index)


def _skip(file: str, reader: Any, cutter: Cutter) -> int:
    """The first stored batch with wanted rows; those before are only counted, by their cheapest column."""
    narrow = min(reader.schema.names, key=lambda name: _width(reader.schema.field(name).type), default=None)
    with _opened(file, [] if narrow is None else [narrow]) as counter:
        for index in range(counter.num_record_batches):
            rows = counter.get_batch(index).num_rows
            if rows > cutter.skip_rows:
                return index
            cutter.skipped(rows)
        return int(counter.num_record_batches)


def _width(type_: pa.DataType) -> int:
    try:
        return int(type_.bit_width)
    except ValueError:
        return 1 << 30


@contextmanager
def _opened(file: str, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """A reader of the file or the stream format; with ``columns`` it reads the buffers of those only."""
    with pa.OSFile(file, "rb") as raw:
        magic = raw.read(8)
        raw.seek(0)
        if magic.startswith(FILE_MAGIC):
            open_as = pa.ipc.open_file
        elif magic.startswith(STREAM_MAGIC):
            open_as = pa.ipc.open_stream
        elif magic.startswith(FEATHER_V1_MAGIC):
            raise InputError(f"{file}: is Feather version 1; write it again as version 2, which is Arrow IPC")
        else:
            # opening anything else as a stream would take its first bytes for a length, and allocate that
            raise InputError(f"{file}: is not a valid Arrow IPC file: it does not begin like one")
        reader = open_as(raw)
        if columns is not None and list(columns) != reader.schema.names:
            fields = [index for column in columns for index in reader.schema.get_all_field_indices(column)]
            raw.seek(0)
            reader = open_as(raw, options=pa.ipc.IpcReadOptions(included_fields=fields))
        yield reader
