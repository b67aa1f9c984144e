"""Data that is in memory already: Arrow tables and batches, pandas and Polars frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.local.sources.base import BatchRows, Source
from earlyjoin.local.sources.faults import first_line
from earlyjoin.local.sources.schemas import conform, merged, plain, project
from earlyjoin.local.sources.slicing import Cutter


class TableSource(Source):
    """Rows of an Arrow table, cut into batches without copying."""

    def __init__(self, table: pa.Table, *, name: str, columns: Sequence[str] | None = None) -> None:
        self.name = name
        self.schema = project(plain(table.schema), columns, name)
        self._table = table if columns is None else table.select(list(columns))
        self.rows_hint = table.num_rows
        self.bytes_hint = self._table.nbytes

    def batches(self, size: BatchRows, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows from ``start_row`` on; skipping costs nothing."""
        cutter = Cutter(size, start_row)
        rows = self._table.slice(min(start_row, self._table.num_rows))
        cutter.skipped(start_row)
        for batch in rows.to_reader(max_chunksize=size.most):
            yield from cutter.cut(conform(batch, self.schema, self.name))


def made_by(data: object, package: str) -> bool:
    """Whether an object's type comes from a package; asks without importing it."""
    return any(base.__module__.partition(".")[0] == package for base in type(data).__mro__)


def as_table(data: Any, name: str) -> pa.Table | None:
    """A table of what is in memory: Arrow, pandas, Polars or the Arrow array protocol; None for anything else."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    try:
        if made_by(data, "polars"):
            return _from_polars(data)
        if made_by(data, "pandas"):
            return _from_pandas(data)
        if hasattr(data, "__arrow_c_array__") and not isinstance(data, pa.Array):
            return pa.Table.from_batches([pa.record_batch(data)])
    except MemoryError:
        raise
    except Exception as error:  # a lazy frame runs a whole query here, and may fail as it likes
        detail = "; ".join(str(part) for part in error.args) or first_line(error)
        raise InputError(f"{name}: this {type(data).__name__} does not convert to Arrow: {detail}") from error
    return None


def _from_polars(data: Any) -> pa.Table | None:
    if hasattr(data, "collect"):
        data = data.collect()
    return data.to_arrow() if hasattr(data, "get_columns") else None


def _from_pandas(data: Any) -> pa.Table | None:
    if not hasattr(data, "columns") or not hasattr(data, "index"):
        return None
    # an index that has names was meant as data; one without is only row numbers or labels
    named = all(level is not None for level in data.index.names)
    return pa.Table.from_pandas(data, preserve_index=named)


def table_of(parts: Sequence[pa.Table | pa.RecordBatch], name: str, schema: pa.Schema | None = None) -> pa.Table:
    """One table of several tables or batches with the same columns."""
    if schema is None:
        schema = merged(((f"part {index}", part.schema) for index, part in enumerate(parts)), name)
    batches = [batch for part in parts for batch in (part.to_batches() if isinstance(part, pa.Table) else [part])]
    return pa.Table.from_batches([conform(batch, schema, name) for batch in batches], schema=schema)
