"""What is in memory already as an Arrow table: Arrow, pandas and Polars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from earlyjoin.errors import InputError


def made_by(data: object, package: str) -> bool:
    """Whether an object's type comes from a package; asks without importing it."""
    return any(base.__module__.partition(".")[0] == package for base in type(data).__mro__)


def as_table(data: Any, name: str, columns: Sequence[str] | None = None) -> pa.Table | None:
    """A table of what is in memory: Arrow, pandas, Polars or the Arrow array protocol; None for anything else."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    try:
        if made_by(data, "polars"):
            return _from_polars(data, name, columns)
        if made_by(data, "pandas"):
            return _from_pandas(data)
        if hasattr(data, "__arrow_c_array__") and not isinstance(data, pa.Array):
            return pa.Table.from_batches([pa.record_batch(data)])
    except (MemoryError, InputError):
        raise
    except Exception as error:  # a lazy frame runs a whole query here, and may fail as it likes
        detail = "; ".join(str(part) for part in error.args) or str(error).partition("\n")[0]
        raise InputError(f"{name}: this {type(data).__name__} does not convert to Arrow: {detail}") from error
    return None


def _from_polars(data: Any, name: str, columns: Sequence[str] | None) -> pa.Table | None:
    if hasattr(data, "collect"):
        data = data.collect()
    if not hasattr(data, "get_columns"):
        return None
    for column, type_ in data.schema.items():
        if advice := _no_arrow(type_):
            if columns is not None and column not in columns:
                data = data.drop(column)
                continue
            raise InputError(f"{name}: column {column!r} is {type_}, which Arrow cannot hold; {advice}")
    return data.to_arrow()


def _no_arrow(type_: Any) -> str | None:
    """What to do with a Polars type that Arrow cannot hold, alone or nested; None for others.

    Polars hands out a column of Python objects as their addresses, without a word.
    """
    if type(type_).__name__ == "Object" or getattr(type_, "__name__", "") == "Object":
        return "cast it to a type of values, or leave it out"
    if str(type_) in ("Int128", "UInt128"):
        return "cast it to Decimal(38, 0), to Int64 or to String"
    inner = [field.dtype for field in getattr(type_, "fields", ())] or [getattr(type_, "inner", None)]
    return next((advice for part in inner if part is not None and (advice := _no_arrow(part))), None)


def _from_pandas(data: Any) -> pa.Table | None:
    if not hasattr(data, "columns") or not hasattr(data, "index"):
        return None
    # an index that has names was meant as data; one without is only row numbers or labels
    named = all(level is not None for level in data.index.names)
    return pa.Table.from_pandas(data, preserve_index=named)
