"""Small tables on disk, cut into several files, and rows to compare."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

KEY_TYPES: dict[str, list[Any]] = {
    "int32": [1, 2, 3, 4, None],
    "int64": [2**40, -1, 0, 7, None],
    "double": [0.0, -0.0, math.nan, 1.5, math.inf, None],
    "decimal": [Decimal("1.50"), Decimal("-2.25"), Decimal("0.00"), None],
    "string": ["a", "", "é", "a ", None],
    "binary": [b"\x00", b"", b"ab", None],
    "boolean": [True, False, None],
    "date": [dt.date(2020, 2, 29), dt.date(1969, 12, 31), None],
    "timestamp": [
        dt.datetime(2021, 3, 14, 6, 30, tzinfo=dt.UTC),
        dt.datetime(2021, 3, 14, 7, 30, tzinfo=dt.UTC),  # around the start of summer time in New York
        dt.datetime(2021, 11, 7, 5, 30, tzinfo=dt.UTC),
        dt.datetime(2021, 11, 7, 6, 30, tzinfo=dt.UTC),
        None,
    ],
}
ARROW_TYPES = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "decimal": pa.decimal128(10, 2),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def keyed(kind: str, rows: int, name: str, seed: int) -> pa.Table:
    """A table of keys of a kind, some of them without a partner, and a number for each row."""
    rng = np.random.default_rng(seed)
    values = KEY_TYPES[kind]
    # The last rows leave one value out, so that each side has rows without a partner.
    keys = [values[i] for i in rng.integers(0, len(values) - seed % 2, rows)]
    return pa.table({"k": pa.array(keys, ARROW_TYPES[kind]), name: pa.array(np.arange(rows))})


def numbered(rows: int, keys: int, name: str, seed: int) -> pa.Table:
    """Whole numbers as keys, uniform, with a number for each row."""
    rng = np.random.default_rng(seed)
    return pa.table({"k": rng.integers(0, keys, rows), name: np.arange(rows)})


def in_files(table: pa.Table, directory: Path, files: int) -> str:
    """The table as a directory of Parquet files."""
    directory.mkdir(parents=True)
    for number in range(files):
        first, last = number * len(table) // files, (number + 1) * len(table) // files
        pq.write_table(table.slice(first, last - first), directory / f"part-{number:03}.parquet")
    return str(directory)


def multiset(table: pa.Table) -> Counter[tuple[str, ...]]:
    """The rows, whatever their order; NaN equals NaN, and -0.0 equals 0.0."""
    columns = [[_plain(value) for value in column.to_pylist()] for column in table.columns]
    return Counter(zip(*columns, strict=True))


def _plain(value: Any) -> str:
    return repr(value + 0.0) if isinstance(value, float) else repr(value)
