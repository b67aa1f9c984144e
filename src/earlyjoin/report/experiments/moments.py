"""Counters over time: what had been done, and found, at many moments of a run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from earlyjoin.report.experiments.experiment import Curve
from earlyjoin.state.cost_clock import CostClock
from earlyjoin.state.counters import Counters, Phase

MOST_POINTS = 300
"""Points of a curve: more than a picture can show."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Everything counted up to some point of virtual time."""

    seconds: float
    worked_s: float
    rows_read: int
    tuple_ios: int
    page_ios: int
    flushes: int
    results: int
    before_cleanup: int
    """Results that were found before all inputs had ended."""


@dataclass(slots=True)
class History:
    """The moments of one run of one algorithm, in order."""

    label: str
    moments: list[Moment] = field(default_factory=list)
    counters: list[Counters] = field(default_factory=list)
    """Of each operator of the run, at its end."""

    @property
    def last(self) -> Moment:
        """The end of the run."""
        return self.moments[-1]

    @property
    def full(self) -> Moment:
        """The last moment before anything was flushed: memory was full."""
        return next(moment for moment in reversed(self.moments) if moment.flushes == 0)

    @property
    def arrived(self) -> Moment:
        """The last moment before the clean-up: the inputs had ended."""
        rows = self.last.rows_read
        ended = (m for m in self.moments if m.rows_read == rows)
        first = next(ended)
        return max((m for m in self.moments if m.results == m.before_cleanup), key=lambda m: m.seconds, default=first)

    def at(self, seconds: float) -> Moment:
        """What had been done at a moment."""
        found = bisect_right(self.moments, seconds, key=lambda moment: moment.seconds)
        return self.moments[max(0, found - 1)]

    def mean_results(self, start_s: float, stop_s: float) -> float:
        """How many results there were on average between two moments."""
        seconds = np.array([moment.seconds for moment in self.moments])
        inside = seconds[(seconds > start_s) & (seconds < stop_s)]
        edges = np.concatenate([[start_s], inside, [stop_s]])
        results = [self.at(edge).results for edge in edges[:-1]]
        return float(np.average(results, weights=np.diff(edges)))

    def when(self, results: int) -> Moment:
        """The first moment with so many results; the last one when there are never so many."""
        return next((moment for moment in self.moments if moment.results >= results), self.last)

    def curve(
        self, x: Callable[[Moment], float], y: Callable[[Moment], float], *, until_s: float | None = None
    ) -> Curve:
        """A line of not too many points."""
        moments = [m for m in self.moments if until_s is None or m.seconds <= until_s]
        chosen = thinned(moments)
        return Curve(self.label, [x(moment) for moment in chosen], [y(moment) for moment in chosen])


def thinned(moments: Sequence[Moment]) -> list[Moment]:
    """At most MOST_POINTS of them, evenly spread, the last one included."""
    if len(moments) <= MOST_POINTS:
        return list(moments)
    step = (len(moments) - 1) / (MOST_POINTS - 1)
    return [moments[round(step * n)] for n in range(MOST_POINTS)]


class Recorder:
    """Writes down a moment whenever asked, unless nothing has happened or too little time has passed."""

    def __init__(self, label: str, clock: CostClock, counters: Sequence[Counters], *, every_s: float = 0.0) -> None:
        self.history = History(label, counters=list(counters))
        self._clock = clock
        self._every_s = every_s

    def note(self, *, always: bool = False) -> None:
        """Look at clock and counters."""
        moments = self.history.moments
        seconds = self._clock.now()
        if moments and not always and seconds - moments[-1].seconds < self._every_s:
            return
        moment = self._moment(seconds)
        if not moments or moments[-1] != moment:
            moments.append(moment)

    def _moment(self, seconds: float) -> Moment:
        every = self.history.counters
        final = every[-1]
        return Moment(
            seconds=seconds,
            worked_s=self._clock.worked_s,
            rows_read=sum(sum(counters.rows_in) for counters in every),
            tuple_ios=sum(counters.tuples_written + counters.tuples_read for counters in every),
            page_ios=sum(counters.pages_written + counters.pages_read for counters in every),
            flushes=sum(counters.flushes for counters in every),
            results=final.rows_out,
            before_cleanup=final.rows_out - final.results[Phase.CLEANUP],
        )
