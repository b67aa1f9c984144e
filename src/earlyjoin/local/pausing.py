"""A running query as a snapshot, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from earlyjoin.errors import SnapshotError
from earlyjoin.local.execution import Execution
from earlyjoin.local.progress import Stopwatch
from earlyjoin.predicates import saved
from earlyjoin.state.counters import Counters
from earlyjoin.state.snapshot import Snapshot

if TYPE_CHECKING:
    from earlyjoin.local.query import Query


def save(query: Query, execution: Execution, watch: Stopwatch, undelivered: list[pa.RecordBatch]) -> Snapshot:
    """Everything that ``load`` needs in another process."""
    options = query.options
    snapshot = Snapshot(
        values={
            "condition": saved.to_values(query.condition),
            "options": {
                "how": options.how,
                "memory": {"bytes": execution.budget.limit.bytes, "rows": execution.budget.limit.rows},
                "suffixes": list(options.suffixes),
                "reading": options.reading,
                "driving": options.driving,
                "wait_ms": options.wait_ms,
                "batch_rows": options.batch_rows,
                "seed": options.seed,
                "algorithm": query.algorithm,
            },
            "sources": [source.reopening for source in query.sources],
            "rows_taken": list(execution.rows_taken),
            "ended": list(execution.ended),
            "next_tick": execution.ticks.next_tick,
            "counters": execution.counters.to_dict(),
            "watch": watch.to_dict(),
        }
    )
    for side, source in enumerate(query.sources):
        # The schema is kept to compare; rows that were read and cannot be read again are kept to be joined.
        rows = execution.inputs.untaken(side) if execution.inputs is not None and not source.replayable else []
        snapshot.tables[f"untaken-{side}"] = pa.Table.from_batches(rows, schema=source.schema)
    snapshot.tables["undelivered"] = pa.Table.from_batches(undelivered, schema=query.schema)
    snapshot.nested("operator", execution.operator.snapshot())
    return snapshot


def load(snapshot: Snapshot, execution: Execution, watch: Stopwatch) -> list[pa.RecordBatch]:
    """Put a saved state into a new execution; returns the rows that were found and not yet given out."""
    for side, source in enumerate(execution.sources):
        expected = snapshot.tables[f"untaken-{side}"].schema
        if not source.schema.equals(expected):
            raise SnapshotError(
                f"input {source.name!r} has other columns than when the query was paused: "
                f"{_columns(source.schema)} instead of {_columns(expected)}"
            )
    values = snapshot.values
    execution.rows_taken[:] = values["rows_taken"]
    execution.ended[:] = values["ended"]
    execution.ticks.next_tick = values["next_tick"]
    _take_over(execution.counters, Counters.from_dict(values["counters"]))
    watch.go_on(values["watch"])
    execution.operator.restore(snapshot.part("operator"))
    undelivered: list[pa.RecordBatch] = snapshot.tables["undelivered"].to_batches()
    return undelivered


def _take_over(counters: Counters, other: Counters) -> None:
    """Counters are shared by reference: change them in place."""
    for name in Counters.__slots__:
        setattr(counters, name, getattr(other, name))


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
