"""A query that gives out batches, whatever engine runs it: iterate, head, limit, hand over, stop, close.

An engine adds how the work is done (its *execution*), what it knows of the size, and what only it can do.
"""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from importlib import import_module
from operator import index
from typing import Any, ClassVar, Protocol, Self, SupportsIndex

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.query.describing import Portrait
from earlyjoin.query.life import Progress, State, Stopwatch, summary
from earlyjoin.state.budget import Budget
from earlyjoin.state.clock import Clock
from earlyjoin.state.counters import Counters

MOST_ROWS = 2**63 - 1
"""More than Arrow counts: a limit beyond is none."""


class Work(Protocol):
    """What an engine does for a query."""

    stop_asked: bool
    """Has somebody asked to stop? It looks here often."""
    counters: Counters
    budget: Budget

    def run(self) -> Iterator[pa.RecordBatch]:
        """The result, batch by batch."""
        ...

    def close(self) -> None:
        """Give everything back. Idempotent."""
        ...


class RunningQuery(ABC):
    """A join that is made but not yet run: iterating it gives the joined rows, batch by batch, once.

    A subclass makes its work and hands it to ``_begin``.
    """

    engine: ClassVar[str]
    cancelling_fails: ClassVar[bool] = False
    """Does work that is cancelled raise an error? Then one that comes after ``stop`` is the end that was wanted."""

    def __init__(self, clock: Clock) -> None:
        self.state = State.NEW
        self._clock = clock
        self._watch = Stopwatch(clock)
        self._shown: list[pa.RecordBatch] = []
        self._running: Iterator[pa.RecordBatch] | None = None
        self._stepping = threading.Lock()
        self._given_out = False
        """Has somebody taken the rows to their end?"""
        self._stream: object | None = None
        """The Arrow stream that has taken rows: nobody else gets any from then on."""

    def _begin(self, work: Work) -> None:
        self._work = work
        # A query that is dropped without being closed must not keep its readers, jobs and files.
        self._finalizer = weakref.finalize(self, work.close)

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the result."""

    @property
    @abstractmethod
    def algorithm(self) -> str:
        """The name of the algorithm in use."""

    @property
    @abstractmethod
    def progress(self) -> Progress:
        """How far the query is. May be asked from another thread."""

    @abstractmethod
    def _portrait(self) -> Portrait:
        """What is known about it without reading anything, or asking an engine."""

    @abstractmethod
    def _estimated(self) -> dict[str, Any] | None:
        """The estimate of a query that has not finished."""

    @property
    def estimate(self) -> dict[str, Any] | None:
        """Size of the whole result: ``rows``, the interval ``low`` to ``high``, and its ``confidence``.

        None while nothing can be said; ``estimate_reason`` tells why. Exact once the query has finished.
        """
        if self.state is State.FINISHED:
            rows = self._watch.rows
            return {"rows": rows, "low": rows, "high": rows, "confidence": 1.0}
        return self._estimated()

    @property
    def estimates(self) -> dict[str, dict[str, Any] | None]:
        """The aggregates that were asked, by name: ``value``, ``low``, ``high`` and ``confidence`` of each.

        None while nothing can be said. Exact once the query has finished; then None is the mean of no rows.
        """
        return {}

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The result as it is found. Iterating again goes on where the last iteration stopped.

        Rows are given out once: when all were, after ``stop``, or when an Arrow stream has begun to take them,
        iterating again is an error.
        """
        return self._batches()

    def _batches(self, stream: object | None = None) -> Iterator[pa.RecordBatch]:
        self._check_untaken(stream)
        while (batch := self._next(stream=stream)) is not None:
            yield batch
        self._given_out = True

    def head(self, rows: int) -> pa.Table:
        """The first rows, as soon as so many are found; iterating afterwards gives them out again."""
        rows = count_of(rows, "head")
        self._check_open()
        taken: list[pa.RecordBatch] = []
        while sum(batch.num_rows for batch in taken) < rows and (batch := self._next(stream=self._stream)) is not None:
            taken.append(batch)
        self._shown = taken + self._shown
        return pa.Table.from_batches(taken, schema=self.schema).slice(0, rows)

    def to_arrow(self) -> pa.Table:
        """All rows that are still to come, as a table."""
        return pa.Table.from_batches(list(self), schema=self.schema)

    def to_pandas(self, **options: Any) -> Any:
        """All rows that are still to come, as a pandas DataFrame; options are those of ``pyarrow.Table.to_pandas``."""
        self._check_open()
        _need("pandas", "to_pandas()")
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> Any:
        """All rows that are still to come, as a Polars DataFrame."""
        self._check_open()
        return _need("polars", "to_polars()").from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The result as an Arrow stream, for whatever reads such: DuckDB, Polars, ``pyarrow.table(query)``.

        Batches are joined when they are asked for. An error on the way reaches the reader. A stream that is
        dropped after its first batch and before its last ends the query. Of several streams the first that is read gets
        the rows, and reading another is an error, as in a self join of one query. Rows come cast to a
        ``requested_schema`` of the same columns; any other is refused.
        """
        self._check_open()
        reader = pa.RecordBatchReader.from_batches(self.schema, self._streamed())
        if requested_schema is None:
            return reader.__arrow_c_stream__()
        try:
            return reader.__arrow_c_stream__(requested_schema)
        except (pa.ArrowException, ValueError, TypeError) as error:
            names = ", ".join(f"{field.name} {field.type}" for field in self.schema)
            raise InputError(
                f"the rows of this query cannot be given as the requested schema: {error}; they have {names}"
            ) from error

    def _streamed(self) -> Generator[pa.RecordBatch]:
        stream = object()
        with self._stepping:
            self._check_untaken(stream)
            self._stream = stream
        try:
            yield from self._batches(stream)
        finally:
            self.close()

    def __repr__(self) -> str:
        return self._portrait().line()

    def _repr_html_(self) -> str:
        return self._portrait().html()

    def limited(self, rows: int | None) -> Iterator[pa.RecordBatch]:
        """Like iterating, but stops the query once so many rows were given out."""
        self._check_untaken()
        left = None if rows is None else count_of(rows, "limited")
        try:
            while left is None or left > 0:
                batch = self._next(left)
                if batch is None:
                    self._given_out = True
                    return
                if left is not None:
                    left -= batch.num_rows
                yield batch
        finally:
            if (
                rows is not None and self._stream is None
            ):  # also when it is left before: the last batch may have been cut off
                self.stop()

    def interrupt(self) -> None:
        """Ask the query to stop, and return at once: the iteration ends soon, also when it waits for input.

        Takes no lock and frees nothing, so that a signal handler may call it.
        """
        self._work.stop_asked = True

    def stop(self) -> None:
        """End the query after the batch in hand. May be called from another thread; what was given out stays valid."""
        self.interrupt()
        # An iteration in the middle of a batch ends the query itself when it sees the flag.
        if self._stepping.acquire(blocking=False):
            try:
                self._end(State.STOPPED)
            finally:
                self._stepping.release()

    def close(self) -> None:
        """Give everything back. Idempotent; a running query is stopped."""
        self.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def summary(self) -> dict[str, Any]:
        """What was done, as plain values (see the README for the fields)."""
        return summary(
            engine=self.engine,
            algorithm=self.algorithm,
            watch=self._watch,
            counters=self._work.counters,
            budget=self._work.budget,
            estimate=self.estimate,
            estimates=self.estimates,
        )

    def _check_open(self) -> None:
        """Refuse to pretend: a query that has ended has no rows, which is not the same as a result without rows."""
        if self.state in (State.NEW, State.RUNNING) or (self.state is State.FINISHED and not self._given_out):
            return
        raise InputError(
            {
                State.FINISHED: "all rows of this query were given out already; "
                "make the query again to have them once more, or keep them with to_arrow()",
                State.PAUSED: "the query was paused; go on with earlyjoin.resume(directory)",
                State.FAILED: "the query has failed and gives no more rows; make it again",
            }.get(self.state, "the query was stopped and gives no more rows; make it again to have all of them")
        )

    def _check_untaken(self, stream: object | None = None) -> None:
        """Refuse to share the rows with a stream that takes them, unless it is that stream who asks."""
        self._check_open()
        if self._stream is not None and self._stream is not stream:
            raise InputError(
                "rows of this query were taken already, by an Arrow stream that is being read; "
                "make the query again to have them once more, or keep them with to_arrow()"
            )

    def _next(self, most: int | None = None, *, stream: object | None = None) -> pa.RecordBatch | None:
        """The next batch: one that was only shown, or a new one, cut to ``most`` rows; None when there is no more."""
        with self._stepping:
            if self._stream is not stream:
                self._check_untaken(stream)
            if self._shown:
                return self._shown.pop(0).slice(0, most)
            return self._step(most) if self.state in (State.NEW, State.RUNNING) else None

    def _step(self, most: int | None) -> pa.RecordBatch | None:
        self._start()
        if self._running is None:
            self._running = self._work.run()
        try:
            batch = None if self._work.stop_asked else next(self._running, None)
        except BaseException as error:
            if self._end_after(error):
                return None
            raise
        if batch is None:
            self._end(State.STOPPED if self._work.stop_asked else State.FINISHED)
        else:
            batch = batch.slice(0, most)
            self._watch.count(batch.num_rows)
        return batch

    def _end_after(self, error: BaseException) -> bool:
        """End the query because of an error; True when that is the end that somebody has asked for."""
        if not isinstance(error, Exception):
            self._end(State.STOPPED)
            return False
        cancelled = self.cancelling_fails and self._work.stop_asked
        self._end(State.STOPPED if cancelled else State.FAILED)
        return cancelled

    def _start(self) -> None:
        self._watch.start()
        self.state = State.RUNNING

    def _end(self, state: State) -> None:
        if self.state in (State.NEW, State.RUNNING):
            self.state = state
            self._watch.stop()
            try:
                if self._running is not None:
                    self._running.close()  # type: ignore[attr-defined]
            finally:
                self._finalizer()


def count_of(rows: object, what: str) -> int:
    """A number of rows that somebody asks for, no larger than any result can be; or InputError."""
    if not isinstance(rows, SupportsIndex) or isinstance(rows, bool) or index(rows) < 0:
        raise InputError(f"{what} needs a whole number of rows, 0 or more; got {rows!r}")
    return min(index(rows), MOST_ROWS)


def _need(package: str, what: str) -> Any:
    """A package that only some people have."""
    try:
        return import_module(package)
    except ImportError as error:
        raise InputError(
            f"{what} needs {package}, which cannot be imported ({error}); install it with 'pip install {package}', "
            "or take the rows with to_arrow()"
        ) from error
