"""The part of a condition that an algorithm's index does not decide, checked on candidate pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.output import OutputColumn, OutputSchema
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.errors import InputError
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Bool, Int64
from earlyjoin.predicates.filters import Filter
from earlyjoin.state.rows.store import Rows


class Residual:
    """Predicates and filters that a candidate pair must satisfy besides the driving predicate."""

    def __init__(self, plan: Plan, rest: tuple[BoundPredicate, ...], most_bytes: int | None = None) -> None:
        self.most_bytes = most_bytes
        self._conditions = (*rest, *plan.condition.filters)
        self._schemas = plan.schemas
        names = {name for one in plan.condition.expressions for name in columns_of(one, plan.joined_row.schema)}
        self._filtered = plan.joined_row.restricted_to(names)
        self._read = _columns_read(plan, [one.columns for one in self._conditions], self._filtered)

    @property
    def empty(self) -> bool:
        """Does every candidate pass?"""
        return not self._conditions

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
        pairs = _Pairs(self._schemas, self._filtered, rows, (i, j))
        for condition in self._conditions:
            if len(pairs) == 0:
                break
            pairs = pairs.chosen(condition.mask(pairs))
        return pairs.index


class _Pairs:
    """Candidate pairs, of which columns are gathered when a condition asks for them."""

    def __init__(
        self,
        schemas: tuple[pa.Schema, ...],
        filtered: OutputSchema,
        rows: tuple[Rows, Rows],
        index: tuple[Int64, Int64],
    ) -> None:
        self._schemas, self._filtered, self._rows = schemas, filtered, rows
        self.index = index

    def __len__(self) -> int:
        return len(self.index[0])

    def columns(self, side: int, names: Sequence[str]) -> pa.RecordBatch:
        """These columns of one side, a row for each pair."""
        positions = [self._schemas[side].get_field_index(name) for name in dict.fromkeys(names)]
        fields = [self._schemas[side].field(position) for position in positions]
        taken = zip(self._rows[side].take(self.index[side], positions), fields, strict=True)
        # Rows may be kept in another form than that in which they arrived.
        columns = [column if column.type == field.type else column.cast(field.type) for column, field in taken]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def joined(self) -> pa.Table:
        """The columns of the joined row that expressions look at."""
        return pa.Table.from_batches([self._filtered.build(self._rows, self.index)])

    def chosen(self, mask: Bool) -> _Pairs:
        """Those pairs where the mask is true."""
        if mask.all():
            return self
        return _Pairs(self._schemas, self._filtered, self._rows, (self.index[0][mask], self.index[1][mask]))


def _columns_read(plan: Plan, read: Sequence[tuple[tuple[str, ...], ...]], filtered: OutputSchema) -> OutputSchema:
    """All columns that any part of the residual reads, to know their size together."""
    columns = list(filtered.columns)
    for sides in read:
        for side, names in enumerate(sides):
            for name in names:
                packing = filtered.packings[side] if filtered.packings else None
                schema = plan.schemas[side] if packing is None else packing.schema
                position = schema.get_field_index(name)
                places = (position, None) if side == 0 else (None, position)
                columns.append(OutputColumn(schema.field(position), places))
    return OutputSchema(columns, filtered.packings)


def columns_of(filter_: Filter, schema: pa.Schema) -> list[str]:
    """The columns that a filter reads. Arrow does not tell, but without one of them it does not bind."""
    fields, needed = list(schema), []
    asked = [(0, len(fields))]
    while asked:  # by halves: of thousands of columns a filter reads a few
        first, stop = asked.pop()
        try:
            filter_.bind(pa.schema(fields[:first] + fields[stop:]))
        except InputError:
            middle = (first + stop) // 2
            if stop - first == 1:
                needed.append(fields[first].name)
            else:
                asked += [(first, middle), (middle, stop)]
    return needed
