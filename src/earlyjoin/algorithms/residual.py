"""The part of a condition that an algorithm's index does not decide, checked on candidate pairs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.output import OutputColumn, OutputSchema
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.errors import InputError
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.filters import Filter
from earlyjoin.predicates.keys import Bool, Int64
from earlyjoin.state.rows import Rows


class Residual:
    """Predicates and filters that a candidate pair must satisfy besides the driving predicate."""

    def __init__(self, plan: Plan, rest: tuple[BoundPredicate, ...], most_bytes: int | None = None) -> None:
        self._rest = rest
        self.most_bytes = most_bytes
        self._filters = plan.condition.filters
        self._schemas = plan.schemas
        names = {name for filter_ in self._filters for name in _columns_of(filter_, plan.joined_row.schema)}
        self._filtered = plan.joined_row.restricted_to(names)
        self._read = _columns_read(plan, rest, self._filtered)

    @property
    def empty(self) -> bool:
        """Does every candidate pass?"""
        return not self._rest and not self._filters

    def passing(self, rows: tuple[Rows, Rows], i: Int64, j: Int64) -> tuple[Int64, Int64]:
        """The candidate pairs (``i`` of side 0, ``j`` of side 1) that satisfy everything."""
        if self.empty or self.most_bytes is None:
            return self._passing(rows, i, j)
        # Only so many candidates at once as may be gathered in the memory set aside for it.
        passed = []
        while len(i):
            count = self._read.fitting(rows, (i, j), self.most_bytes)
            passed.append(self._passing(rows, i[:count], j[:count]))
            i, j = i[count:], j[count:]
        if len(passed) == 1:
            return passed[0]
        empty = [np.empty(0, dtype=np.int64)]
        return np.concatenate([p[0] for p in passed] or empty), np.concatenate([p[1] for p in passed] or empty)

    def _passing(self, rows: tuple[Rows, Rows], i: Int64, j: Int64) -> tuple[Int64, Int64]:
        for predicate in self._rest:
            if len(i) == 0:
                return i, j
            sides = (self._columns(predicate, 0, rows[0], i), self._columns(predicate, 1, rows[1], j))
            all_rows = np.arange(len(i), dtype=np.int64)
            left, right = (predicate.encode(side, batch) for side, batch in enumerate(sides))
            i, j = _chosen(predicate.holds(left, all_rows, right, all_rows), i, j)
        for filter_ in self._filters:
            if len(i):
                joined = self._filtered.build(rows, (i, j))
                i, j = _chosen(filter_.mask(pa.Table.from_batches([joined])), i, j)
        return i, j

    def _columns(self, predicate: BoundPredicate, side: int, rows: Rows, index: Int64) -> pa.RecordBatch:
        names = list(dict.fromkeys(predicate.columns[side]))
        positions = [self._schemas[side].get_field_index(name) for name in names]
        fields = [self._schemas[side].field(position) for position in positions]
        return pa.RecordBatch.from_arrays(rows.take(index, positions), schema=pa.schema(fields))


def _columns_read(plan: Plan, rest: tuple[BoundPredicate, ...], filtered: OutputSchema) -> OutputSchema:
    """All columns that any part of the residual reads, to know their size together."""
    columns = list(filtered.columns)
    for predicate in rest:
        for side, names in enumerate(predicate.columns):
            for name in names:
                position = plan.schemas[side].get_field_index(name)
                places = (position, None) if side == 0 else (None, position)
                columns.append(OutputColumn(plan.schemas[side].field(position), places))
    return OutputSchema(columns)


def _columns_of(filter_: Filter, schema: pa.Schema) -> list[str]:
    """The columns that a filter reads. Arrow does not tell, but without one of them it does not bind."""
    needed = []
    for position, name in enumerate(schema.names):
        try:
            filter_.bind(schema.remove(position))
        except InputError:
            needed.append(name)
    return needed


def _chosen(mask: Bool, i: Int64, j: Int64) -> tuple[Int64, Int64]:
    return (i, j) if mask.all() else (i[mask], j[mask])
