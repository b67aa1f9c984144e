"""Parquet files on the driver's own disk, read without a Spark job: a job costs more than a small file.

Only where nothing can be read differently from Spark. Its physical plan is a scan of files below one path and nothing
else (``Planned.plain``), or Spark has told which rows pass the filter above it. No path tells of partitions, and no
name is one that a scan passes over. Each file has every column, under one name, with the very type that Spark gives it,
out of the types that have one meaning in Parquet. Days and times must be later than the change of calendar: Spark moves
older ones, depending on who wrote the file.
Anything else, and a file that cannot be read, is left to Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Account

_TEXTS = frozenset({pa.string(), pa.binary()})
_ONE_MEANING = _TEXTS | {
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()
}  # fmt: skip
_FIRST_DAY, _FIRST_TIME = date(1582, 10, 15), datetime(1900, 1, 1)
"""From here on every calendar and every clock that Spark knows agree."""
_FIELD_ID = "parquet.field.id"
_BATCH_ROWS = 65_536
Range = tuple[Path, int, int]
"""Rows of a file, from one number up to another."""


def has_one_meaning(schema: pa.Schema) -> bool:
    """Are all columns of types that Spark and Arrow cannot read differently?"""
    return all(type_ in _ONE_MEANING or pa.types.is_decimal128(type_) or _has_a_first(type_) for type_ in schema.types)


def _has_a_first(type_: pa.DataType) -> bool:
    """Is it a day or a time? Those before a first one may mean something else."""
    return bool(pa.types.is_date32(type_) or (pa.types.is_timestamp(type_) and type_.unit == "us"))


def files_here(frame: Any, uris: Sequence[str] | None = None) -> list[Path] | None:
    """The files of a plain scan; None when they are elsewhere, or Spark may make more of them than their rows."""
    if any(_FIELD_ID in (field.metadata or {}) for field in frame.schema.fields):
        return None  # columns may be told by number
    paths = []
    for uri in frame.inputFiles() if uris is None else uris:
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

    def book(batch: pa.RecordBatch) -> None:
        account.reserve(copies * sum(map(_unpacked_nbytes, batch.columns)), batch.num_rows)

    return _read([(path, 0, None) for path in paths], schema, book)


def read_ranges(
    ranges: Sequence[Range], schema: pa.Schema, most_nbytes: int | None, kept: Int64 | None = None
) -> pa.Table | None:
    """Some rows of some files; None when Spark has to read them, or they are larger than ``most_nbytes``.

    ``kept`` are the numbers of the rows that are wanted, in their order; None for all of them.
    """
    held = 0

    def book(batch: pa.RecordBatch) -> None:
        nonlocal held
        held += sum(map(_unpacked_nbytes, batch.columns))
        if most_nbytes is not None and held > most_nbytes:
            raise _LeftToSpark

    return _read(ranges, schema, book, kept)


def rows_in(path: Path) -> int | None:
    """Rows of a file; None when it cannot be read."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, UnicodeError, pa.ArrowException):
        return None


class _LeftToSpark(Exception):
    """Something in a file may mean something else to Spark, or is too large."""


def _read(
    ranges: Sequence[tuple[Path, int, int | None]],
    schema: pa.Schema,
    book: Callable[[pa.RecordBatch], None],
    kept: Int64 | None = None,
) -> pa.Table | None:
    batches: list[pa.RecordBatch] = []
    try:
        for path, first, last in ranges:
            # Not mapped into memory: a file that is cut short meanwhile would end the process.
            texts = [field.name for field in schema if field.type in _TEXTS]
            with pq.ParquetFile(path, read_dictionary=texts, page_checksum_verification=True) as file:
                if not _same_columns(file.schema_arrow, schema):
                    return None
                with closing(_cut(file, schema.names, first, last)) as pieces:
                    for start, piece in pieces:
                        batch = piece if kept is None else _rows(piece, start, kept)
                        book(batch)
                        batches.append(_unpacked(batch, schema))
        return pa.Table.from_batches(batches, schema).combine_chunks()
    except (OSError, UnicodeError, pa.ArrowException, _LeftToSpark):  # Spark finds it too, and says so in its own way
        return None


def _cut(
    file: pq.ParquetFile, names: Sequence[str], first: int, last: int | None
) -> Generator[tuple[int, pa.RecordBatch]]:
    """The rows from a number up to another, and the number of the first of a batch.

    Row groups before them are not read, and no more than a batch after.
    """
    groups: list[int] = []
    before = 0
    for number in range(file.num_row_groups):
        rows = file.metadata.row_group(number).num_rows
        if groups or before + rows > first:
            groups.append(number)
        else:
            before += rows
    at = before
    size = _BATCH_ROWS if last is None else max(1, min(_BATCH_ROWS, last - at))
    for batch in file.iter_batches(size, row_groups=groups, columns=names) if groups else ():
        end = at + batch.num_rows
        stop = end if last is None else min(end, last)
        if max(at, first) < stop:
            yield max(at, first), batch.slice(max(at, first) - at, stop - max(at, first))
        at = end
        if last is not None and at >= last:
            return


def _rows(batch: pa.RecordBatch, start: int, kept: Int64) -> pa.RecordBatch:
    """Those of a batch that begins at a number."""
    first, last = np.searchsorted(kept, (start, start + batch.num_rows))
    return batch.take(pa.array(kept[first:last] - start))


def _same_columns(there: pa.Schema, wanted: pa.Schema) -> bool:
    if any(pa.types.is_nested(type_) for type_ in there.types):
        return False  # names of columns would be paths
    names = Counter(name.lower() for name in there.names)  # Spark may or may not mind the case
    return all(
        names[field.name.lower()] == 1
        and field.name in there.names
        and _means(_value_type(there.field(field.name).type), field.type)
        for field in wanted
    )


def _means(there: pa.DataType, wanted: pa.DataType) -> bool:
    """Does a column of a file have the type that Spark gives it, but for the zone in which times are shown?"""
    if pa.types.is_timestamp(there) and pa.types.is_timestamp(wanted):
        return there.unit in ("ms", "us") and (there.tz is None) == (wanted.tz is None)
    return bool(there == wanted)


def _unpacked(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in schema:
        column = batch.column(field.name)
        if _is_packed(column.type):
            column = column.dictionary_decode()
        if _has_a_first(field.type):
            column = column.cast(field.type)
            _check_first(column)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _check_first(column: pa.Array) -> None:
    is_day = pa.types.is_date32(column.type)
    first = pa.scalar(_FIRST_DAY if is_day else _FIRST_TIME, pa.date32() if is_day else pa.timestamp("us"))
    number = pa.int32() if is_day else pa.int64()
    earliest = pc.min(column.view(number)).as_py()
    if earliest is not None and earliest < first.cast(number).as_py():
        raise _LeftToSpark


def _is_packed(type_: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(type_))


def _value_type(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if _is_packed(type_) else type_


def _unpacked_nbytes(column: pa.Array) -> int:
    if not _is_packed(column.type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary).take(column.indices)
    return int(pc.sum(lengths, min_count=0).as_py()) + 5 * len(column)
