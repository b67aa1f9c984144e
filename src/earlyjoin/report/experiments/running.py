"""Running an algorithm as the papers do: pulling stored tables or pushed by arrivals, on a clock of counted work."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.algorithms.protocol import Context, Operator, Step
from earlyjoin.algorithms.reading import make_reading
from earlyjoin.local.driver import Driver
from earlyjoin.local.timed_inputs import Schedule, TimedInputs
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.report.experiments.moments import History, Recorder
from earlyjoin.state.budget import MIN_ROWS, Budget, MemoryLimit
from earlyjoin.state.cost_clock import CostClock, Costs
from earlyjoin.state.disk.spill import SpillDirectory

_OUTPUT_ROWS = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """An algorithm as a figure runs it."""

    label: str
    algorithm: str
    options: Mapping[str, object] = field(default_factory=dict)
    reading: str = "1:1"
    """A reading strategy, by name or as ratios."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """Rows of one side as they are read, in small batches."""

    schema: pa.Schema
    batches: Iterable[pa.RecordBatch]
    rows: int | None = None

    @classmethod
    def of(cls, table: pa.Table, batch_rows: int) -> Input:
        """A stored table."""
        return cls(schema=table.schema, batches=table.to_batches(max_chunksize=batch_rows), rows=len(table))


class PulledJoin:
    """A join that reads its inputs itself, in its reading ratio."""

    def __init__(
        self,
        contender: Contender,
        condition: Condition,
        inputs: Sequence[Input],
        *,
        memory_rows: int,
        clock: CostClock,
        directory: str,
    ) -> None:
        self.plan = make_plan(condition, inputs[0].schema, inputs[1].schema)
        self.context = _context(contender, directory, memory_rows, inputs)
        self.operator: Operator = registry.create(contender.algorithm, self.plan, self.context)
        self._batches = [iter(given.batches) for given in inputs]
        rows = [given.rows for given in inputs]
        self._reading = make_reading(contender.reading, rows, counters=self.context.counters)
        clock.watch(self.context.counters)

    def steps(self) -> Iterator[Step]:
        """Read to the end, then clean up."""
        rows_read, ended = [0, 0], [False, False]
        while (side := self._reading.next_side(rows_read, ended)) is not None:
            batch = next(self._batches[side], None)
            if batch is None:
                ended[side] = True
                yield from self.operator.end(side)
            else:
                rows_read[side] += batch.num_rows
                yield from self.operator.arrive(side, batch)
        yield from self.operator.finish()
        yield None

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The result as another join reads it."""
        for step in self.steps():
            if step is not None:
                yield self.plan.output.build(step.rows, step.index)

    def close(self) -> None:
        """Let go of memory and files."""
        self.operator.close()
        self.context.spill.close()


def pull(
    contender: Contender, condition: Condition, left: Input, right: Input, *, memory_rows: int, costs: Costs
) -> History:
    """Join two stored tables."""
    clock = CostClock(costs)
    with tempfile.TemporaryDirectory() as directory:
        join = PulledJoin(
            contender, condition, (left, right), memory_rows=memory_rows, clock=clock, directory=directory
        )
        recorder = Recorder(contender.label, clock, [join.context.counters])
        try:
            for _ in join.steps():
                recorder.note()
        finally:
            join.close()
    return recorder.history


def push(
    contender: Contender,
    condition: Condition,
    tables: Sequence[pa.RecordBatch],
    schedule: Schedule,
    *,
    memory_rows: int,
    costs: Costs,
    silence_s: float,
    window_rows: int,
    silent_time_only: bool,
    until_s: float = math.inf,
    points: int = 20_000,
) -> History:
    """Join two tables whose rows arrive by a schedule; reactive work begins after a silence.

    The run is stopped after the first step that ends behind ``until_s``.
    """
    clock = CostClock(costs)
    plan = make_plan(condition, tables[0].schema, tables[1].schema)
    with tempfile.TemporaryDirectory() as directory:
        context = _context(contender, directory, memory_rows, [])
        operator = registry.create(contender.algorithm, plan, context)
        clock.watch(context.counters)
        inputs = TimedInputs(
            tables, schedule, clock, silence_s=silence_s, window_rows=window_rows, silent_time_only=silent_time_only
        )
        end_s = float(schedule.times_s[-1]) if len(schedule) else 0.0
        recorder = Recorder(contender.label, clock, [context.counters], every_s=end_s / points)
        driver = Driver(
            operator=operator,
            inputs=inputs,
            reading=None,
            wait_s=silence_s,
            rows_taken=[0, 0],
            ended=[False, False],
            watching=recorder.note,
            stopping=lambda: clock.now() > until_s,
        )
        try:
            recorder.note(always=True)
            for _ in driver.run():
                pass
            recorder.note(always=True)
        finally:
            operator.close()
            context.spill.close()
    return recorder.history


def _context(contender: Contender, directory: str, memory_rows: int, inputs: Sequence[Input]) -> Context:
    return Context(
        budget=Budget(MemoryLimit(rows=max(MIN_ROWS, memory_rows))),
        spill=SpillDirectory(directory),
        output_rows=_OUTPUT_ROWS,
        rows_expected=tuple(given.rows for given in inputs) or None,
        options=registry.options_of(contender.algorithm, contender.options or None),
    )
