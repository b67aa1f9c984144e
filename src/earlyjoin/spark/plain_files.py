"""Small Parquet files on the driver's own disk, read without a Spark job: a job costs more than the files.

Only where nothing can be read differently from Spark: its physical plan is a scan of files by their paths and nothing
else (``Planned.plain``), and each file has every column by its name, with the very type that Spark gives it, out of a
few types that have one meaning in Parquet. Anything else, and any error, is left to Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from earlyjoin.state.budget import Account

_ONE_MEANING = frozenset(
    {pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary()}
)
"""Dates and timestamps have calendars and zones, decimals several forms."""
_BATCH_ROWS = 65_536


def read_here(frame: Any, schema: pa.Schema, account: Account, room: int) -> pa.Table | None:
    """All rows of a plain scan; None when Spark has to read them.

    Books ``room`` bytes for each byte that is read, as it is read: a small file may hold a large table. Raises
    BudgetExceeded when there is no room.
    """
    names = schema.names
    if len(set(names)) < len(names) or not set(schema.types) <= _ONE_MEANING:
        return None
    paths = [_local(uri) for uri in frame.inputFiles()]
    batches: list[pa.RecordBatch] = []
    for path in paths:
        if path is None:
            return None
        try:
            for batch in _read(path, schema):
                account.reserve(room * batch.nbytes, batch.num_rows)
                batches.append(batch)
        except (OSError, pa.ArrowException):  # Spark will find it too, and say so as it is set up to
            return None
    return pa.Table.from_batches(batches, schema).combine_chunks()


def _read(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Raises ArrowTypeError where the file's columns are not those of the schema."""
    with pq.ParquetFile(path, memory_map=True) as file:
        there = file.schema_arrow
        if any(pa.types.is_nested(type_) for type_ in there.types) or not all(
            len(there.get_all_field_indices(field.name)) == 1 and there.field(field.name).type == field.type
            for field in schema
        ):
            raise pa.ArrowTypeError(f"{path} has other columns")
        for batch in file.iter_batches(_BATCH_ROWS, columns=schema.names):
            yield pa.RecordBatch.from_arrays([batch.column(name) for name in schema.names], schema=schema)


def _local(uri: str) -> Path | None:
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" and not parts.netloc else None
