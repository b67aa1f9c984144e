"""A slow, bursty or dying network in front of any source: the same rows, but in packets that arrive in their time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa

from earlyjoin.errors import InputError, SourceError
from earlyjoin.local.sources.arrivals import Arrivals
from earlyjoin.local.sources.base import BatchSizes, Source
from earlyjoin.local.sources.slicing import Cutter

FIRST_GAPS = 1024


class Waiting(Protocol):
    """The part of a clock that a simulated network needs."""

    def now(self) -> float:
        """Seconds since some fixed moment."""

    def sleep(self, seconds: float) -> None:
        """Return that much later."""


class RealTime:
    """Time as it passes."""

    def now(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return that much later."""
        time.sleep(seconds)


class SimulatedSource(Source):
    """The rows of ``inner`` in packets of ``rows_per_packet`` that arrive as ``arrivals`` and ``seed`` say.

    Batch size changes how a packet is cut, never when it arrives. With ``fail_at_packet`` the network dies once that
    many packets have arrived: the next one is a :class:`SourceError`.
    """

    live = True

    def __init__(
        self,
        inner: Source,
        arrivals: Arrivals,
        *,
        rows_per_packet: int = 1000,
        seed: int = 0,
        fail_at_packet: int | None = None,
        clock: Waiting | None = None,
    ) -> None:
        if rows_per_packet < 1:
            raise InputError(f"{inner.name}: rows_per_packet must be at least 1, got {rows_per_packet}")
        self.inner = inner
        self.arrivals = arrivals
        self.rows_per_packet = rows_per_packet
        self.seed = seed
        self.fail_at_packet = fail_at_packet
        self._clock = RealTime() if clock is None else clock
        self.name = inner.name
        self.schema = inner.schema
        self.rows_hint = inner.rows_hint
        self.bytes_hint = inner.bytes_hint
        self.replayable = inner.replayable
        self.files = inner.files

    @property
    def read_once(self) -> object | None:
        """That of the input behind the network."""
        return self.inner.read_once

    def used_up(self) -> bool:
        """As the input behind the network says."""
        return self.inner.used_up()

    def most(self) -> tuple[int, int] | None:
        """As the input behind the network says."""
        return self.inner.most()

    def schedule(self, size: BatchSizes, start_row: int = 0) -> Iterator[tuple[float, pa.RecordBatch]]:
        """Every batch with the seconds from the start at which it arrives; ``start_row`` does not move the times."""
        cutter = Cutter(size)
        for at_s, rows in self._arriving(start_row):
            for batch in cutter.cut(self._alive(rows)):
                yield at_s, batch

    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        """Every batch when its time has come; a later start goes on with the gap before its packet."""
        cutter = Cutter(size)
        clock = self._clock
        packet = start_row // self.rows_per_packet
        start_s = clock.now() - (next(self._times_s(packet - 1)) if packet else 0.0)
        for at_s, rows in self._arriving(start_row):
            if (wait_s := start_s + at_s - clock.now()) > 0:
                clock.sleep(wait_s)
            yield from cutter.cut(self._alive(rows))

    def _arriving(self, start_row: int) -> Iterator[tuple[float, pa.RecordBatch | None]]:
        """Packets and their times; None for the one that the network dies on."""
        packet = start_row // self.rows_per_packet
        for at_s, rows in zip(self._times_s(packet), self._packets(start_row), strict=False):
            if self.fail_at_packet is not None and packet >= self.fail_at_packet:
                yield at_s, None
                return
            yield at_s, rows
            packet += 1

    def _alive(self, rows: pa.RecordBatch | None) -> pa.RecordBatch:
        if rows is None:
            message = f"{self.name}: the connection broke after {self.fail_at_packet} packets (simulated)"
            raise SourceError(message)
        return rows

    def _times_s(self, packet: int) -> Iterator[float]:
        """Arrival times from a packet on; computed for twice as many packets whenever they run out."""
        known, done = FIRST_GAPS, max(packet, 0)
        while True:
            if done < known:
                gaps = self.arrivals.gaps_s(np.random.default_rng(self.seed), known)
                yield from np.cumsum(gaps)[done:].tolist()
                done = known
            known *= 2

    def _packets(self, start_row: int) -> Iterator[pa.RecordBatch]:
        """The rows regrouped by ``rows_per_packet``, counted from row 0 whatever ``start_row`` is."""
        full = self.rows_per_packet
        wanted = full - start_row % full
        held: list[pa.RecordBatch] = []
        read = BatchSizes(first=min(full, BatchSizes().first), most=max(full, BatchSizes().first))
        for batch in self.inner.batches(read, start_row):
            at = 0
            while at < batch.num_rows:
                piece = batch.slice(at, wanted)
                at += piece.num_rows
                wanted -= piece.num_rows
                held.append(piece)
                if wanted == 0:
                    yield _joined(held)
                    held, wanted = [], full
        if held:
            yield _joined(held)


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)
