"""A join of Spark DataFrames: first rows, the size, files and a DataFrame of the whole.

::

    new ──iterate──▶ running: early phase ──▶ bulk ──▶ finished
                       │  ├─ stop() ──▶ stopped     its Spark jobs are cancelled, and no others
                       │  └─ error  ──▶ failed
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.predicates.encoding.types import Incomparable
from earlyjoin.predicates.one_sided import Unreadable
from earlyjoin.query.life import Progress, State
from earlyjoin.query.query import Query
from earlyjoin.query.running import count_of
from earlyjoin.spark import explaining
from earlyjoin.spark.columns.arrow_forms import collectable, restored
from earlyjoin.spark.columns.case import ignores_case, in_real_case
from earlyjoin.spark.columns.keys import check_comparable, for_spark, in_spark_types, spark_alone, spark_type
from earlyjoin.spark.columns.types import arrow_schema
from earlyjoin.spark.execution import Execution
from earlyjoin.spark.jobs import Jobs
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.session import session_of
from earlyjoin.spark.writing import sinks
from earlyjoin.spark.writing.targets import Target
from earlyjoin.spark.writing.whole import SENT_NBYTES, Writing
from earlyjoin.state.clock import Clock, RealClock
from earlyjoin.state.counters import Phase


class SparkQuery(Query):
    """A join of two Spark DataFrames."""

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
        self._given = (left, right)
        self._more_shown: pa.Table | None = None
        """Rows of Spark's own join that ``head`` has shown beside those of the early phase."""
        self.writing: Writing | None = None
        """What is being written now."""
        frames = self._jobs.tagged(lambda: [collectable(frame) for frame in self._given])
        self.plan, condition = self._jobs.tagged(partial(self._planned, condition, frames))
        self._execution = Execution(self.plan, condition, frames, self.options, self._jobs, self._clock)
        self._begin(self._execution)

    def _planned(self, condition: Condition, frames: Sequence[Any]) -> tuple[Plan, Condition]:
        """The plan, and the condition as the columns are really called."""
        left, right = (arrow_schema(frame, side) for side, frame in enumerate(frames))
        ignore_case = ignores_case(self._jobs.session)
        if ignore_case:
            condition = in_real_case(condition, (left, right))
        condition = for_spark(condition, (left, right), self._given)
        how, suffixes = self.options.how, self.options.suffixes
        try:
            plan = make_plan(condition, left, right, how=how, suffixes=suffixes, ignore_case=ignore_case)
        except Incomparable as error:
            raise in_spark_types(error, self._given) from None
        except Unreadable as error:
            raise error.in_type(spark_type(error.column, self._given)) from None
        if plan.condition.expressions:
            raise UnsupportedError(
                f"where: {plan.condition.expressions[0]} is an Arrow expression, which Spark cannot evaluate; write it "
                'as a text, such as "left.price > 10 or a < b", or filter an inner join with to_df().where(...)'
            )
        if spark_alone(plan) is not None:
            check_comparable(plan, frames)
        return plan, condition

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

    def _algorithm_so_far(self) -> str:
        return self._execution.algorithm_so_far or "chosen when rows are asked for"

    def _estimated(self) -> dict[str, Any] | None:
        early = self._execution.joined_early
        if early is None or early.draws is None:
            return None
        return early.draws.estimate.get(self._watch.rows)

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
        if early is None:
            return "no random blocks were joined yet"
        if early.draws is None:
            return "no random blocks can be drawn of an input that is behind an aggregation"
        return early.draws.why_no_estimate

    def estimate_now(self) -> dict[str, Any] | None:
        """The size of the whole result, told from the keys of random blocks; ``estimate`` has it from then on.

        Reads a few files' key columns and gives out no rows. None where ``estimate_reason`` says why.
        """
        with self._stepping:
            self._check_open()
            if not self._execution.bulk_started and self.estimate is None:
                self._start()
                try:
                    self._execution.count_keys()
                except BaseException as error:
                    if not self._end_after(error):
                        raise
                if self._execution.stop_asked:
                    self._end(State.STOPPED)
        return self.estimate

    def head(self, rows: int) -> pa.Table:
        """The first rows, as soon as so many are found. They are only shown: iterating afterwards gives all rows.

        The beginnings of a few files of both inputs are joined at once, where that is sooner than Spark's own join; the
        rows that are missing then come from that, cut off at so many. So another ``head`` may show other rows.
        """
        rows = count_of(rows, "head")
        if self._execution.bulk_started or self._execution.drawing:
            return super().head(rows)
        with self._stepping:
            self._check_open()
            try:
                return self._looked(rows)
            except BaseException as error:
                if not self._end_after(error):
                    raise
                return pa.Table.from_batches(self._shown, schema=self.schema).slice(0, rows)
            finally:
                if self._execution.stop_asked:
                    self._end(State.STOPPED)

    def _looked(self, rows: int) -> pa.Table:
        """So many rows: of the early phase, kept to be given out again, and of Spark's own join, which are not."""
        self._start()
        kept = sum(batch.num_rows for batch in self._shown)
        if kept < rows:
            if self._more_shown is None and not kept:
                self._execution.fetch_ahead(rows)
                self._more_shown = self._execution.fetched_ahead(rows)
                if self._more_shown is not None:
                    self._watch.show(len(self._more_shown))
                    return self._more_shown
            for batch in self._execution.look_rows(rows - kept):
                self._watch.count(batch.num_rows)
                self._shown.append(batch)
                kept += batch.num_rows
                if kept >= rows:
                    break
        table = pa.Table.from_batches(self._shown, schema=self.schema).slice(0, rows)
        missing = rows - len(table)
        if not missing or self._execution.complete or self._execution.stop_asked:
            return table
        if self._more_shown is None or len(self._more_shown) < missing:
            more = list(self._execution.bulk_batches(missing))
            self._more_shown = pa.Table.from_batches(more, schema=self.schema)
            self._watch.show(len(self._more_shown))
        return pa.concat_tables([table, self._more_shown.slice(0, missing)])

    def limited(self, rows: int | None) -> Iterator[pa.RecordBatch]:
        """Like iterating, but stops the query once so many rows were given out; Spark is asked for no more."""
        if rows is not None:
            rows = count_of(rows, "limited")
        self._check_untaken()
        if rows is not None and not self._execution.bulk_started:
            shown = sum(batch.num_rows for batch in self._shown)
            self._execution.limit = self._watch.rows - shown + rows
            self._execution.look_for(rows - shown)
        yield from super().limited(rows)

    def to_df(self) -> Any:
        """The full result as a lazy Spark DataFrame, whatever was given out already.

        Nothing is joined yet, and Spark will do it, small inputs too; without an equality in the condition, large
        inputs may be looked at first.
        """
        return restored(self._execution.bulk_frame(everything=True), self.plan.output.columns, self._given)

    def write(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        mode: str = "error",
        partition_by: str | Sequence[str] | None = None,
        *,
        overwrite: bool = False,
        limit: int | None = None,
        **options: Any,
    ) -> int:
        """Write the result as a directory of files, and return the number of rows.

        The words are those of Spark's ``DataFrame.write``: ``mode`` is error, overwrite, append or ignore, and
        ``options`` are the format's. The end of the path (.parquet, .csv, .json, .orc) tells the ``format`` where it is
        not given, else it is Parquet. CSV files have a header unless ``header=False``. ``overwrite=True`` stands for
        ``mode="overwrite"``; a directory on this machine is replaced when the new one is complete.

        It is Spark's own join, written by Spark's writer: no blocks are joined early. Rows that ``head`` has shown are
        written too; rows that were taken by iterating are not, and once these are of the bulk, nothing can be written
        any more.
        """
        target = Target.of(
            path, format=format, mode=mode, overwrite=overwrite, partition_by=partition_by, options=options
        )
        with self._stepping:
            self._check_writable()
            if self.state is State.FINISHED:
                self._jobs = Jobs(self._jobs.session)  # those of a query that has ended are cancelled
        target = target.for_columns(self.schema.names, ignore_case=ignores_case(self._jobs.session))
        if sinks.is_here(target, self._jobs):
            target.check()
            if target.mode == "ignore" and target.exists:
                return 0
        self._jobs.tagged(lambda: target.check_inputs(self._given))
        if limit is not None:
            return self._write_table(pa.Table.from_batches(list(self.limited(limit)), schema=self.schema), target)
        with self._stepping:
            self._check_writable()
            return self._write_all(target)

    def _check_writable(self) -> None:
        """Rows of the bulk that were given out cannot be left out again."""
        self._check_untaken()
        if self._taken and self._execution.bulk_started:
            raise InputError("rows of the bulk were taken already: make the query again to write it, or use to_arrow()")

    @property
    def _taken(self) -> int:
        """Rows that somebody has taken for good."""
        shown: int = sum(batch.num_rows for batch in self._shown)
        return self._watch.rows - shown

    def _write_all(self, target: Target) -> int:
        taken, shown, finished = self._taken, self._shown, self.state is State.FINISHED
        written: int
        try:
            if not finished and not taken:
                self._everything_again()
            self.writing = Writing(self._execution, self._given, self._jobs, target, self._watch.count)
            if finished:
                written = self.writing.table(pa.Table.from_batches(shown, schema=self.schema))
            else:
                self._start()
                written = self._write_rest(self.writing) if taken else self.writing.whole()
        except BaseException as error:
            stopped = self._execution.stop_asked or not isinstance(error, Exception)
            self._end(State.STOPPED if stopped else State.FAILED)
            raise
        finally:
            self.writing = None
        self._shown, self._given_out = [], True
        self._watch.count(taken + written - self._watch.rows)
        self._end(State.FINISHED)
        return written

    def _write_rest(self, writing: Writing) -> int:
        """What is still to come of a query whose early rows were taken in part."""
        early = self._shown + self._early_batches()
        if self._execution.complete:
            return writing.table(pa.Table.from_batches(early, schema=self.schema))
        return writing.rest(early)

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
        """The rest of the early phase, as far as the memory has room for it."""
        self._start()
        batches, nbytes = [], 0
        for batch in self._execution.early_rows():
            self._watch.count(batch.num_rows)
            batches.append(batch)
            nbytes += batch.nbytes
            if nbytes > SENT_NBYTES:
                raise InputError(
                    "some rows were taken already, and those that were found beside them are too many to be held here "
                    "and sent to Spark; make the query again and write all of it, or iterate to the end"
                )
        return batches

    def _everything_again(self) -> None:
        """Begin anew: no more than a glance was taken so far, and what was shown is forgotten."""
        if self._running is not None:
            self._running.close()  # type: ignore[attr-defined]
            self._running = None
            self._jobs = self._execution.jobs = Jobs(self._jobs.session)
            if self._execution.stop_asked:
                self._jobs.cancel()
        self._shown, self._watch.rows = [], 0
        self._execution.counters.results[Phase.ARRIVING] = self._execution.counters.results[Phase.CLEANUP] = 0

    def _write_table(self, table: pa.Table, target: Target) -> int:
        """Rows of this process, from a query that has ended."""
        jobs = Jobs(self._jobs.session)  # its own are cancelled
        return Writing(self._execution, self._given, jobs, target, self._watch.count).table(table)
