"""Inputs on a virtual clock: arrivals in the order of their scheduled times, in one thread, the same in every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from earlyjoin.local.inputs import Arrival
from earlyjoin.local.sources.base import BatchSizes
from earlyjoin.local.sources.simulated import SimulatedSource
from earlyjoin.state.clock import VirtualClock

_REACTIVE_STEP_S = 0.001
"""Virtual time that a look at the inputs during reactive work takes: a busy operator must not stop the clock."""


class VirtualInputs:
    """Simulated sources whose time passes only as the driver waits or works."""

    def __init__(
        self,
        sources: Sequence[SimulatedSource],
        clock: VirtualClock,
        sizes: Sequence[BatchSizes],
        starts: Sequence[int],
        ended: Sequence[bool],
    ) -> None:
        self._clock = clock
        self._start_s = clock.now()
        self._schedules: list[Iterator[tuple[float, pa.RecordBatch]]] = [
            source.schedule(size, start) for source, size, start in zip(sources, sizes, starts, strict=True)
        ]
        self._next: list[tuple[float, Arrival] | None] = [
            None if over else self._advance(side, 0.0) for side, over in enumerate(ended)
        ]

    def take(self, side: int | None, wait_s: float | None) -> Arrival | None:
        """See :class:`~earlyjoin.local.inputs.Inputs`."""
        ready = [(entry[0], s) for s, entry in enumerate(self._next) if entry is not None and side in (None, s)]
        if not ready:
            raise AssertionError("take after the last input has ended")
        at_s, chosen = min(ready)
        moment = self._start_s + at_s
        if wait_s is not None and moment > self._clock.now() + wait_s:
            self._clock.sleep(wait_s)
            return None
        self._clock.advance_to(moment)
        entry = self._next[chosen]
        assert entry is not None
        arrival = entry[1]
        self._next[chosen] = None if arrival.batch is None else self._advance(chosen, at_s)
        return arrival

    def waiting(self, side: int | None) -> bool:
        """See :class:`~earlyjoin.local.inputs.Inputs`; asking takes a little virtual time."""
        self._clock.sleep(_REACTIVE_STEP_S)
        now = self._clock.now() - self._start_s
        ready = [entry for s, entry in enumerate(self._next) if entry is not None and side in (None, s)]
        return any(entry[0] <= now for entry in ready)

    def release(self, arrival: Arrival) -> None:
        """See :class:`~earlyjoin.local.inputs.Inputs`; nothing is buffered."""

    def close(self) -> None:
        """See :class:`~earlyjoin.local.inputs.Inputs`."""
        self._schedules = []

    def _advance(self, side: int, last_s: float) -> tuple[float, Arrival]:
        """The next packet of a side; its end comes with its last packet."""
        following = next(self._schedules[side], None)
        if following is None:
            return last_s, Arrival(side, None)
        return following[0], Arrival(side, following[1])
