"""A running query as a snapshot, and back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from earlyjoin.algorithms.aggregates import aggregates_to_values
from earlyjoin.errors import InputError, SnapshotError
from earlyjoin.local.execution import LocalExecution
from earlyjoin.local.sources.base import Source
from earlyjoin.local.sources.schemas import difference, nullability, parse_types
from earlyjoin.predicates.encoding.carried import carried_batch, carried_schema, restored_batch
from earlyjoin.predicates.written import saved
from earlyjoin.query.life import Stopwatch
from earlyjoin.state.counters import Counters
from earlyjoin.state.snapshot import Snapshot

if TYPE_CHECKING:
    from earlyjoin.local.query import LocalQuery


def check_replayable(sources: Sequence[Source]) -> None:
    """Refuse inputs of which rows would be lost."""
    for source in sources:
        if not source.replayable:
            raise InputError(
                f"input {source.name!r} can be read only once, so the query cannot be paused; give a table or files"
            )


def save(
    query: LocalQuery,
    execution: LocalExecution,
    watch: Stopwatch,
    shown: list[pa.RecordBatch],
    unbuilt: list[pa.RecordBatch],
) -> Snapshot:
    """Everything that ``load`` needs in another process; changes nothing."""
    options = query.options
    snapshot = Snapshot(
        values={
            "condition": saved.to_values(query.condition),
            "options": {
                "how": options.how,
                "memory": {"bytes": execution.budget.limit.bytes, "rows": execution.budget.limit.rows},
                "suffixes": list(options.suffixes),
                "reading": options.reading,
                "spill_directory": None if options.spill_directory is None else os.fspath(options.spill_directory),
                "driving": options.driving,
                "wait_ms": options.wait_ms,
                "batch_rows": options.batch_rows,
                "seed": options.seed,
                "algorithm": query.algorithm,
                "estimator": options.estimator,
                "aggregates": aggregates_to_values(options.aggregates),
                "operator": execution.operator_options.values(),
            },
            "names": list(query.plan.names),
            "sources": [_without_types(source.reopening) for source in query.sources],
            "files": [None if source.files is None else source.files.to_values() for source in query.sources],
            "rows_known": [source.rows_hint for source in query.sources],
            "widths": list(execution.widths),
            "rows_taken": list(execution.rows_taken),
            "ended": list(execution.ended),
            "reading": execution.reading.to_values() if execution.reading is not None else None,
            "next_tick": execution.ticks.next_tick,
            "counters": execution.counters.to_dict(),
            "watch": watch.to_dict(),
        }
    )
    # Shown rows were counted when they were found, the others count now.
    snapshot.values["watch"]["rows"] += sum(batch.num_rows for batch in unbuilt)
    for side, source in enumerate(query.sources):
        snapshot.tables[f"columns-{side}"] = source.schema.empty_table()
        if source.reopening is not None and "types" in source.reopening:
            snapshot.tables[f"types-{side}"] = pa.schema(parse_types(source.reopening["types"])).empty_table()
    # As rows travel: files have no form for every type that goes out.
    undelivered = [carried_batch(batch) for batch in shown + unbuilt]
    snapshot.tables["undelivered"] = pa.Table.from_batches(undelivered, schema=carried_schema(query.schema))
    snapshot.nested("operator", execution.operator.snapshot())
    return snapshot


def how_to_reopen(snapshot: Snapshot, side: int) -> dict[str, Any] | None:
    """What ``open_source`` takes to open an input again; None when it was no file."""
    reopening: dict[str, Any] | None = snapshot.values["sources"][side]
    types = snapshot.tables.get(f"types-{side}")
    if reopening is None or types is None:
        return reopening
    return {**reopening, "types": {field.name: field.type for field in types.schema}}


def _without_types(reopening: dict[str, Any] | None) -> dict[str, Any] | None:
    """Arrow types are no plain values; they are saved as the columns of a table."""
    return None if reopening is None else {name: value for name, value in reopening.items() if name != "types"}


def load(snapshot: Snapshot, execution: LocalExecution, watch: Stopwatch) -> list[pa.RecordBatch]:
    """Put a saved state into a new execution; returns the rows that were found and not yet given out."""
    for side, source in enumerate(execution.sources):
        expected = snapshot.tables[f"columns-{side}"].schema
        if differs := difference(source.schema, expected) or nullability(source.schema, expected):
            raise SnapshotError(
                f"input {source.name!r} has other columns than when the query was paused: {differs}; "
                "give it as it was, or start the join again"
            )
        rows, before = source.rows_hint, snapshot.values["rows_known"][side]
        if rows != before:
            raise SnapshotError(
                f"input {source.name!r} has {_count(rows)}, and had {_count(before)} when the query was paused; "
                "give it as it was, or start the join again"
            )
    values = snapshot.values
    execution.expect(values["widths"])
    execution.rows_taken[:] = values["rows_taken"]
    execution.ended[:] = values["ended"]
    if execution.reading is not None and values["reading"] is not None:
        execution.reading.go_on(values["reading"])
    execution.ticks.next_tick = values["next_tick"]
    _take_over(execution.counters, Counters.from_dict(values["counters"]))
    watch.go_on(values["watch"])
    execution.operator.restore(snapshot.part("operator"))
    schema = execution.plan.output.schema
    return [restored_batch(batch, schema) for batch in snapshot.tables["undelivered"].to_batches()]


def _take_over(counters: Counters, other: Counters) -> None:
    """Counters are shared by reference: change them in place."""
    for name in Counters.__slots__:
        setattr(counters, name, getattr(other, name))


def _count(rows: int | None) -> str:
    return "an unknown number of rows" if rows is None else f"{rows:,} rows"
