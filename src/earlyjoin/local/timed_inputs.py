"""Inputs on a virtual clock whose every row has its own moment of arrival, as in the experiments of the papers.

Handing over rows one by one would be as true as slow. Rows that arrive without a silence between them are handed over
together, some at a time, with the clock at the arrival of the last one; so are those that came during some other work.

::

    arrivals  x xx x x     25 ms of silence     x x  xx x            wait_s over: take gives None, the driver reacts
              └─window─┘                        └window─┘            a row waits: the reaction is cut short
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.local.inputs import Arrival
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.clock import VirtualClock

_LOOK_S = 1e-6
"""Virtual time of a look at the inputs: work that counts nothing must not stop the clock."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which side each row belongs to and when it arrives, in the order of arrival."""

    times_s: npt.NDArray[np.float64]
    sides: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.times_s)


class TimedInputs:
    """Two or more tables whose rows arrive by a schedule; see :class:`~earlyjoin.local.inputs.Inputs`."""

    def __init__(
        self,
        tables: Sequence[pa.RecordBatch],
        schedule: Schedule,
        clock: VirtualClock,
        *,
        silence_s: float,
        window_rows: int = 500,
        silent_time_only: bool = False,
    ) -> None:
        """With ``silent_time_only`` reactive work has no more time than inputs are silent.

        A step that rows come upon is not done before them at their cost: what it took beyond the silence is taken from
        the next silences.
        """
        self._tables = tables
        self._schedule = schedule
        self._clock = clock
        self._window_rows = window_rows
        self._silent_time_only = silent_time_only
        self._reacting = False
        self._owed_s = 0.0
        gaps = np.flatnonzero(np.diff(schedule.times_s) > silence_s) + 1
        self._breaks: Int64 = gaps
        self._break_times_s = schedule.times_s[gaps]
        self._at = 0
        self._given = [0] * len(tables)
        self._ready: deque[Arrival] = deque()
        self._ended = False
        self.peak_waiting = 0
        """Most rows that ever waited while the operator worked."""

    @property
    def backlog(self) -> int:
        """Rows that have arrived and were not taken."""
        arrived = int(np.searchsorted(self._schedule.times_s, self._clock.now(), side="right"))
        return max(0, arrived - self._at)

    def take(self, side: int | None, wait_s: float | None) -> Arrival | None:
        """The next rows of one side, or None after a silence; ``side`` must be None, rows come as they come."""
        assert side is None, "timed inputs are pushed"
        if self._ready:
            return self._ready.popleft()
        now = self._clock.now()
        self.peak_waiting = max(self.peak_waiting, self.backlog)
        if self._at < len(self._schedule):
            next_s = float(self._schedule.times_s[self._at])
            self._note_overrun(now - next_s)
            if wait_s is not None and next_s > now + wait_s and not self._repaid(next_s - now - wait_s):
                self._clock.sleep(max(wait_s + self._owed_s, _LOOK_S))
                self._owed_s, self._reacting = 0.0, True
                return None
            self._open_window(now, waits=wait_s is not None)
        elif not self._ended:
            self._ended = True
            self._ready.extend(Arrival(side, None) for side in range(len(self._tables)))
        else:
            raise AssertionError("take after the last input has ended")
        return self._ready.popleft()

    def waiting(self, side: int | None) -> bool:
        """Do rows wait, or will no more come?"""
        self._clock.sleep(_LOOK_S)
        backlog = self.backlog
        self.peak_waiting = max(self.peak_waiting, backlog)
        return bool(self._ready) or backlog > 0 or self._all_arrived(self._clock.now())

    def release(self, arrival: Arrival) -> None:
        """Nothing to give back: what waits is counted by ``peak_waiting``."""

    def close(self) -> None:
        """Nothing is read in the background, so there is nothing to stop."""

    def _note_overrun(self, overrun_s: float) -> None:
        """Rows have come so long ago: was it reactive work that let them wait?"""
        if self._reacting and overrun_s > 0:
            self._reacting = False
            if self._silent_time_only:
                self._owed_s += overrun_s

    def _repaid(self, silence_s: float) -> bool:
        """Is a silence used up by what is owed?"""
        if self._owed_s < silence_s:
            return False
        self._owed_s -= silence_s
        return True

    def _all_arrived(self, now: float) -> bool:
        return len(self._schedule) == 0 or float(self._schedule.times_s[-1]) <= now

    def _open_window(self, now: float, *, waits: bool) -> None:
        """The next rows up to the next silence, one batch for each side; the clock moves to the last arrival."""
        end = min(len(self._schedule), self._at + self._window_rows)
        if waits:
            following = max(
                int(np.searchsorted(self._breaks, self._at, side="right")),
                int(np.searchsorted(self._break_times_s, now, side="right")),
            )
            if following < len(self._breaks):
                end = min(end, int(self._breaks[following]))
        self._clock.advance_to(float(self._schedule.times_s[end - 1]))
        counts = np.bincount(self._schedule.sides[self._at : end], minlength=len(self._tables))
        for side, count in enumerate(counts.tolist()):
            if count:
                self._ready.append(Arrival(side, self._tables[side].slice(self._given[side], count)))
                self._given[side] += count
        self._at = end
