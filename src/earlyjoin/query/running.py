"""How a query runs, whatever engine does the work: step by step, once, until somebody or something ends it.

::

    NEW ──first step──▶ RUNNING ──no more batches──▶ FINISHED
                          │  ├─ stop_asked ──▶ STOPPED
                          │  └─ error      ──▶ FAILED
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Generator, Iterator
from operator import index
from typing import ClassVar, Protocol, Self, SupportsIndex

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.query.life import State, Stopwatch
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


class Running:
    """Takes batches from an engine's work, one at a time, and knows who may have them.

    A subclass makes its work and hands it to ``_begin``.
    """

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

    def _batches(self, stream: object | None = None) -> Iterator[pa.RecordBatch]:
        self._check_untaken(stream)
        while (batch := self._next(stream=stream)) is not None:
            yield batch
        self._given_out = True

    def _streamed(self) -> Generator[pa.RecordBatch]:
        stream = object()
        with self._stepping:
            self._check_untaken(stream)
            self._stream = stream
        try:
            yield from self._batches(stream)
        finally:
            self.close()

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
        """Refuse to share the rows with a stream that takes them, unless it is that stream that asks."""
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
