"""Running an operator and writing down what it had found after how much counted work.

Counted work (rows read, tuples moved to and from disk, comparisons) does not depend on the machine, so it can be held
against the figures of the papers. Tuples are turned into pages with the paper's own tuples a page.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.algorithms.protocol import Context, Operator, Plan, Step
from earlyjoin.algorithms.reading import Ratio
from earlyjoin.errors import InputError
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.disk.spill import SpillDirectory


@dataclass(frozen=True, slots=True)
class ResultMoment:
    """What had been done when so many results were there."""

    rows_read: int
    tuple_ios: int
    comparisons: int
    results: int


@dataclass(slots=True)
class Trace:
    """One run of one algorithm."""

    algorithm: str
    moments: list[ResultMoment] = field(default_factory=list)

    @property
    def last(self) -> ResultMoment:
        """The end of the run."""
        return self.moments[-1]

    def when(self, results: int) -> ResultMoment:
        """The first moment with so many results."""
        found = next((moment for moment in self.moments if moment.results >= results), None)
        if found is None:
            raise InputError(f"only {self.last.results} results where {results} are needed; use a larger scale")
        return found

    def pages(self, tuples_a_page: int) -> list[float]:
        """Page I/Os at each moment."""
        return [moment.tuple_ios / tuples_a_page for moment in self.moments]

    @property
    def results(self) -> list[int]:
        """Results at each moment."""
        return [moment.results for moment in self.moments]


def trace(
    algorithm: str,
    condition: Condition,
    left: pa.Table,
    right: pa.Table,
    *,
    memory: MemoryLimit,
    batch_rows: int = 1000,
    output_rows: int = 65536,
) -> Trace:
    """Read both inputs in turns, in small batches, to the end."""
    plan = make_plan(condition, left.schema, right.schema)
    with tempfile.TemporaryDirectory() as directory:
        context = Context(budget=Budget(memory), spill=SpillDirectory(directory), output_rows=output_rows)
        operator = registry.create(algorithm, plan, context)
        run = Trace(algorithm)
        try:
            for _ in _steps(operator, plan, [left, right], batch_rows):
                _note(run, context)
        finally:
            operator.close()
            context.spill.close()
    return run


def _steps(operator: Operator, plan: Plan, tables: list[pa.Table], batch_rows: int) -> Iterator[Step]:
    batches = [iter(table.to_batches(max_chunksize=batch_rows)) for table in tables]
    reading, rows_read, ended = Ratio(), [0] * plan.sides, [False] * plan.sides
    while (side := reading.next_side(rows_read, ended)) is not None:
        batch = next(batches[side], None)
        if batch is None:
            ended[side] = True
            yield from operator.end(side)
        else:
            rows_read[side] += batch.num_rows
            yield from operator.arrive(side, batch)
    yield from operator.finish()
    yield None


def _note(run: Trace, context: Context) -> None:
    counters = context.counters
    moment = ResultMoment(
        sum(counters.rows_in), counters.tuples_written + counters.tuples_read, counters.comparisons, counters.rows_out
    )
    if not run.moments or run.moments[-1] != moment:
        run.moments.append(moment)
