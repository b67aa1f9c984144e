"""The input buffer: a reader thread for each source, batches waiting inside the budget, back-pressure when it is full.

Each side has a share of its own, so that a fast input cannot keep a slow one out. A batch counts from the moment it
is put in until the operator is done with it. Pull-driving takes from the side that the reading strategy names;
push-driving takes what came first.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from earlyjoin.errors import EarlyJoinError, SourceError
from earlyjoin.local.sources.base import BatchSizes, Source
from earlyjoin.state.budget import Account, Budget, MemoryLimit, row_too_large
from earlyjoin.state.clock import Clock
from earlyjoin.state.rows.sizes import batch_nbytes

_STOP_CHECK_S = 0.1
"""A wait checks this often whether to stop: a signal handler can set a flag, but must not take a lock."""
_FIRST_WAIT_S = 1.0
"""How long a join waits for the first batches of inputs of which nobody knows how wide their rows are."""
_STOP_WAIT_S = 0.5
"""How long the end of a query waits for its readers, all of them together."""


@dataclass(slots=True)
class Arrival:
    """A batch of one side, or its end (``batch`` is None), or its failure behind all that came before."""

    side: int
    batch: pa.RecordBatch | None
    order: int = 0
    nbytes: int = 0
    failure: EarlyJoinError | None = None


class Inputs(Protocol):
    """Where the driver gets batches from."""

    def take(self, side: int | None, wait_s: float | None) -> Arrival | None:
        """The next arrival of ``side`` (None: of any), or None after ``wait_s`` seconds of silence (None: wait).

        Also None when the query is to stop.
        """
        ...

    def waiting(self, side: int | None) -> bool:
        """Could ``take`` return something of ``side`` (None: of any) at once?"""
        ...

    def release(self, arrival: Arrival) -> None:
        """The operator is done with this batch."""
        ...

    def close(self) -> None:
        """Stop reading. Idempotent."""
        ...


class ThreadedInputs:
    """Reads every source with a thread of its own."""

    def __init__(
        self,
        sources: Sequence[Source],
        clock: Clock,
        sizes: Sequence[BatchSizes],
        starts: Sequence[int],
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._clock = clock
        self._stopping = stopping
        self._accounts: list[Account] = []
        self._parts: list[Budget] = []
        self._widths: dict[int, int] = {}
        """Bytes of a row of the first batch of each side that has come; 0 of one that ended or failed."""
        self._changed = threading.Condition()
        self._queues: list[deque[Arrival]] = [deque() for _ in sources]
        self._stopped = False
        self._order = 0
        self._threads = [
            threading.Thread(
                target=self._read, args=(side, source, size, start), name=f"earlyjoin-read-{side}", daemon=True
            )
            for side, (source, size, start) in enumerate(zip(sources, sizes, starts, strict=True))
        ]
        for thread in self._threads:
            thread.start()

    def first_widths(self, sides: Sequence[int]) -> dict[int, int]:
        """About what a row takes, by the first batch of each of some sides; of those that wait long, nothing."""
        deadline = time.monotonic() + _FIRST_WAIT_S
        with self._changed:
            while not self._widths.keys() >= set(sides) and not self._stopping():
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(min(left, _STOP_CHECK_S))
            return dict(self._widths)

    def open(self, budget: Budget) -> None:
        """From now on batches may come in, inside this budget."""
        with self._changed:
            self._parts = _parts(budget, len(self._queues))
            self._accounts = [part.account("input buffer") for part in self._parts]
            self._changed.notify_all()

    def _announce_width(self, side: int, batch: pa.RecordBatch | None) -> None:
        """Tell how wide the rows of a side are, and wait until the memory is shared out by that."""
        with self._changed:
            self._widths[side] = batch_nbytes(batch) // max(1, batch.num_rows) if batch is not None else 0
            self._changed.notify_all()
            while not self._accounts and not self._stopped:
                self._changed.wait(_STOP_CHECK_S)

    def take(self, side: int | None, wait_s: float | None) -> Arrival | None:
        """See :class:`Inputs`."""
        deadline = None if wait_s is None else self._clock.now() + wait_s
        with self._changed:
            while True:
                queue = self._first_filled(side)
                if queue is not None:
                    return _checked(queue.popleft())
                left = None if deadline is None else deadline - self._clock.now()
                if (left is not None and left <= 0) or self._stopping():
                    return None
                self._changed.wait(_STOP_CHECK_S if left is None else min(left, _STOP_CHECK_S))

    def waiting(self, side: int | None) -> bool:
        """See :class:`Inputs`."""
        with self._changed:
            return self._first_filled(side) is not None

    def release(self, arrival: Arrival) -> None:
        """See :class:`Inputs`."""
        if arrival.batch is not None:
            self._accounts[arrival.side].release(arrival.nbytes, arrival.batch.num_rows)
            with self._changed:
                self._changed.notify_all()

    def close(self) -> None:
        """See :class:`Inputs`."""
        self._stop()
        with self._changed:
            for queue in self._queues:
                queue.clear()
            for account in self._accounts:
                account.clear()

    def _stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        deadline = time.monotonic() + _STOP_WAIT_S
        for thread in self._threads:
            # A source that waits for a network does not see the stop before its next batch: do not wait for it.
            thread.join(timeout=max(0.0, deadline - time.monotonic()))

    def _first_filled(self, side: int | None) -> deque[Arrival] | None:
        """The queue to take from. Only with the condition held: another thread may clear the queues."""
        if side is not None:
            return self._queues[side] or None
        filled = [queue for queue in self._queues if queue]
        return min(filled, key=lambda queue: queue[0].order) if filled else None

    def _read(self, side: int, source: Source, size: BatchSizes, start: int) -> None:
        try:
            for batch in source.batches(size, start):
                if side not in self._widths:
                    self._announce_width(side, batch)
                    if self._stopped:
                        return
                for piece in self._pieces(side, source, batch):
                    if not self._put(side, piece):
                        return
            self._put(side, None)
        except EarlyJoinError as error:
            self._put(side, None, error)
        except BaseException as error:  # also SystemExit: a reader that dies silently would leave the join waiting
            failure = SourceError(f"input {source.name!r} failed: {type(error).__name__}: {error}")
            failure.__cause__ = error
            self._put(side, None, failure)

    def _pieces(self, side: int, source: Source, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The batch cut so that each piece fits half of the side's share: one is joined while the next is read."""
        start = 0
        while start < batch.num_rows:
            limit = self._accounts[side].limit
            most = limit.rows // 2 if limit.rows is not None else None
            count = batch.num_rows - start
            if most is not None:
                count = min(count, max(1, most))
            piece = batch.slice(start, count)
            while limit.bytes is not None and 2 * batch_nbytes(piece) > limit.bytes and count > 1:
                count //= 2
                piece = batch.slice(start, count)
            if limit.bytes is not None and batch_nbytes(piece) > limit.bytes:
                raise row_too_large(batch_nbytes(piece), self._parts[side], f"reading {source.name!r}")
            yield piece
            start += count

    def _put(self, side: int, batch: pa.RecordBatch | None, failure: EarlyJoinError | None = None) -> bool:
        """Wait for room and put the batch in; False when reading is to stop."""
        if side not in self._widths:
            self._announce_width(side, batch)
        nbytes = batch_nbytes(batch) if batch is not None else 0
        with self._changed:
            while batch is not None and not self._stopped:
                if self._accounts[side].try_reserve(nbytes, batch.num_rows):
                    break
                if batch.num_rows > 1 and _exceeds(self._accounts[side].limit, nbytes, batch.num_rows):
                    half = batch.num_rows // 2  # the memory has become smaller while it waited
                    return self._put(side, batch.slice(0, half)) and self._put(side, batch.slice(half))
                self._changed.wait(_STOP_CHECK_S)
            if self._stopped:
                return False
            self._order += 1
            self._queues[side].append(Arrival(side, batch, self._order, nbytes, failure))
            self._changed.notify_all()
            return True


def _exceeds(limit: MemoryLimit, nbytes: int, rows: int) -> bool:
    return rows > limit.rows if limit.rows is not None else nbytes > (limit.bytes or 0)


def _checked(arrival: Arrival) -> Arrival:
    if arrival.failure is not None:
        raise arrival.failure
    return arrival


def _parts(budget: Budget, sides: int) -> list[Budget]:
    """An equal part of the input budget for each side."""
    parts = []
    for side in range(sides, 1, -1):
        part, budget = budget.split(1 / side)
        parts.append(part)
    return [*parts, budget]
