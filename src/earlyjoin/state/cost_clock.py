"""A virtual clock on which counted work takes time, so that arrivals and work compete for it as in the papers.

::

    operator works ──▶ counters grow ──▶ now(): what they grew by, times its cost, has passed
    driver waits   ──▶ sleep, advance_to

Nobody has to tell the clock that work was done: a reading finds the work of every watched counter already
in it. Time depends on counters and schedule alone, so two runs with one seed agree to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from earlyjoin.errors import InputError
from earlyjoin.state.clock import VirtualClock
from earlyjoin.state.counters import Counters


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds that each unit of counted work takes."""

    page_read_s: float = 0.0
    page_written_s: float = 0.0
    seek_s: float = 0.0
    """For a random access, besides its page."""
    row_s: float = 0.0
    """For a row of input: delivery, probing, insertion."""
    comparison_s: float = 0.0
    result_s: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) >= 0:
                raise InputError(f"cost {field.name} must be 0 or more, got {getattr(self, field.name)}")

    def seconds(self, counters: Counters) -> float:
        """What all the work counted so far takes."""
        return (
            self.page_read_s * counters.pages_read
            + self.page_written_s * counters.pages_written
            + self.seek_s * counters.seeks
            + self.row_s * sum(counters.rows_in)
            + self.comparison_s * counters.comparisons
            + self.result_s * counters.rows_out
        )


class CostClock(VirtualClock):
    """Time passes as somebody waits and as watched counters grow."""

    def __init__(self, costs: Costs, start_s: float = 0.0) -> None:
        super().__init__(start_s)
        self.costs = costs
        self._watched: list[Counters] = []
        self._paid_s = 0.0

    def watch(self, counters: Counters) -> None:
        """Let the work of one more operator take time, from what it has counted on."""
        self._watched.append(counters)
        self._paid_s += self.costs.seconds(counters)

    @property
    def worked_s(self) -> float:
        """Seconds of work so far, waiting not included."""
        return sum(self.costs.seconds(counters) for counters in self._watched)

    def now(self) -> float:
        """Seconds of virtual time, all counted work included."""
        worked_s = self.worked_s
        if worked_s > self._paid_s:
            self.sleep(worked_s - self._paid_s)
            self._paid_s = worked_s
        return super().now()

    def advance_to(self, time_s: float) -> None:
        """Move forward to a moment; work in hand is paid first, and moments in the past change nothing."""
        self.now()
        super().advance_to(time_s)
