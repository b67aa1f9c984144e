"""What the matches of a step are worth to each question: the rows themselves first, then the aggregates."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from earlyjoin.algorithms.aggregates import Expressions
from earlyjoin.algorithms.estimation.estimate import Aggregate
from earlyjoin.algorithms.estimation.tally import EVERY_MATCH, Measure
from earlyjoin.algorithms.protocol import Matches
from earlyjoin.state.budget import Account

_ROW_NBYTES = 32
"""Of a match: its value as a number, the value that Arrow has, and a column that it was made of."""


class StepMeasures:
    """Measures a step once, however often it is asked; each aggregate books it when it goes out."""

    def __init__(self, expressions: Expressions, account: Account | None) -> None:
        self.aggregates = expressions.aggregates
        self._expressions = expressions
        self._account = account
        self._step: Matches | None = None
        self._values: list[pa.Array | None] = []
        self._measures: list[Measure] = [EVERY_MATCH]

    @property
    def kinds(self) -> list[Aggregate]:
        """What each question asks; the first is the number of rows."""
        return [Aggregate.COUNT, *(aggregate.kind for aggregate in self.aggregates)]

    def measure(self, step: Matches) -> Sequence[Measure]:
        """What the rows of a step count for in each question, in the order of ``kinds``."""
        if self.aggregates and step is not self._step:
            self._forget()
            if self._account is not None and self._account.limit.bytes is not None:
                wanted = _ROW_NBYTES * len(step) * len(self.aggregates)
                self._account.reserve(min(wanted, self._account.limit.bytes))
            self._step = step
            self._values = self._expressions.values(step)
            measured = (one.measure(values) for one, values in zip(self.aggregates, self._values, strict=True))
            self._measures = [EVERY_MATCH, *measured]
        return self._measures

    def book(self, step: Matches) -> None:
        """The step goes out: its rows are of the result."""
        if self.aggregates:
            self.measure(step)
            for aggregate, values in zip(self.aggregates, self._values, strict=True):
                aggregate.book(len(step), values)
            self._forget()

    def _forget(self) -> None:
        self._step, self._values, self._measures = None, [], [EVERY_MATCH]
        if self._account is not None:
            self._account.clear()
