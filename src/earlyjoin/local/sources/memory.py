"""Data that is in memory already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from earlyjoin.local.sources.base import BatchSizes, Source
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

    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows from ``start_row`` on; skipping costs nothing."""
        cutter = Cutter(size, start_row)
        rows = self._table.slice(min(start_row, self._table.num_rows))
        cutter.skipped(start_row)
        for batch in rows.to_reader(max_chunksize=size.most):
            yield from cutter.cut(conform(batch, self.schema, self.name))


def table_of(parts: Sequence[pa.Table | pa.RecordBatch], name: str, schema: pa.Schema | None = None) -> pa.Table:
    """One table of several tables or batches with the same columns."""
    if schema is None:
        schema = merged(((f"part {index}", part.schema) for index, part in enumerate(parts)), name)
    batches = [batch for part in parts for batch in (part.to_batches() if isinstance(part, pa.Table) else [part])]
    return pa.Table.from_batches([conform(batch, schema, name) for batch in batches], schema=schema)
