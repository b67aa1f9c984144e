"""A join of Spark DataFrames as a person holds it: iterate, look at the head, watch, stop, write.

::

    new ──iterate──▶ running: early phase ──▶ bulk ──▶ finished
                       │  ├─ stop() ──▶ stopped     its Spark jobs are cancelled, and no others
                       │  └─ error  ──▶ failed
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import pyarrow as pa

from earlyjoin.algorithms.join_types import JoinType
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.spark import explaining, sinks
from earlyjoin.spark.execution import Execution
from earlyjoin.spark.jobs import Jobs
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.session import session_of
from earlyjoin.spark.types import arrow_schema
from earlyjoin.state.clock import Clock, RealClock
from earlyjoin.state.counters import Phase
from earlyjoin.state.life import Progress, State
from earlyjoin.state.running_query import RunningQuery

__all__ = ["Query", "State"]


class Query(RunningQuery):
    """A join of two Spark DataFrames.

    Iterating gives ``pyarrow.RecordBatch`` objects as they are found; the result can be taken once. Rows that ``head``
    has shown are given out again. Use it as a context manager, or let it run to its end, so that no job goes on.
    """

    engine = "spark"
    cancelling_fails = True

    def __init__(
        self,
        left: Any,
        right: Any,
        condition: Condition,
        options: SparkOptions | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(clock if clock is not None else RealClock())
        self.options = options if options is not None else SparkOptions()
        self.condition = condition
        self._jobs = Jobs(session_of(left))
        schemas = [self._jobs.tagged(partial(arrow_schema, frame, side)) for side, frame in enumerate((left, right))]
        self.plan = make_plan(condition, *schemas, how=self.options.how, suffixes=self.options.suffixes)
        if self.plan.condition.filters:
            raise UnsupportedError(
                f"where: {self.plan.condition.filters[0]} is an Arrow expression, which Spark cannot evaluate; "
                "filter the inputs before, or the result with to_df().where(...)"
            )
        self._execution = Execution(self.plan, condition, (left, right), self.options, self._jobs, self._clock)
        self._begin(self._execution)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return self.plan.output.schema

    @property
    def algorithm(self) -> str:
        """What joins the bulk."""
        whole = self._execution.driver_join
        return whole.name if whole is not None else self._execution.bulk(everything=True).name

    @property
    def session_version(self) -> str:
        """The version of Spark."""
        return str(self._jobs.session.version)

    @property
    def progress(self) -> Progress:
        """How far the query is. May be asked from another thread."""
        execution = self._execution
        reading = execution.started_driver_join or execution.joined_early
        read = reading.rows_read if reading is not None else [0, 0]
        return Progress(
            rows_out=self._watch.rows,
            rows_in=tuple(read),
            rows_expected=(None, None),
            phase=execution.phase,
            seconds=self._watch.elapsed_s,
            memory_fraction=execution.budget.fraction_used,
            finished=self.state is State.FINISHED,
            estimate=self.estimate,
        )

    def _estimated(self) -> dict[str, Any] | None:
        early = self._execution.joined_early
        if early is None or self.plan.how is not JoinType.INNER:
            return None
        return early.estimate.get(self._watch.rows)

    @property
    def estimate_reason(self) -> str | None:
        """Why ``estimate`` is None; None when it is not."""
        if self.state is State.FINISHED:
            return None
        if self.plan.how is not JoinType.INNER:
            how = self.plan.how
            return f"sizes are estimated for inner joins: which rows of a {how} join stay alone shows at the end"
        if self.state is State.NEW:
            return "the query has not been started"
        if self._execution.started_driver_join is not None:
            return "the inputs are small and joined at once"
        reason = self._execution.no_early
        if reason is not None:
            return f"no blocks are joined early, because {reason}"
        early = self._execution.joined_early
        return early.why_no_estimate if early is not None else "no blocks were joined yet"

    def to_df(self) -> Any:
        """The full result as a lazy Spark DataFrame, whatever was given out already.

        Nothing is joined yet, and Spark will do it, small inputs too; without an equality in the condition, large
        inputs may be looked at first.
        """
        return self._execution.bulk_frame(everything=True)

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False, limit: int | None = None) -> int:
        """Write the result as a directory of files (.parquet, .csv, .json, .orc) and return the number of rows.

        Early rows are joined first, so that the size is known; then Spark joins and writes everything, the early rows
        too: leaving them out would cost more than joining them again. Rows that ``head`` has shown are written too;
        rows that were taken by iterating are not, and once these are of the bulk, nothing can be written any more.
        """
        sinks.check_target(path, overwrite=overwrite)
        if limit is not None:
            return self._write_table(
                pa.Table.from_batches(list(self.limited(limit)), schema=self.schema), path, overwrite
            )
        if self.state not in (State.NEW, State.RUNNING):
            return self._write_table(self.to_arrow(), path, overwrite)
        taken = self._watch.rows - sum(batch.num_rows for batch in self._shown)
        try:
            frame = self._rows_to_write(taken)
            written = sinks.write(frame, path, self._jobs, overwrite=overwrite)
        except BaseException:
            self._end(State.FAILED)
            raise
        self._shown = []
        self._watch.count(taken + written - self._watch.rows)
        results = self._execution.counters.results
        results[Phase.CLEANUP] = self._watch.rows - results[Phase.ARRIVING]
        self._end(State.FINISHED)
        return written

    def stop(self) -> None:
        """Cancel the query's Spark jobs and end it. May be called from another thread; what was given out is valid."""
        self.interrupt()
        if self.state in (State.NEW, State.RUNNING):
            self._jobs.cancel()
        super().stop()

    def explain(self) -> str:
        """What will be done and why, in words."""
        return explaining.explain(self, self._execution)

    def _early_batches(self) -> list[pa.RecordBatch]:
        """The rest of the early phase."""
        self._start()
        batches = []
        for batch in self._execution.early_rows():
            self._watch.count(batch.num_rows)
            batches.append(batch)
        return batches

    def _rows_to_write(self, taken: int) -> Any:
        """All rows that are still to come after so many, as a DataFrame."""
        if self._execution.bulk_started:
            return self._everything_again()
        early = self._shown + self._early_batches()
        if self._execution.complete:
            return self._spark_rows(pa.Table.from_batches(early, schema=self.schema), self.to_df().schema)
        frame = self._jobs.tagged(partial(self._execution.bulk_frame, everything=not taken))
        if not early or not taken:
            return frame
        return self._spark_rows(pa.Table.from_batches(early, schema=self.schema), frame.schema).union(frame)

    def _everything_again(self) -> Any:
        """The whole result, if no more than a glance was taken at it so far; what was shown is forgotten."""
        if sum(batch.num_rows for batch in self._shown) != self._watch.rows:
            raise InputError("rows of the bulk were taken already: write before iterating so far, or use to_arrow()")
        if self._running is not None:
            self._running.close()  # type: ignore[attr-defined]
        self._jobs = self._execution.jobs = Jobs(self._jobs.session)
        self._watch.rows = 0
        self._execution.counters.results[Phase.ARRIVING] = 0
        return self.to_df()

    def _write_table(self, table: pa.Table, path: str | os.PathLike[str], overwrite: bool) -> int:
        self._jobs = Jobs(self._jobs.session)  # those of a query that has ended are cancelled
        frame = self._spark_rows(table, self.to_df().schema)
        return sinks.write(frame, path, self._jobs, overwrite=overwrite)

    def _spark_rows(self, table: pa.Table, schema: Any) -> Any:
        """Rows of this process as a DataFrame of exactly the types that Spark would give."""
        return self._jobs.tagged(lambda: self._jobs.session.createDataFrame(table, schema=schema))
