"""Small Parquet files on the driver's own disk, read without a Spark job: a job costs more than the files.

Only where nothing can be read differently from Spark. Its physical plan is a scan of files below one path and nothing
else (``Planned.plain``). No path tells of partitions, and no name is one that a scan passes over. Each file has every
column, under one name, with the very type that Spark gives it, out of a few types that have one meaning in Parquet.
Anything else, and a file that cannot be read, is left to Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from earlyjoin.state.budget import Account

_TEXTS = frozenset({pa.string(), pa.binary()})
_ONE_MEANING = _TEXTS | {
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()
}  # fmt: skip
"""Dates and timestamps have calendars and zones, decimals several forms."""
_FIELD_ID = "parquet.field.id"
_BATCH_ROWS = 65_536


def has_one_meaning(schema: pa.Schema) -> bool:
    """Are all columns of types that Spark and Arrow cannot read differently?"""
    return set(schema.types) <= _ONE_MEANING


def files_here(frame: Any) -> list[Path] | None:
    """The files of a plain scan; None when they are elsewhere, or Spark may make more of them than their rows."""
    if any(_FIELD_ID in (field.metadata or {}) for field in frame.schema.fields):
        return None  # columns may be told by number
    paths = []
    for uri in frame.inputFiles():
        parts = urlsplit(uri)
        path = Path(unquote(parts.path))
        partitioned, passed_over = "=" in str(path), path.name[0] in "_."
        if parts.scheme != "file" or parts.netloc or partitioned or passed_over:
            return None
        paths.append(path)
    return paths


def read_files(paths: Sequence[Path], schema: pa.Schema, account: Account, copies: int) -> pa.Table | None:
    """All rows; None when Spark has to read them.

    Books memory for ``copies`` of the rows batch by batch, before texts are unpacked: a small file may hold a large
    table. Raises BudgetExceeded when there is no room.
    """
    batches: list[pa.RecordBatch] = []
    try:
        for path in paths:
            # Not mapped into memory: a file that is cut short meanwhile would end the process.
            texts = [field.name for field in schema if field.type in _TEXTS]
            with pq.ParquetFile(path, read_dictionary=texts, page_checksum_verification=True) as file:
                if not _same_columns(file.schema_arrow, schema):
                    return None
                batches += _unpacked(file, schema, account, copies)
        return pa.Table.from_batches(batches, schema).combine_chunks()
    except (OSError, UnicodeError, pa.ArrowException):  # Spark will find it too, and say so as it is set up to
        return None


def _same_columns(there: pa.Schema, wanted: pa.Schema) -> bool:
    if any(pa.types.is_nested(type_) for type_ in there.types):
        return False  # names of columns would be paths
    names = [name.lower() for name in there.names]  # Spark may or may not mind the case
    return all(
        names.count(field.name.lower()) == 1
        and field.name in there.names
        and _value_type(there.field(field.name).type) == field.type
        for field in wanted
    )


def _unpacked(file: pq.ParquetFile, schema: pa.Schema, account: Account, copies: int) -> Iterator[pa.RecordBatch]:
    for batch in file.iter_batches(_BATCH_ROWS, columns=schema.names):
        columns = [batch.column(name) for name in schema.names]
        account.reserve(copies * sum(map(_unpacked_nbytes, columns)), batch.num_rows)
        plain = [column.dictionary_decode() if _is_packed(column.type) else column for column in columns]
        yield pa.RecordBatch.from_arrays(plain, schema=schema)


def _is_packed(type_: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(type_))


def _value_type(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if _is_packed(type_) else type_


def _unpacked_nbytes(column: pa.Array) -> int:
    if not _is_packed(column.type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary).take(column.indices)
    return int(pc.sum(lengths, min_count=0).as_py()) + 5 * len(column)
