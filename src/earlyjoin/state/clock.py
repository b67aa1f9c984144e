"""Time: seconds for waiting and reporting, ticks for the exactly-once rules.

Everything that measures or waits takes a :class:`Clock`, so that a virtual one makes a run repeatable. Arrival and
departure stamps are *ticks* of a :class:`LogicalClock`: strictly increasing, so that no two events tie (ties break
interval tests).
"""

from __future__ import annotations

import time
from typing import Protocol

import numpy as np

from earlyjoin.predicates.encoding.keys import Int64


class Clock(Protocol):
    """Seconds since some start."""

    def now(self) -> float:
        """Seconds."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class RealClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        """Seconds since an arbitrary start."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep; nothing happens for zero or less."""
        if seconds > 0:
            time.sleep(seconds)


class VirtualClock:
    """A clock that moves only when it is told to."""

    def __init__(self, start_s: float = 0.0) -> None:
        self._now = start_s

    def now(self) -> float:
        """Seconds of virtual time."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Move forward."""
        if seconds > 0:
            self._now += seconds

    def advance_to(self, time_s: float) -> None:
        """Move forward to a moment; moments in the past change nothing."""
        self._now = max(self._now, time_s)


class LogicalClock:
    """Strictly increasing ticks: one for each arriving row and for each flush or probe."""

    NEVER = np.iinfo(np.int64).max
    """Departure of a row that is still in memory."""

    def __init__(self, next_tick: int = 1) -> None:
        self.next_tick = next_tick

    def tick(self) -> int:
        """The next moment."""
        self.next_tick += 1
        return self.next_tick - 1

    def upcoming(self, count: int) -> Int64:
        """The next ``count`` moments, one for each of that many rows; they pass only with ``pass_by``."""
        return np.arange(self.next_tick, self.next_tick + count, dtype=np.int64)

    def pass_by(self, count: int) -> None:
        """Let ``count`` moments pass."""
        self.next_tick += count
