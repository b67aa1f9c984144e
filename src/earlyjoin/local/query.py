"""A join in this process. Only this engine can pause, change the memory, and read otherwise while it runs.

::

    new ──iterate──▶ running ──▶ finished
                       │  ├─ stop()  ──▶ stopped     what was given out stays valid
                       │  ├─ pause() ──▶ paused      goes on from the directory with ``resume``
                       │  └─ error   ──▶ failed
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from earlyjoin.algorithms.choice import Choice, choose
from earlyjoin.algorithms.planning import plan_for
from earlyjoin.errors import InputError
from earlyjoin.local import explaining, pausing
from earlyjoin.local.execution import LocalExecution, row_widths
from earlyjoin.local.options import JoinOptions
from earlyjoin.local.outputs.sinks import open_sink
from earlyjoin.local.sources.adapting import adapted
from earlyjoin.local.sources.base import Source
from earlyjoin.local.sources.columnar.widening import carried, widened
from earlyjoin.local.sources.piping.once import refuse_shared
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.predicates.multiway import MultiEqual
from earlyjoin.query.life import Progress, State
from earlyjoin.query.query import Query
from earlyjoin.state.budget import MemoryLimit
from earlyjoin.state.clock import Clock, RealClock
from earlyjoin.state.snapshot import Snapshot


class LocalQuery(Query):
    """A join of two inputs, or of many, in this process."""

    engine = "local"

    def __init__(
        self,
        sources: Sequence[Source],
        condition: Condition | MultiEqual,
        options: JoinOptions | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(clock if clock is not None else RealClock())
        self.options = options if options is not None else JoinOptions()
        refuse_shared(sources)
        given = adapted([widened(source) for source in sources], condition)
        self.sources = tuple(carried(source) for source in given)
        self.condition = condition
        schemas = [source.schema for source in given]
        self.plan = plan_for(condition, schemas, how=self.options.how, suffixes=self.options.suffixes)
        self.choice = self._choose(row_widths(self.sources))
        again = self._choose_again if self.options.algorithm == "auto" else None
        self._execution = LocalExecution(self.plan, self.sources, self.options, self.choice.name, self._clock, again)
        self._begin(self._execution)

    @property
    def algorithm(self) -> str:
        """The name of the algorithm in use."""
        return self.choice.name

    @property
    def progress(self) -> Progress:
        """How far the query is. May be asked from another thread."""
        execution = self._execution
        return Progress(
            rows_out=self._watch.rows,
            rows_in=tuple(execution.rows_taken),
            rows_expected=tuple(source.rows_hint for source in self.sources),
            phase=execution.operator.phase,
            seconds=self._watch.elapsed_s,
            memory_fraction=execution.budget.fraction_used,
            finished=self.state is State.FINISHED,
            estimate=self.estimate,
            estimates=self.estimates,
        )

    def _algorithm_so_far(self) -> str:
        return self.algorithm

    def _estimated(self) -> dict[str, Any] | None:
        return self._execution.estimating.get(self._watch.rows)

    @property
    def estimate_reason(self) -> str | None:
        """Why ``estimate`` is None; None when it is not."""
        return None if self.state is State.FINISHED else self._execution.estimating.reason

    @property
    def estimates(self) -> dict[str, dict[str, Any] | None]:
        """The aggregates that were asked, by name: ``value``, ``low``, ``high`` and ``confidence`` of each.

        None while nothing can be said. Exact once the query has finished; then None is the mean of no rows.
        """
        return self._execution.estimating.aggregates(finished=self.state is State.FINISHED)

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        overwrite: bool = False,
        limit: int | None = None,
        **options: Any,
    ) -> int:
        """Write the result to a file (.parquet, .csv, .arrow, .jsonl) and return the number of rows.

        ``format`` ("parquet", "csv", "arrow", "json") is for names that do not tell it. The file appears under its name
        only when it is complete. Interrupted by the keyboard, what was found is kept beside it as ``NAME.partial.EXT``
        (where that exists and ``overwrite`` is not given, as ``NAME.partial-2.EXT``, and so on); after an error nothing
        is left. If either name is an input, or would become a part of one, that is an error.
        """
        if options:
            names = ", ".join(f"{name}=" for name in options)
            raise self._refusal(f"write(..., {names})", "such options are those of Spark's writers")
        self._check_untaken()
        sink = open_sink(path, self.schema, overwrite=overwrite, format=format, inputs=self.sources)
        written = 0
        try:
            for batch in self.limited(limit):
                sink.write(batch)
                written += batch.num_rows
            sink.commit()
        except KeyboardInterrupt:
            kept = sink.keep_partial()
            self.close()
            raise KeyboardInterrupt(f"{written:,} rows found so far are kept in {str(kept)!r}") from None
        except BaseException:
            sink.abort()
            self.close()
            raise
        return written

    def switch_reading(self, *rows: int) -> None:
        """From now on read so many rows of the first input for so many of the second (and of the third, …)."""
        execution = self._execution
        if execution.reading is None:
            raise InputError("the reading ratio can be switched only where inputs are pulled; these push")
        if len(rows) != self.plan.sides:
            raise InputError(f"switch_reading needs {self.plan.sides} numbers, one for each input, got {len(rows)}")
        execution.reading.switch(rows, execution.rows_taken)

    def set_memory(self, memory: str | int | MemoryLimit) -> None:
        """Change the memory of a running query: "32MB", or rows where it was given in rows.

        More is there at once. Less is kept to as soon as the operator has given back what is too much, which it begins
        with its next step; until then the old limit holds. An algorithm that cannot give back refuses (InputError).
        Call it between two batches, in the thread that iterates.
        """
        limit = MemoryLimit.parse(memory)
        if not self._stepping.acquire(blocking=False):
            raise InputError("memory can be changed between two batches, not while another thread waits for one")
        try:
            if self.state not in (State.NEW, State.RUNNING):
                raise InputError(f"the memory of a query that is {self.state} cannot be changed")
            self._execution.set_memory(limit)
        finally:
            self._stepping.release()

    def pause(self, directory: str | os.PathLike[str]) -> None:
        """Save the whole state into a new directory and end this query; ``resume`` goes on from there.

        Inputs must be replayable (files, tables): an iterator cannot be asked again for what was read and not joined.
        Call it between two batches, in the thread that iterates. If saving fails, the query goes on as it was.
        """
        if not self._stepping.acquire(blocking=False):
            raise InputError("a query can be paused between two batches, not while another thread waits for one")
        try:
            if self.state not in (State.NEW, State.RUNNING):
                raise InputError(f"a query that is {self.state} cannot be paused")
            pausing.check_replayable(self.sources)
            unbuilt = self._execution.unbuilt()
            snapshot = pausing.save(self, self._execution, self._watch, self._shown, unbuilt)
            snapshot.values["estimating"] = self._execution.estimating.to_values()
            snapshot.save(directory)
            self._end(State.PAUSED)
        finally:
            self._stepping.release()

    def restore(self, snapshot: Snapshot) -> None:
        """Take over a paused query's state; this one must be new and have the same inputs and condition."""
        self._shown = pausing.load(snapshot, self._execution, self._watch)
        self._execution.estimating.go_on(snapshot.values["estimating"])

    def explain(self) -> str:
        """What will be done and why, in words."""
        return explaining.explain(self, self._execution)

    def _choose_again(self, widths: Sequence[int]) -> str:
        """The algorithm, now that it is known how wide rows are."""
        self.choice = self._choose(widths)
        return self.choice.name

    def _choose(self, widths: Sequence[int]) -> Choice:
        if self.options.algorithm != "auto":
            return Choice(self.options.algorithm, "as asked")
        sizes = [source.most() for source in self.sources]
        known = [size for size in sizes if size is not None]
        nbytes, rows = (sum(size[at] for size in known) if len(known) == len(sizes) else None for at in (0, 1))
        return choose(self.plan, MemoryLimit.parse(self.options.memory), nbytes, rows, widths)
