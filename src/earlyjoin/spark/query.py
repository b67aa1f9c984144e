"""A join of Spark DataFrames as a person holds it: iterate, look at the head, watch, stop, write.

::

    new ──iterate──▶ running: early phase ──▶ bulk ──▶ finished
                       │  ├─ stop() ──▶ stopped     its Spark jobs are cancelled, and no others
                       │  └─ error  ──▶ failed
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
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
from earlyjoin.state.life import Progress, State, Stopwatch, summary

__all__ = ["Query", "State"]


class Query:
    """A join of two Spark DataFrames.

    Iterating gives ``pyarrow.RecordBatch`` objects as they are found; the result can be taken once. Rows that ``head``
    has shown are given out again. Use it as a context manager, or let it run to its end, so that no job goes on.
    """

    def __init__(
        self,
        left: Any,
        right: Any,
        condition: Condition,
        options: SparkOptions | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
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
        self.state = State.NEW
        self._clock = clock if clock is not None else RealClock()
        self._watch = Stopwatch(self._clock)
        self._execution = Execution(self.plan, condition, (left, right), self.options, self._jobs, self._clock)
        self._shown: list[pa.RecordBatch] = []
        self._running: Iterator[pa.RecordBatch] | None = None
        self._stepping = threading.Lock()
        self._finalizer = weakref.finalize(self, self._execution.close)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return self.plan.output.schema

    @property
    def algorithm(self) -> str:
        """What joins the bulk."""
        return self._execution.bulk(everything=True).name

    @property
    def session_version(self) -> str:
        """The version of Spark."""
        return str(self._jobs.session.version)

    @property
    def progress(self) -> Progress:
        """How far the query is. May be asked from another thread."""
        execution = self._execution
        early = execution.joined_early
        read = early.rows_read if early is not None else [0, 0]
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

    @property
    def estimate(self) -> dict[str, Any] | None:
        """Size of the whole result: ``rows``, the interval ``low`` to ``high``, and its ``confidence``.

        None while nothing can be said; ``estimate_reason`` tells why. Exact once the query has finished.
        """
        if self.state is State.FINISHED:
            rows = self._watch.rows
            return {"rows": rows, "low": rows, "high": rows, "confidence": 1.0}
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
        reason = self._execution.no_early
        if reason is not None:
            return f"no blocks are joined early, because {reason}"
        early = self._execution.joined_early
        return early.why_no_estimate if early is not None else "no blocks were joined yet"

    @property
    def estimates(self) -> dict[str, dict[str, Any] | None]:
        """Aggregates over the result are estimated by the local engine alone: there are none."""
        return {}

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The result as it is found. Iterating again goes on where the last iteration stopped."""
        while (batch := self._next()) is not None:
            yield batch

    def head(self, rows: int) -> pa.Table:
        """The first rows, as soon as so many are found; iterating afterwards gives them out again."""
        if rows < 0:
            raise InputError(f"head needs 0 rows or more, got {rows}")
        taken: list[pa.RecordBatch] = []
        while sum(batch.num_rows for batch in taken) < rows and (batch := self._next()) is not None:
            taken.append(batch)
        self._shown = taken + self._shown
        return pa.Table.from_batches(taken, schema=self.schema).slice(0, rows)

    def to_arrow(self) -> pa.Table:
        """All rows that are still to come, as a table."""
        return pa.Table.from_batches(list(self), schema=self.schema)

    def to_df(self) -> Any:
        """The full result as a lazy Spark DataFrame, whatever was given out already.

        Nothing is joined yet; without an equality in the condition, large inputs may be looked at first.
        """
        return self._execution.bulk_frame(everything=True)

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False, limit: int | None = None) -> int:
        """Write the result as a directory of files (.parquet, .csv, .json, .orc) and return the number of rows.

        Early rows are joined first, so that the size is known; then Spark's writers take all rows, the early ones too.
        Rows that ``head`` has shown are written too; rows that were taken by iterating are not, and once these are of
        the bulk, nothing can be written any more.
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
            frame = self._rows_to_write()
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

    def limited(self, rows: int | None) -> Iterator[pa.RecordBatch]:
        """Like iterating, but stops the query once so many rows were given out."""
        left = rows
        while left is None or left > 0:
            batch = self._next(left)
            if batch is None:
                return
            if left is not None:
                left -= batch.num_rows
            yield batch
        self.stop()

    def interrupt(self) -> None:
        """Ask the query to stop, and return at once: whoever iterates sees its end soon."""
        self._execution.stop_asked = True

    def stop(self) -> None:
        """Cancel the query's Spark jobs and end it. May be called from another thread; what was given out is valid."""
        self.interrupt()
        if self.state in (State.NEW, State.RUNNING):
            self._jobs.cancel()
        if self._stepping.acquire(blocking=False):
            try:
                self._end(State.STOPPED)
            finally:
                self._stepping.release()

    def explain(self) -> str:
        """What will be done and why, in words."""
        return explaining.explain(self, self._execution)

    def summary(self) -> dict[str, Any]:
        """What was done, as plain values (see the README for the fields)."""
        return summary(
            engine="spark",
            algorithm=self.algorithm,
            watch=self._watch,
            counters=self._execution.counters,
            budget=self._execution.budget,
            estimate=self.estimate,
            estimates=self.estimates,
        )

    def close(self) -> None:
        """Give everything back. Idempotent; a running query is stopped."""
        self.stop()

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next(self, most: int | None = None) -> pa.RecordBatch | None:
        if self._shown:
            return self._shown.pop(0).slice(0, most)
        with self._stepping:
            return self._step(most) if self.state in (State.NEW, State.RUNNING) else None

    def _step(self, most: int | None) -> pa.RecordBatch | None:
        self._start()
        assert self._running is not None
        try:
            batch = None if self._execution.stop_asked else next(self._running, None)
        except Exception:
            if self._execution.stop_asked:  # a job that was cancelled fails, which is what was wanted
                self._end(State.STOPPED)
                return None
            self._end(State.FAILED)
            raise
        except BaseException:
            self._end(State.STOPPED)
            raise
        if batch is None:
            self._end(State.STOPPED if self._execution.stop_asked else State.FINISHED)
        else:
            batch = batch.slice(0, most)
            self._watch.count(batch.num_rows)
        return batch

    def _start(self) -> None:
        self._watch.start()
        self.state = State.RUNNING
        if self._running is None:
            self._running = self._execution.run()

    def _early_batches(self) -> list[pa.RecordBatch]:
        """The rest of the early phase."""
        self._watch.start()
        self.state = State.RUNNING
        batches = []
        for batch in self._execution.early_rows():
            self._watch.count(batch.num_rows)
            batches.append(batch)
        return batches

    def _rows_to_write(self) -> Any:
        """All rows that are still to come, as a DataFrame."""
        if self._execution.bulk_started:
            return self._everything_again()
        early = self._shown + self._early_batches()
        frame = self._execution.bulk_frame()
        if not early:
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

    def _end(self, state: State) -> None:
        if self.state in (State.NEW, State.RUNNING):
            self.state = state
            self._watch.stop()
            try:
                if self._running is not None:
                    self._running.close()  # type: ignore[attr-defined]
            finally:
                self._finalizer()
