"""From a DataFrame to Arrow batches in this process, while Spark still works on the rest.

A public stream of Arrow does not exist on both kinds of session: ``toArrow`` gives all rows at the end, and
``toLocalIterator`` gives rows one by one, which takes a hundred times longer. So tasks pack their rows into
Arrow messages or files (:mod:`earlyjoin.spark.bulk.spooling`), and those are iterated. Results that may be small are
collected up to a number of rows: if there are no more, that was all, and no Python process had to be started.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pyarrow as pa

from earlyjoin.errors import EarlyJoinError, SourceError
from earlyjoin.spark.bulk.spooling import Spool
from earlyjoin.spark.columns.arrow_forms import collected
from earlyjoin.spark.columns.types import output_batch
from earlyjoin.spark.jobs import Jobs
from earlyjoin.state.rows.sizes import wide_row_nbytes

COLLECTED_NBYTES = 16 * 2**20
"""Results up to about this size are fetched in one piece."""
_AHEAD = 4
"""Batches that wait for the reader."""
_AHEAD_NBYTES = 8 * 2**20
"""No further batch waits beside so much: wide rows make large ones."""
_LOOK_S = 0.1
_YIELD_S = 0.005


class Delivery:
    """Iterates the rows of a DataFrame; the work is done in a thread of its own, so that it can be stopped."""

    def __init__(
        self,
        frame: Any,
        schema: pa.Schema,
        jobs: Jobs,
        *,
        small: bool,
        stopping: Callable[[], bool],
        most: int | None = None,
    ) -> None:
        """Of all rows, or of no more than ``most`` from each task: Spark's own limit would wait for all tasks."""
        self._frame = frame
        self._most = most
        self._schema = schema
        self._jobs = jobs
        self._small = small
        self._stopping = stopping
        self._ready: queue.Queue[pa.RecordBatch | EarlyJoinError | None] = queue.Queue(_AHEAD)
        self._waiting_nbytes = 0
        self._lock = threading.Lock()

    def batches(self) -> Generator[pa.RecordBatch]:
        """Batches as they come, never empty."""
        thread = self._jobs.thread(self._fetch, self._put)
        thread.start()
        try:
            while not self._stopping():
                try:
                    arrived = self._ready.get(timeout=_LOOK_S)
                except queue.Empty:
                    if not thread.is_alive() and self._ready.empty():
                        raise SourceError("the query was stopped") from None
                    continue
                if arrived is None:
                    thread.join()
                    return
                if isinstance(arrived, EarlyJoinError):
                    raise arrived
                self._book(-arrived.nbytes)
                yield output_batch(self._schema, arrived)
        finally:
            if thread.is_alive():
                self._jobs.cancel()

    def _fetch(self) -> None:
        try:
            for batch in self._collected() if self._small else self._streamed():
                if batch.num_rows and not self._put(batch):
                    return
            self._put(None)
        except Exception as error:
            self._put(error if isinstance(error, EarlyJoinError) else self._jobs.failure(error))

    def _put(self, item: pa.RecordBatch | EarlyJoinError | None) -> bool:
        nbytes = item.nbytes if isinstance(item, pa.RecordBatch) else 0
        while not self._stopping() and not self._jobs.cancelled:
            if nbytes and self._waiting_nbytes and self._waiting_nbytes + nbytes > _AHEAD_NBYTES:
                time.sleep(_YIELD_S)
                continue
            try:
                self._ready.put(item, timeout=_LOOK_S)
            except queue.Full:
                continue
            self._book(nbytes)
            return True
        return False

    def _book(self, nbytes: int) -> None:
        with self._lock:
            self._waiting_nbytes += nbytes

    def _collected(self) -> Iterator[pa.RecordBatch]:
        """A result that may be small: so many rows are fetched, and all of it otherwise if there are more."""
        most = max(1, COLLECTED_NBYTES // wide_row_nbytes(self._schema))
        table = collected(self._frame.limit(most + 1))
        if len(table) <= most:
            yield from table.to_batches(max_chunksize=65536)
        else:
            del table
            yield from self._streamed()

    def _streamed(self) -> Iterator[pa.RecordBatch]:
        with Spool() as spool:
            for row in spool.sent(self._frame, self._most).toLocalIterator(prefetchPartitions=self._most is None):
                yield from spool.batches(row)
