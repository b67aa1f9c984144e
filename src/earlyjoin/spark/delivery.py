"""From a DataFrame to Arrow batches in this process, while Spark still works on the rest.

A public stream of Arrow does not exist on both kinds of session: ``toArrow`` gives all rows at the end, and
``toLocalIterator`` gives rows one by one, which takes a hundred times longer. So tasks pack their rows into
Arrow messages, one in a row, and those are iterated. Results that are known to be small are simply collected.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from earlyjoin.errors import EarlyJoinError
from earlyjoin.spark.jobs import Jobs
from earlyjoin.spark.types import output_batch

COLLECTED_BYTES = 64 * 2**20
_AHEAD = 4
"""Batches that wait for whoever iterates."""
_LOOK_S = 0.1


class Delivery:
    """Iterates the rows of a DataFrame; the work is done in a thread of its own, so that it can be stopped."""

    def __init__(self, frame: Any, schema: pa.Schema, jobs: Jobs, *, small: bool, stopping: Callable[[], bool]) -> None:
        self._frame = frame
        self._schema = schema
        self._jobs = jobs
        self._small = small
        self._stopping = stopping
        self._ready: queue.Queue[pa.RecordBatch | EarlyJoinError | None] = queue.Queue(_AHEAD)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches as they come, never empty."""
        thread = self._jobs.thread(self._fetch)
        thread.start()
        try:
            while not self._stopping():
                try:
                    arrived = self._ready.get(timeout=_LOOK_S)
                except queue.Empty:
                    continue
                if arrived is None:
                    return
                if isinstance(arrived, EarlyJoinError):
                    raise arrived
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
        while not self._stopping() and not self._jobs.cancelled:
            try:
                self._ready.put(item, timeout=_LOOK_S)
            except queue.Full:
                continue
            return True
        return False

    def _collected(self) -> Iterator[pa.RecordBatch]:
        yield from self._frame.toArrow().to_batches(max_chunksize=65536)

    def _streamed(self) -> Iterator[pa.RecordBatch]:
        packed = self._frame.mapInArrow(_packing(), "message binary")
        for row in packed.toLocalIterator(prefetchPartitions=True):
            yield from pa.ipc.open_stream(row[0])


def _packing() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    # A function inside a function travels as code: executors need Arrow, and nothing of this package.
    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        for batch in batches:
            message = pyarrow.BufferOutputStream()
            with pyarrow.ipc.new_stream(message, batch.schema) as writer:
                writer.write_batch(batch)
            packed = pyarrow.array([message.getvalue().to_pybytes()], pyarrow.binary())
            yield pyarrow.RecordBatch.from_arrays([packed], ["message"])

    return pack
