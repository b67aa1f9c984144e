"""One run of a join: budget, spill directory, operator, inputs and driver, made together and closed together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms import registry, wide_rows
from earlyjoin.algorithms.aggregates import Expressions
from earlyjoin.algorithms.choice import fits_beside
from earlyjoin.algorithms.options import OperatorOptions
from earlyjoin.algorithms.packing import packed_plan, packings_of
from earlyjoin.algorithms.protocol import Context, Description, Operator, Plan
from earlyjoin.algorithms.reading import Ratio, make_reading
from earlyjoin.algorithms.resizing import Resizing
from earlyjoin.kernels.hashing import hash_words
from earlyjoin.local.building import OutputBuilder
from earlyjoin.local.driver import Driver
from earlyjoin.local.estimating import Estimating
from earlyjoin.local.estimating.running import Reading, statistics_share
from earlyjoin.local.estimating.step_measures import StepMeasures
from earlyjoin.local.inputs import Inputs, ThreadedInputs
from earlyjoin.local.options import JoinOptions
from earlyjoin.local.sources.base import BatchSizes, Source
from earlyjoin.local.sources.columnar.packing import PackedSource
from earlyjoin.local.sources.simulated import SimulatedSource
from earlyjoin.local.virtual_inputs import VirtualInputs
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.clock import Clock, LogicalClock, VirtualClock
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.rows.sizes import likely_row_nbytes

_FIRST_ROWS = 4096


class LocalExecution:
    """Everything that exists while a join runs."""

    def __init__(
        self,
        plan: Plan,
        sources: Sequence[Source],
        options: JoinOptions,
        algorithm: str,
        clock: Clock,
        choose_again: Callable[[Sequence[int]], str] | None = None,
    ) -> None:
        self.plan = plan
        self.sources = sources
        self.clock = clock
        plan, sources = _packed(plan, sources)
        self._read = sources
        """The inputs as they are read."""
        self._choose_again = choose_again
        """Which algorithm to take when it is known how wide rows are; None: the one that was asked for."""
        self.spill = SpillDirectory(options.spill_directory)
        self.counters = Counters()
        self.ticks = LogicalClock()
        self.rows_taken = [0] * plan.sides
        self.ended = [False] * plan.sides
        self.stop_asked = False
        self._options = options
        self.reading: Ratio | None = None
        self.inputs: Inputs | None = None
        self._set_up(plan, algorithm, row_widths(sources), MemoryLimit.parse(options.memory))

    def _set_up(self, plan: Plan, algorithm: str, widths: Sequence[int], memory: MemoryLimit) -> None:
        """Share out the memory for rows of such widths, and make the operator."""
        self._packed_plan, self._algorithm, self._widths = plan, algorithm, widths
        description = registry.get(algorithm, plan.sides).description
        key_nbytes = wide_rows.wide_key_nbytes(plan, widths)
        needs = wide_rows.Needs.of(description, widths, key_nbytes)
        self._wide = wide_rows.are_wide(memory.bytes, widths)
        if self._wide:
            self._refuse_wide_rows(description, memory, key_nbytes)
        self.budget = Budget(memory)
        input_share, self._output_share = wide_rows.shares(memory.bytes, needs)
        self._input_budget, rest = self.budget.split(input_share, least_rows=plan.sides)
        output_budget = None
        if rest.limit.bytes is not None:
            output_budget, rest = rest.split(self._output_share)
        self._builder = OutputBuilder(plan.output, output_budget, self.clock)
        # Values are measured before rows are built, so the memory for rows serves both.
        step_measures = StepMeasures(
            Expressions(self._options.aggregates, plan),
            output_budget.account("values of aggregates") if output_budget else None,
        )
        share = statistics_share(plan, rest.limit.bytes, len(self._options.aggregates))
        share, statistics = wide_rows.spare_share(rest.limit.bytes, needs, share), None
        if share:
            statistics, rest = rest.split(share)
        self._context = Context(
            budget=rest,
            spill=self.spill,
            ticks=self.ticks,
            counters=self.counters,
            output_rows=self._output_rows(rest.limit),
            seed=self._options.seed,
            rows_expected=tuple(source.rows_hint for source in self._read),
            bytes_expected=tuple(source.bytes_hint for source in self._read),
            row_nbytes=int(max(widths) + key_nbytes),
            key_nbytes=int(key_nbytes),
            options=registry.options_of(algorithm, self._options.operator),
            concurrent=not isinstance(self.clock, VirtualClock),
        )
        self.operator: Operator = registry.create(algorithm, plan, self._context)
        self.resizing = Resizing(self.budget, self.operator)
        if self.pulls and self.reading is None:
            self.reading = self._make_reading()
        most = max(self._batch_rows(source).most for source in self._read)
        # A budget in rows does not count statistics.
        counted = rest if rest.limit.bytes is None else statistics
        self._statistics = statistics
        account = None if counted is None else counted.account("statistics of the size estimate")
        reading = Reading(self._read, self.rows_taken, self.ended, most)
        self.estimating = Estimating(plan, self.operator, reading, step_measures, account, self._options.estimator)

    def _refuse_wide_rows(self, description: Description, memory: MemoryLimit, key_nbytes: float) -> None:
        """Rows of which so few fit that a join that has to spill could not go on are refused before the first one."""
        if not description.spills or wide_rows.is_enough(memory, description, self._widths, key_nbytes):
            return
        sizes = [source.bytes_hint for source in self._read if source.bytes_hint is not None]
        if len(sizes) == len(self._read) and fits_beside(memory, sum(sizes), self._widths):
            return
        others = [one for one in registry.able(self.plan) if one.spills and one.name != description.name]
        raise wide_rows.refusal(memory, description, self._widths, key_nbytes, others)

    @property
    def widths(self) -> tuple[int, ...]:
        """About what a row of each input takes, as the memory was shared out by."""
        return tuple(self._widths)

    def expect(self, widths: Sequence[int]) -> None:
        """Share the memory out for rows that are known to be so wide; nothing was joined yet."""
        if tuple(widths) != self.widths and wide_rows.are_wide(self.budget.limit.bytes, widths):
            self._set_up_again(self._algorithm, widths)

    def _set_up_again(self, algorithm: str, widths: Sequence[int]) -> None:
        self.estimating.close()
        self.operator.close()
        self._set_up(self._packed_plan, algorithm, widths, self.budget.limit)

    def _adapt(self, inputs: ThreadedInputs) -> None:
        """Where nothing told how wide rows are, the first batches do; nothing was joined yet."""
        unknown = [side for side, source in enumerate(self._read) if not _is_measured(source) and not self.ended[side]]
        if self.budget.limit.bytes is not None and unknown and not any(self.rows_taken):
            first = inputs.first_widths(unknown)
            widths = [max(width, first.get(side, 0)) for side, width in enumerate(self._widths)]
            if wide_rows.are_wide(self.budget.limit.bytes, widths):
                name = self._algorithm if self._choose_again is None else self._choose_again(widths)
                self._set_up_again(name, widths)
        inputs.open(self._input_budget)

    @property
    def pulls(self) -> bool:
        """Do we choose which input to read?"""
        if self._options.driving == "auto":
            return not any(source.live for source in self.sources)
        return self._options.driving == "pull"

    def _make_reading(self) -> Ratio:
        rows = [source.rows_hint for source in self.sources]
        own, build_side = self.operator.description.reading, self.operator.build_side
        return make_reading(self._options.reading, rows, own=own, build_side=build_side, counters=self.counters)

    @property
    def operator_options(self) -> OperatorOptions:
        """The algorithm's own options, as they are in use."""
        assert self._context.options is not None
        return self._context.options

    def run(self) -> Iterator[pa.RecordBatch]:
        """The result, batch by batch, from wherever the state stands."""
        sizes = [self._batch_rows(source) for source in self._read]
        starts = list(self.rows_taken)
        sources = [
            _Ended(source.schema) if over else source for source, over in zip(self._read, self.ended, strict=True)
        ]
        simulated = [source for source in self._read if isinstance(source, SimulatedSource)]
        if isinstance(self.clock, VirtualClock) and len(simulated) == len(self.sources):
            self.inputs = VirtualInputs(simulated, self.clock, sizes, starts, self.ended)
        else:
            self.inputs = ThreadedInputs(sources, self.clock, sizes, starts, self._stopping)
            # Numba sets itself up at the first kernel that is called, which can go on while the first rows are read.
            hash_words(np.zeros((1, 1), dtype=np.int64))
            self._adapt(self.inputs)
        driver = Driver(
            operator=self.operator,
            inputs=self.inputs,
            reading=self.reading,
            wait_s=self._options.wait_ms / 1000,
            rows_taken=self.rows_taken,
            ended=self.ended,
            stopping=self._stopping,
            estimating=self.estimating,
            between_steps=self.resizing.enforce,
            holding=lambda: self._builder.holds,
            overdue=lambda: self._builder.overdue,
        )
        try:
            for matches in driver.run():
                yield from self._builder.give_held() if matches is None else self._builder.build(matches)
        except Exception:
            yield from self._builder.give_held()  # they were found before
            raise
        if not self.stop_asked:
            yield from self._builder.give_held()
        if not self.stop_asked:
            for source in self.sources:
                if source.files is not None:
                    source.files.check_all()

    def set_memory(self, limit: MemoryLimit) -> None:
        """Change the limit, at once or as soon as what is held fits."""
        self.resizing.ask(limit)
        statistics = self._statistics
        if statistics is not None and not statistics.would_fit(statistics.limit_if(limit)):
            self.estimating.give_up("the memory was made smaller than statistics besides the join need")
            self.resizing.enforce()
        if self.resizing.asked is not None:
            # Readers must not fill the old buffer again while the operator gives back.
            self._input_budget.resize_parts(limit)
        rows = self._output_rows(self._context.budget.limit_if(limit))
        self._context.output_rows = min(self._context.output_rows, rows)

    def unbuilt(self) -> list[pa.RecordBatch]:
        """Rows that the operator has found and that ``run`` has not given out."""
        return self._builder.unbuilt()

    def close(self) -> None:
        """Stop the readers, give memory back, remove files, whatever of it fails. Idempotent."""
        with ExitStack() as last_first:
            last_first.callback(self.spill.close)
            last_first.callback(self.estimating.close)
            last_first.callback(self.operator.close)
            if self.inputs is not None:
                last_first.callback(self.inputs.close)

    def _stopping(self) -> bool:
        return self.stop_asked

    def _output_rows(self, limit: MemoryLimit) -> int:
        """Rows in a batch of matches: row numbers and rows of a batch are to take a small part of the memory."""
        most = self._options.batch_rows
        if limit.bytes is None:
            return most
        row_nbytes = 16 + max(likely_row_nbytes(self.plan.output.schema), sum(self._widths) if self._wide else 0)
        return int(np.clip(limit.bytes * self._output_share / row_nbytes, 1, most))

    def _batch_rows(self, source: Source) -> BatchSizes:
        """Batches small enough that two of them fit the side's share of the input buffer."""
        limit = self._input_budget.limit
        spill = None if limit.bytes is None else self.spill
        if limit.rows is not None:
            most = max(1, limit.rows // self.plan.sides // 2)
        else:
            most = max(1, (limit.bytes or 0) // self.plan.sides // 2 // _row_nbytes(source))
        most = min(most, self._options.batch_rows)
        return BatchSizes(first=min(_FIRST_ROWS, most), most=most, spill=spill)


def _packed(plan: Plan, sources: Sequence[Source]) -> tuple[Plan, Sequence[Source]]:
    """The plan and the inputs as rows travel. Simulated inputs tell when each row comes: those are left alone."""
    packings = packings_of(plan)
    if not any(packings) or any(isinstance(source, SimulatedSource) for source in sources):
        return plan, sources
    return packed_plan(plan, packings), [
        source if packing is None else PackedSource(source, packing)
        for source, packing in zip(sources, packings, strict=True)
    ]


def row_widths(sources: Sequence[Source]) -> tuple[int, ...]:
    """About what a row of each source takes, as far as that is known before reading."""
    return tuple(map(_row_nbytes, sources))


def _row_nbytes(source: Source) -> int:
    row_nbytes = likely_row_nbytes(source.schema)
    if source.bytes_hint and source.rows_hint:
        row_nbytes = max(row_nbytes, source.bytes_hint // source.rows_hint)
    return row_nbytes


def _is_measured(source: Source) -> bool:
    """Is it known, and not guessed, how wide its rows are?"""
    return source.rows_hint == 0 or bool(source.bytes_hint and source.rows_hint)


class _Ended(Source):
    """The rest of an input that had ended before a pause: nothing."""

    name = "ended"

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        return iter(())
