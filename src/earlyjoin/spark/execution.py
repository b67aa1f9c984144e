"""One run of a join on Spark: what is below the inputs, early phase, bulk; made when needed, closed together."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.errors import SourceError
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.spark.bulk.base import Bulk, Sides, choose_bulk, tag_name
from earlyjoin.spark.bulk.delivery import Delivery
from earlyjoin.spark.bulk.direct import direct_join
from earlyjoin.spark.bulk.driver_join import DriverJoin, left_to_spark, too_large
from earlyjoin.spark.bulk.equality import SparkJoin
from earlyjoin.spark.columns.keys import spark_alone
from earlyjoin.spark.columns.types import output_batch, output_frame, positional
from earlyjoin.spark.early.few_rows import Ahead
from earlyjoin.spark.early.looking import FIRST_ROWS
from earlyjoin.spark.early.pairing import Pairing
from earlyjoin.spark.early.phase import Early
from earlyjoin.spark.inspecting.plans import explained, shuffles
from earlyjoin.spark.inspecting.scans import Below, Computed, Files, Groups, Planned, Small, look, with_blocks
from earlyjoin.spark.inspecting.unchanged import Unchanged, local_files, nbytes_of
from earlyjoin.spark.jobs import Jobs
from earlyjoin.spark.options import SparkOptions
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.clock import Clock
from earlyjoin.state.counters import Counters, Phase
from earlyjoin.state.rows.sizes import wide_row_nbytes

_SMALL_INPUT_BYTES = 4 * 2**20
_COLLECTED_ROWS = 100_000
"""A limit up to this many rows is fetched in one piece, where the memory has room for them."""
_ALWAYS_FEW = 2_000
_BROADCASTS = "spark.sql.autoBroadcastJoinThreshold"
_LIKELY_SENT_NBYTES = 10 * 2**20
_SOON_S = 0.25
"""Small next to a shuffle, and enough for a few rows of a join without one."""
_NAMES = ("left", "right")


class Execution:
    """Everything that exists while a join runs on Spark."""

    def __init__(
        self, plan: Plan, condition: Condition, frames: Sequence[Any], options: SparkOptions, jobs: Jobs, clock: Clock
    ) -> None:
        self.plan = plan
        self.options = options
        self.jobs = jobs
        self.budget = Budget(MemoryLimit.parse(options.memory))
        self.counters = Counters()
        self.phase = Phase.ARRIVING
        self.stop_asked = False
        self.bulk_started = False
        self._given = frames
        self._condition = condition
        self._clock = clock
        self._early: Early | None = None
        self._outgrown: str | None = None
        self._below: list[Below] | None = None
        self._planned: list[Planned | Computed] | None = None
        self._early_rows: Generator[pa.RecordBatch] | None = None
        self._driver_join: DriverJoin | None = None
        self._bulk_name: str | None = None
        self.limit: int | None = None
        """All that will be asked for: so many rows, those given out already included; None: all there are."""
        self.unchanged = Unchanged(jobs)
        """Files that the early phase has read."""
        self._wanted = FIRST_ROWS
        self._whole: Generator[pa.RecordBatch] | None = None
        self._ahead = Ahead(jobs.session, plan.output.schema)
        self.complete = False
        """Was everything given out without a bulk?"""
        self.closed = False

    @cached_property
    def _frames(self) -> list[Any]:
        """The inputs with their columns named by position."""
        return [positional(frame, side) for side, frame in enumerate(self._given)]

    # What is below

    @property
    def below(self) -> list[Below]:
        """What each input is made of; looked up once, and only when it is asked for."""
        if self._below is None:
            self._below = [
                self.jobs.tagged(partial(with_blocks, frame, planned))
                for frame, planned in zip(self._frames, self.planned, strict=True)
            ]
        return self._below

    @property
    def planned(self) -> list[Planned | Computed]:
        """The same as far as the plans tell, which is sooner known."""
        if self._planned is None:
            self._planned = [self.jobs.tagged(partial(look, frame)) for frame in self._given]
        return self._planned

    @property
    def driver_join(self) -> DriverJoin | None:
        """What joins everything in this process, if the inputs are small."""
        if self._driver_join is None and self.no_driver_join is None:
            held, rest = self.budget.split(0.5)
            self._driver_join = DriverJoin(
                self.plan,
                self._given,  # Spark keeps the plan of a DataFrame that it has seen before
                Pairing(self.plan, self._condition, rest),
                self.jobs,
                held.account("small inputs"),
                plain=all(isinstance(side, Planned) and side.plain and not side.filtered for side in self.planned),
            )
        return self._driver_join

    @property
    def no_driver_join(self) -> str | None:
        """Why the inputs are not joined in the driver; None when they are."""
        if self._outgrown is None:
            if self.options.driver_nbytes == 0:
                self._outgrown = "it was switched off"
            elif self._planned is None and self.jobs.cancelled:
                return "the query was stopped before its inputs were looked at"
            else:
                self._outgrown = left_to_spark(self.plan) or self._too_large() or ""
        return self._outgrown or None

    def _too_large(self) -> str | None:
        return too_large(self.planned, self.budget.limit, self.options.driver_nbytes)

    @property
    def no_early(self) -> str | None:
        """Why there is no early phase; None when there is one."""
        if not self.options.early:
            return "it was switched off"
        if self.plan.how is JoinType.ANTI:
            return "which rows of an anti join stay alone shows at the end"
        if (alone := spark_alone(self.plan)) is not None:
            return alone
        if not self._spark_shuffles:
            return "Spark needs no shuffle for this join, so that its own first rows come at once"
        for name, below, part in zip(_NAMES, self.below, self._parts, strict=True):
            if isinstance(below, Computed) and part is None:
                return f"the {name} input has no blocks to choose from: {below.reason}"
        return None

    @property
    def _parts(self) -> list[Files | Small | Groups | None]:
        """Of each input, what can be read a part at a time; None when nothing can."""
        found: list[Files | Small | Groups | None] = []
        for side, below in enumerate(self.below):
            if not isinstance(below, Computed):
                found.append(below)
                continue
            # The early right side of a semi join is sent to every task: all groups would be.
            by_key = left_to_spark(self.plan) is not None and not (side == 1 and self.plan.how is JoinType.SEMI)
            keys = isinstance(self.below[1 - side], Files) and by_key
            nbytes = below.aggregated_nbytes
            found.append(Groups(nbytes) if keys and nbytes is not None else None)
        return found

    @cached_property
    def _spark_shuffles(self) -> bool:
        """Must Spark's own join shuffle before its first row? Joins without an equality are taken to."""
        own = self.jobs.tagged(lambda: self._own_join)
        shuffled = own is None or shuffles(self.jobs.tagged(lambda: explained(own)))
        if shuffled:
            self._ahead.cancel()
        return shuffled

    @property
    def early(self) -> Early | None:
        """The early phase, if there is one."""
        if self._early is None and self.no_early is None:
            held, rest = self.budget.split(0.5)
            self._early = Early(
                self.plan,
                self._frames,
                [part for part in self._parts if part is not None],
                Pairing(self.plan, self._condition, rest),
                self.jobs,
                held,
                self.unchanged,
                self._clock,
                self.options,
                self._stopping,
            )
            self._early.look.wanted = self._wanted
        return self._early

    # Running

    @property
    def joined_early(self) -> Early | None:
        """The early phase, if it has begun."""
        return self._early

    @property
    def started_driver_join(self) -> DriverJoin | None:
        """The join in the driver, if it has begun."""
        return self._driver_join

    @property
    def algorithm_so_far(self) -> str | None:
        """What joins the bulk, as far as it was decided already: asks Spark nothing."""
        if self._driver_join is not None:
            return self._driver_join.name
        return self._bulk_name

    @property
    def drawing(self) -> bool:
        """Have random blocks been joined?"""
        return self._early is not None and self._early.draws is not None and bool(self._early.draws.chosen[0])

    def run(self) -> Iterator[pa.RecordBatch]:
        """The result, batch by batch."""
        yield from self.early_rows()
        if not self.complete:
            yield from self._run_bulk()

    def early_rows(self) -> Iterator[pa.RecordBatch]:
        """What the early phase finds and was not taken yet."""
        if self._early_rows is None:
            self._early_rows = self._run_early()
        return self._early_rows

    def look_rows(self, more: int) -> Iterator[pa.RecordBatch]:
        """Rows that come without a shuffle, until so many more are found, or there are none to be had at little cost.

        ``early_rows`` goes on from there.
        """
        self.look_for(more)
        for batch in self._without_shuffle():
            self.counters.results[Phase.ARRIVING] += batch.num_rows
            yield batch

    def count_keys(self) -> None:
        """Estimate the size from the keys of random blocks, where there are any."""
        if self.driver_join is None and self.early is not None and self.early.draws is not None:
            self.early.draws.count_keys(self._stopping)

    def look_for(self, more: int) -> None:
        """Let the look go on until it has found so many more rows."""
        self._wanted = more
        if self._early is not None:
            self._early.look.wanted = self._early.look.found + more

    def _run_early(self) -> Generator[pa.RecordBatch]:
        for batch in self._without_shuffle():
            self.counters.results[Phase.ARRIVING] += batch.num_rows
            yield batch
        if not self.complete and self.early is not None and self.limit is None:
            for batch in self.early.drawn_rows():
                self.counters.results[Phase.ARRIVING] += batch.num_rows
                yield batch

    def whole_rows(self) -> Generator[pa.RecordBatch] | None:
        """All rows, joined in this process; None when the inputs are not small, or do not fit into memory after all."""
        if self._whole is not None:
            self._whole.close()
        whole = self.driver_join
        self._whole = whole.run(self._stopping) if whole is not None else None
        if whole is not None and self._whole is None:
            self._driver_join, self._outgrown = None, "the inputs do not fit into the memory of the driver"
        return self._whole

    def _without_shuffle(self) -> Iterator[pa.RecordBatch]:
        """What is joined in the driver, or looked for there; goes on where an earlier call was left."""
        if self._whole is None:
            self.whole_rows()
        if self._whole is not None:
            self.complete = True
            while (batch := next(self._whole, None)) is not None:  # whoever leaves this early does not close it
                yield batch
        elif self.early is not None:
            yield from self.early.look.rows()

    def _run_bulk(self) -> Iterator[pa.RecordBatch]:
        if self._stopping():
            return
        left = None if self.limit is None else self.limit - self.counters.results[Phase.ARRIVING]
        if left is not None and left <= 0:
            return
        self.phase, self.bulk_started = Phase.CLEANUP, True
        if self._early is not None:
            self._early.look.close()
        for batch in self.bulk_batches(left):
            self.counters.results[Phase.CLEANUP] += batch.num_rows
            yield batch

    def bulk_batches(self, most: int | None) -> Generator[pa.RecordBatch]:
        """The rows that the early phase has not given out, or ``most`` of them; the files must be what they were."""
        if most is not None and self._are_few(most):
            yield from self._few_rows(most)
            return
        frame = self.jobs.tagged(self.bulk_frame)
        small = most is None and self._inputs_are_small()
        # What is left of a limited delivery is cancelled, and the query may go on.
        jobs = self.jobs if most is None else Jobs(self.jobs.session)
        delivery = Delivery(frame, self.plan.output.schema, jobs, small=small, stopping=self._stopping, most=most)
        checked = False
        with closing(delivery.batches()) as batches:
            for batch in batches:
                if not checked:
                    self.unchanged.check()
                    checked = True
                yield batch.slice(0, most)
                most = None if most is None else most - batch.num_rows
                if most is not None and most <= 0:
                    break
        if not self._stopping():
            self.unchanged.check()

    def _are_few(self, rows: int) -> bool:
        """May so many be fetched in one piece? A part of the memory must have room for them."""
        limit = self.budget.limit.bytes
        most = _COLLECTED_ROWS if limit is None else limit // 4 // wide_row_nbytes(self.plan.output.schema)
        return rows <= max(_ALWAYS_FEW, min(_COLLECTED_ROWS, most))

    def _few_rows(self, most: int) -> Iterator[pa.RecordBatch]:
        sent = self._side_to_send()
        table = self._ahead.take(most, self._stopping)
        if table is None and not self._stopping():
            table = self._fetched(most, sent)
        self.unchanged.check()
        if table is not None:
            for batch in table.to_batches():
                yield output_batch(self.plan.output.schema, batch)

    def _fetched(self, most: int, sent: int | None) -> pa.Table | None:
        self._ahead.start(self.jobs.tagged(partial(self.bulk_frame, sent=sent)), most)
        try:
            return self._ahead.take(most, self._stopping)
        except SourceError:
            if sent is None or self._stopping():
                raise
            return self._fetched(most, None)  # it was not so small after all

    def fetch_ahead(self, most: int) -> None:
        """Ask Spark for a few rows of the whole, while its plan is looked at: where no shuffle is needed they will do.

        Planning a join takes as long as a small one itself. Only where Spark is likely to send a side to every task:
        jobs that are cancelled leave warnings in its log.
        """
        known = self._early is not None or "_spark_shuffles" in self.__dict__
        if known or not self._are_few(most) or not self.options.early or left_to_spark(self.plan) is None:
            return
        if self.plan.how is not JoinType.ANTI and not self._sends_nothing() and self._a_side_is_small():
            self._ahead.start(self.jobs.tagged(self.whole_frame), most)

    def fetched_ahead(self, most: int) -> pa.Table | None:
        """These rows, where they come so soon that the plan need not be looked at."""
        table = self._ahead.ready(most, _SOON_S)
        if table is None or self.stop_asked:
            return None
        batches = [output_batch(self.plan.output.schema, batch) for batch in table.to_batches()]
        return pa.Table.from_batches(batches, schema=self.plan.output.schema)

    @cached_property
    def _own_join(self) -> Any | None:
        """Everything by Spark's own join, as a lazy DataFrame; None where that is not what joins everything."""
        direct = direct_join(self.plan, self._given)
        if direct is not None:
            self._bulk_name = SparkJoin.name
            return direct
        bulk = self.bulk(everything=True)
        return output_frame(self.plan, bulk.rows()) if isinstance(bulk, SparkJoin) else None

    def whole_frame(self) -> Any:
        """Everything as a lazy DataFrame that is not for joining on: its columns may be those of the inputs."""
        return self._own_join if self._own_join is not None else self.bulk_frame(everything=True)

    def bulk_frame(self, *, everything: bool = False, sent: int | None = None) -> Any:
        """What the bulk gives, or ``everything``, as a lazy DataFrame.

        It may look at its inputs first, which is a job: of this query if whoever calls says so (``jobs.tagged``), else
        of the user, who may have the DataFrame after the query has ended.
        """
        return output_frame(self.plan, self.bulk(everything=everything, sent=sent).rows())

    def bulk(self, *, everything: bool = False, sent: int | None = None) -> Bulk:
        """What joins the rest; ``everything`` when nothing is to be left out; ``sent``: a side that is small."""
        chosen = choose_bulk(self.plan, self._sides(None if everything else self._early, sent), self.options)
        self._bulk_name = chosen.name
        return chosen

    def close(self) -> None:
        """Cancel whatever runs. Idempotent."""
        if not self.closed:
            self.closed = True
            self.jobs.cancel()
            self._ahead.cancel()
            early = self._early.look if self._early is not None else None
            for open_ in (self._early_rows, self._whole, early):
                if open_ is not None:
                    with suppress(ValueError):  # whoever is in the middle of it ends it
                        open_.close()

    def _sides(self, early: Early | None, sent: int | None = None) -> Sides:
        if early is None or not early.took:
            left, right = self._frames
            return Sides(left, right, sent=sent)
        tags = [early.tag(side).alias(tag_name(side)) for side in (0, 1)]
        left, right = (frame.select("*", tag) for frame, tag in zip(self._frames, tags, strict=True))
        return Sides(left, right, early_right=lambda: early.tagged_rows(1).select("*", tags[1]), sent=sent)

    def _side_to_send(self) -> int | None:
        """The side that is known to be small, unless whoever set Spark up wants none to be sent."""
        sent = self._early.side_to_send() if self._early is not None else None
        return None if sent is None or self._sends_nothing() else sent

    def _sends_nothing(self) -> bool:
        """Has whoever set Spark up switched broadcasts off?"""
        return str(self.jobs.session.conf.get(_BROADCASTS)).startswith("-")

    def _a_side_is_small(self) -> bool:
        """Is one of the inputs made of few bytes, as far as can be told without a plan?"""
        if self.jobs.connect:  # its files are elsewhere
            return False
        return any(self.jobs.tagged(partial(_is_small, frame)) for frame in self._given)

    def _inputs_are_small(self) -> bool:
        """May the result be small?"""
        sizes = [below.nbytes for below in self.below]
        return all(size is not None and size <= _SMALL_INPUT_BYTES for size in sizes)

    def _stopping(self) -> bool:
        return self.stop_asked


def _is_small(frame: Any) -> bool:
    """Are the files of a DataFrame, if it has any, so small that Spark is likely to send it to every task?"""
    files = local_files(frame)
    return files is not None and sum(map(nbytes_of, files)) <= _LIKELY_SENT_NBYTES
