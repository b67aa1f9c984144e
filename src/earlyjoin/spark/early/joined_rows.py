"""From pairs of row numbers to the rows of a result, for tables in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from earlyjoin.algorithms.protocol import Plan
from earlyjoin.predicates.encoding.keys import Int64

OUTPUT_ROWS = 65536
OUTPUT_NBYTES = 8 * 2**20
"""Of a batch: wide rows come in shorter ones."""


def joined_rows(plan: Plan, tables: Sequence[pa.Table], *numbers: Int64 | None) -> Iterator[pa.RecordBatch]:
    """Rows as the plan has them, from the numbers of the rows of each side; None where a side is absent."""
    count = next(len(some) for some in numbers if some is not None)
    most = _batch_rows(tables)
    for start in range(0, count, most):
        some = slice(start, min(count, start + most))
        taken = [
            None if rows is None else table.take(pa.array(rows[some]))
            for table, rows in zip(tables, numbers, strict=True)
        ]
        arrays = []
        for column in plan.output.columns:
            # A column that both sides share has the same value in both, where both are there.
            found = [
                side.column(place)
                for side, place in zip(taken, column.position, strict=True)
                if side is not None and place is not None
            ]
            type_ = column.field.type
            values = found[0].combine_chunks() if found else pa.nulls(some.stop - some.start, type_)
            arrays.append(values if values.type == type_ else values.cast(type_))
        yield pa.RecordBatch.from_arrays(arrays, schema=plan.output.schema)


def _batch_rows(tables: Sequence[pa.Table]) -> int:
    row_nbytes = sum(table.nbytes / len(table) for table in tables if len(table))
    return int(max(1, min(OUTPUT_ROWS, OUTPUT_NBYTES / max(1.0, row_nbytes))))
