"""Joins two tables in this process by the operators of the core: from tables to pairs of row numbers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.choice import choose
from earlyjoin.algorithms.output import OutputColumn, OutputSchema
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.algorithms.protocol import DEFAULT_OUTPUT_ROWS, Context, Plan, Step
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Budget
from earlyjoin.state.disk.spill import SpillDirectory

_ROWS = ("\0row_left", "\0row_right")
_SUFFIXES = ("\0left", "\0right")
_NOTHING: tuple[Int64, Int64] = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
"""A step that found nothing: the reader of the pairs may stop there too."""
_PIECE_SHARE = 512
"""Bytes of memory for each pair of a piece."""
_ARRIVING_ROWS = 16384
"""Rows handed to the operator at once: the first pairs come after the first of them, not after all."""


class Pairing:
    """Finds the matching pairs of two tables with the schemas of the plan."""

    def __init__(self, plan: Plan, condition: Condition, budget: Budget) -> None:
        self._names = [
            sorted({name for part in plan.condition.parts for name in part.columns[side]}) for side in range(plan.sides)
        ]
        self.positions = [
            [plan.schemas[side].get_field_index(name) for name in names] for side, names in enumerate(self._names)
        ]
        """Of each side, where in the schema the columns are that the condition looks at."""
        keys = make_plan(condition, *(self._key_schema(plan, side) for side in (0, 1)), suffixes=_SUFFIXES)
        numbers = OutputSchema(
            [
                OutputColumn(pa.field(_ROWS[0], pa.int64()), (len(self._names[0]), None)),
                OutputColumn(pa.field(_ROWS[1], pa.int64()), (None, len(self._names[1]))),
            ]
        )
        self._plan = Plan(schemas=keys.schemas, condition=keys.condition, output=numbers, joined_row=numbers)
        self._budget = budget

    def found(self, left: pa.Table, right: pa.Table) -> Generator[tuple[Int64, Int64]]:
        """Row numbers of the pairs that match, a piece at a time: memory is bounded, however many pairs there are."""
        tables = [table.select(places) for table, places in zip((left, right), self.positions, strict=True)]
        return self.found_keys(*tables)

    def found_keys(self, left: pa.Table, right: pa.Table) -> Generator[tuple[Int64, Int64]]:
        """The same for tables of the key columns alone, in the order of ``positions``."""
        tables = (left, right)
        algorithm = choose(self._plan, self._budget.limit, sum(t.nbytes for t in tables), sum(map(len, tables))).name
        spill = SpillDirectory()
        context = Context(budget=self._budget, spill=spill, output_rows=self._output_rows())
        operator = registry.create(algorithm, self._plan, context)
        try:
            arriving = (
                operator.arrive(side, batch) for side, table in enumerate(tables) for batch in self._keys(side, table)
            )
            for steps in chain(arriving, (operator.end(side) for side in (0, 1)), _once(operator.finish)):
                for step in steps:
                    if step is not None:
                        i, j = self._plan.output.build(step.rows, step.index).columns
                        yield i.to_numpy(), j.to_numpy()
                    else:
                        yield _NOTHING
        finally:
            try:
                operator.close()
            finally:
                spill.close()

    def _output_rows(self) -> int:
        """Pairs in a piece: their numbers are to take a small part of the memory."""
        limit = self._budget.limit
        if limit.bytes is None:
            return DEFAULT_OUTPUT_ROWS
        return int(np.clip(limit.bytes / _PIECE_SHARE, 64, DEFAULT_OUTPUT_ROWS))

    def _key_schema(self, plan: Plan, side: int) -> pa.Schema:
        fields = [plan.schemas[side].field(position) for position in self.positions[side]]
        return pa.schema([*fields, pa.field(_ROWS[side], pa.int64())])

    def _keys(self, side: int, table: pa.Table) -> list[pa.RecordBatch]:
        columns = list(table.columns)
        columns.append(pa.chunked_array([pa.array(np.arange(len(table)))]))
        keys = pa.Table.from_arrays(columns, schema=self._plan.schemas[side])
        batches: list[pa.RecordBatch] = keys.combine_chunks().to_batches(max_chunksize=_ARRIVING_ROWS)
        return batches


def _once(call: Callable[[], Iterator[Step]]) -> Iterator[Iterator[Step]]:
    """Called when its turn comes, not before."""
    yield call()
