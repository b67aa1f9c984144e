"""The right answer: pairs of row numbers from DuckDB, and the rows that outer, semi and anti joins make of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from earlyjoin.errors import InputError
from earlyjoin.report.fuzz.cases import Case

NO_ROW = -1
_NANOSECONDS = pa.timestamp("ns")
Pairs = np.ndarray[Any, Any]


def connect() -> Any:
    """A connection to DuckDB in one thread; InputError says how to get it."""
    try:
        import duckdb
    except ImportError as error:
        raise InputError(
            "the fuzz compares with DuckDB, which is not installed; install it with 'pip install duckdb', "
            "or everything for development with 'make install'"
        ) from error
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    return connection


def expected_pairs(case: Case) -> Pairs:
    """All result rows as two columns of row numbers, sorted; ``NO_ROW`` where a side has none."""
    left, right = case.tables
    with connect() as connection:
        connection.register("l", _plain(left, "lid", [key[0] for key in case.condition.keys]))
        connection.register("r", _plain(right, "rid", [key[1] for key in case.condition.keys]))
        found = connection.execute(f"SELECT lid, rid FROM l JOIN r ON {case.condition.text}").fetchnumpy()
    matched = np.stack([np.asarray(found["lid"], np.int64), np.asarray(found["rid"], np.int64)], axis=1)
    return ordered(_joined(matched, case.settings.how, left.num_rows, right.num_rows))


def ordered(pairs: Pairs) -> Pairs:
    """Sorted by both numbers."""
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _joined(matched: Pairs, how: str, left_rows: int, right_rows: int) -> Pairs:
    """What a join type makes of the pairs that match."""
    lefts, rights = np.unique(matched[:, 0]), np.unique(matched[:, 1])
    alone_left = np.setdiff1d(np.arange(left_rows), lefts)
    alone_right = np.setdiff1d(np.arange(right_rows), rights)
    if how == "semi":
        return _beside(lefts, side=0)
    if how == "anti":
        return _beside(alone_left, side=0)
    parts = [matched]
    if how in ("left", "full"):
        parts.append(_beside(alone_left, side=0))
    if how in ("right", "full"):
        parts.append(_beside(alone_right, side=1))
    return np.concatenate(parts)


def _beside(numbers: Pairs, *, side: int) -> Pairs:
    pairs = np.full((len(numbers), 2), NO_ROW, np.int64)
    pairs[:, side] = numbers
    return pairs


def _plain(table: pa.Table, id_name: str, keys: list[str]) -> pa.Table:
    """The keys in types that mean the same in DuckDB: every time is a number of nanoseconds."""
    columns = {id_name: table.column(id_name)}
    for name in dict.fromkeys(keys):
        columns[name] = _plain_column(table.column(name))
    return pa.table(columns)


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    type_ = column.type
    if pt.is_dictionary(type_):
        return _plain_column(column.cast(type_.value_type))
    if pt.is_date(type_):
        return column.cast(pa.timestamp("s")).cast(_NANOSECONDS).cast(pa.int64())
    if pt.is_timestamp(type_):
        return column.cast(pa.timestamp("ns", type_.tz)).cast(pa.int64())
    if pt.is_time(type_):
        return column.cast(pa.time64("ns")).cast(pa.int64())
    if pt.is_duration(type_):
        return column.cast(pa.duration("ns")).cast(pa.int64())
    if pt.is_string_view(type_):
        return column.cast(pa.string())
    if pt.is_binary_view(type_) or pt.is_fixed_size_binary(type_):
        return column.cast(pa.binary())
    return column.cast(pa.float64()) if pt.is_floating(type_) else column
