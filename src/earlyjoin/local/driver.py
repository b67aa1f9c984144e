"""The driver: feeds an operator from its inputs, lets it react when they are silent, and gives out what it finds.

::

    ┌─▶ take an arrival ──▶ arrive / end ──┐      silent for wait_s, and there is work on disk:
    │                                      │        react in slices, back here as soon as input waits
    └──────────────────────────────────────┘      every side ended: finish
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from earlyjoin.algorithms.protocol import Matches, Operator, Slice, Step
from earlyjoin.algorithms.reading import Ratio
from earlyjoin.local.estimating import Estimating
from earlyjoin.local.inputs import Arrival, Inputs

REACT_STEPS = 64


@dataclass(slots=True, kw_only=True)
class Driver:
    """Runs one operator to its end. ``reading`` None means push: whatever came first is next."""

    operator: Operator
    inputs: Inputs
    reading: Ratio | None
    wait_s: float
    """Silence that starts the reactive phase."""
    rows_taken: list[int]
    ended: list[bool]
    stopping: Callable[[], bool] = lambda: False
    """Has somebody asked to stop? Then the run ends early, wherever it is."""
    estimating: Estimating | None = None
    watching: Callable[[], None] = lambda: None
    """Called as soon as a step is done, by those who write down how a run goes."""
    between_steps: Callable[[], None] = lambda: None
    """Called when the rows of a step have been built: only then may rows leave memory that its matches point to."""
    holding: Callable[[], bool] = lambda: False
    """Are rows held back? Before input is waited for they are to go out."""
    overdue: Callable[[], bool] = lambda: False
    """Have they been held back for long?"""
    _waits: bool = field(default=False, init=False)

    def run(self) -> Iterator[Matches | None]:
        """All matches, as they are found, and None where rows that are held back are to go out.

        Between two of them the operator's state is complete.
        """
        for step in self._steps():
            self.watching()
            if step is not None:
                if self.estimating is not None:
                    self.estimating.saw(step)
                yield step
            elif self._waits or self.overdue():
                yield None
            self.between_steps()
            if self.stopping():
                return

    def _steps(self) -> Iterator[Step]:
        yield from self.operator.resume()
        silent = False
        while not all(self.ended):
            if self.holding() and not self.inputs.waiting(self._wanted_side()):
                self._waits = True
                yield None
                self._waits = False
            try:
                arrival = self._next_arrival(0.0 if silent else self.wait_s)
            except Exception:
                # Rows that came before an input failed are joined, if that is not a long work of its own.
                yield from self.operator.react(Slice(REACT_STEPS, self.stopping))
                raise
            silent = arrival is None
            if arrival is not None:
                yield from self._deliver(arrival)
            else:
                yield None
                yield from self.operator.react(Slice(REACT_STEPS, self._interrupting))
        yield from self.operator.finish()

    def _interrupting(self) -> bool:
        return self.inputs.waiting(self._wanted_side()) or self.stopping()

    def _wanted_side(self) -> int | None:
        return None if self.reading is None else self.reading.next_side(self.rows_taken, self.ended)

    def _next_arrival(self, wait_s: float) -> Arrival | None:
        return self.inputs.take(self._wanted_side(), wait_s if self.operator.has_reactive_work() else None)

    def _deliver(self, arrival: Arrival) -> Iterator[Step]:
        if arrival.batch is None:
            if not self.ended[arrival.side]:
                self.ended[arrival.side] = True
                yield from self.operator.end(arrival.side)
            return
        self.rows_taken[arrival.side] += arrival.batch.num_rows
        steps = self.operator.arrive(arrival.side, arrival.batch)
        if self.estimating is not None:
            steps = self.estimating.through(arrival.side, arrival.batch, steps)
        yield from steps
        self.inputs.release(arrival)
