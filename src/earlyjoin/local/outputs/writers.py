"""Rows as bytes: the formats that results are written in, each onto a stream that need not be seekable."""

from __future__ import annotations

import base64
import contextlib
import math
from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.state.rows.inner_views import converted, without_inner_views
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.rows.store import one_batch

SUFFIXES = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".jsonl": "json",
    ".ndjson": "json",
}
"""The format that the end of a file's name means."""

FORMATS = ("parquet", "csv", "arrow", "json")

_BEGINNING_OF_MESSAGE = b"\xff\xff\xff\xff\x08\x00\x00\x00"
"""Says that eight bytes of metadata follow."""

GROUP_BYTES = 8 << 20
GROUP_ROWS = 1 << 16
"""Either is enough for a row group of a Parquet file. The bytes are held beside the memory of the join."""


class Writer(ABC):
    """Puts batches onto a stream, which ``close`` leaves open and ``abandon`` does not."""

    def __init__(self, stream: Any, schema: pa.Schema) -> None:
        self.stream = stream
        self.schema = schema

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch, behind those before."""

    @abstractmethod
    def close(self) -> None:
        """Write what belongs at the end."""

    def abandon(self) -> None:
        """Write nothing more, not even what belongs at the end: a result that failed must not look complete."""
        self.stream.close()


class ParquetRows(Writer):
    """Apache Parquet.

    Rows are held back until they fill a row group. The writer keeps a description of every column of every row group
    until the file is complete: for short batches of wide rows that would be more than the rows themselves.
    """

    def __init__(self, stream: Any, schema: pa.Schema) -> None:
        super().__init__(stream, schema)
        import pyarrow.parquet as pq

        # Arrow cannot cut views inside other values into row groups.
        self._types = [without_inner_views(t) if pa.types.is_nested(t) else t for t in schema.types]
        stored = pa.schema([field.with_type(type_) for field, type_ in zip(schema, self._types, strict=True)])
        self._stored = stored.with_metadata(schema.metadata)
        self._writer = pq.ParquetWriter(stream, self._stored, compression="snappy")
        self._pile = Pile(self._stored)

    def write(self, batch: pa.RecordBatch) -> None:
        if self._types != self.schema.types:
            columns = [converted(values, type_) for values, type_ in zip(batch.columns, self._types, strict=True)]
            batch = pa.RecordBatch.from_arrays(columns, schema=self._stored)
        self._pile.add(batch)
        if self._pile.nbytes >= GROUP_BYTES or self._pile.rows >= GROUP_ROWS:
            self._write_group()

    def close(self) -> None:
        try:
            self._write_group()
        finally:
            self._writer.close()

    def abandon(self) -> None:
        self._pile = Pile(self._stored)
        # The garbage collector would have the writer write the end; from now on that fails, and without a word.
        super().abandon()
        self._writer.is_open = False

    def _write_group(self) -> None:
        pile, self._pile = self._pile, Pile(self._stored)
        if pile.rows:
            self._writer.write_table(pile.table(), row_group_size=pile.rows)


class Pile:
    """Batches that wait, in their order. A column of a batch takes memory by itself, however few rows it has.

    So every eighth small batch is put together with the seven before, every eighth of those again, and so on: a row is
    copied a few times, and few small batches are there at once.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.nbytes = self.rows = 0
        self._schema = schema
        self._levels: list[list[pa.RecordBatch]] = [[]]
        """The batches of each level, those that have been put together most often last."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Put it on top."""
        nbytes = batch_nbytes(batch)
        self.nbytes, self.rows = self.nbytes + nbytes, self.rows + batch.num_rows
        self._levels[0].append(batch)
        level = 0
        while len(self._levels[level]) >= _TOGETHER and nbytes < _COLUMN_NBYTES * batch.num_columns:
            if level + 1 == len(self._levels):
                self._levels.append([])
            batch = one_batch(pa.Table.from_batches(self._levels[level], schema=self._schema))
            self._levels[level] = []
            level += 1
            self._levels[level].append(batch)
            nbytes = batch_nbytes(batch)

    def table(self) -> pa.Table:
        """All rows."""
        batches = [batch for level in reversed(self._levels) for batch in level]
        return pa.Table.from_batches(batches, schema=self._schema)


_TOGETHER = 8
_COLUMN_NBYTES = 2048
"""A column with fewer bytes takes about as much for what Arrow and Python keep of it."""


class CsvRows(Writer):
    """Comma-separated values with a header."""

    def __init__(self, stream: Any, schema: pa.Schema) -> None:
        super().__init__(stream, _csv_schema(schema))
        import pyarrow.csv as csv

        try:
            self._writer = csv.CSVWriter(stream, self.schema)
        except pa.ArrowException as error:
            raise InputError(f"CSV cannot hold this result: {error}; write Parquet, Arrow IPC or JSON lines") from error

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch.cast(self.schema))

    def close(self) -> None:
        self._writer.close()


class ArrowFile(Writer):
    """Arrow IPC, the file format: batches can be reached in any order."""

    _open: Any = staticmethod(pa.ipc.new_file)

    def __init__(self, stream: Any, schema: pa.Schema) -> None:
        super().__init__(stream, schema)
        self._writer = self._open(stream, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class ArrowStream(ArrowFile):
    """Arrow IPC, the stream format: it can be read while it is written."""

    _open = staticmethod(pa.ipc.new_stream)

    def abandon(self) -> None:
        """Break off inside a message: readers take a stream that ends between two of them for complete."""
        with contextlib.suppress(OSError, pa.ArrowException):
            self.stream.write(_BEGINNING_OF_MESSAGE)
        super().abandon()


class JsonLines(Writer):
    """One JSON object a line; dates, times and decimals as text, bytes in base64, NaN and infinities as null."""

    def write(self, batch: pa.RecordBatch) -> None:
        import json

        rows = map(_json_value, batch.to_pylist())
        text = "".join(json.dumps(row, default=_json_text, allow_nan=False) + "\n" for row in rows)
        self.stream.write(text.encode())

    def close(self) -> None:
        pass


def open_writer(format: str, stream: Any, schema: pa.Schema, *, read_at_once: bool = False) -> Writer:
    """A writer of one of ``FORMATS``; ``read_at_once`` is for streams whose reader cannot wait for their end."""
    kinds: dict[str, type[Writer]] = {
        "parquet": ParquetRows,
        "csv": CsvRows,
        "arrow": ArrowStream if read_at_once else ArrowFile,
        "json": JsonLines,
    }
    if format not in kinds:
        raise InputError(f"unknown output format {format!r}: choose one of {', '.join(FORMATS)}")
    return kinds[format](stream, schema)


def _csv_schema(schema: pa.Schema) -> pa.Schema:
    """The schema as Arrow can write it as CSV: without string views and binary views."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return pa.schema([field.with_type(plain.get(field.type, field.type)) for field in schema])


def _json_value(value: object) -> object:
    """The value with null for every number, however deep inside it, that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _json_value(inner) for name, inner in value.items()}
    return [_json_value(inner) for inner in value] if isinstance(value, list | tuple) else value


def _json_text(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
