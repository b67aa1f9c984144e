"""Counts of an operator that joins on arrival: matches of each arriving row, until something is spilled.

While nothing was spilled, all pairs of the rows read have met, so an arriving batch and its matches are all that
:class:`~earlyjoin.algorithms.estimation.TwoSided` needs. With the first spill the counts stop, and the estimate stays
that of the rows read before: still a random sample.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from earlyjoin.algorithms.estimation import TwoSided
from earlyjoin.algorithms.estimation.estimate import TotalRows
from earlyjoin.algorithms.estimation.rates import RateCheck
from earlyjoin.algorithms.estimation.tally import Totals
from earlyjoin.algorithms.protocol import Step
from earlyjoin.local.estimating.drawn_blocks import DrawnBlocks
from earlyjoin.local.estimating.row_counts import RowCounts
from earlyjoin.local.estimating.step_measures import StepMeasures
from earlyjoin.local.sources.base import Source

COUNTED_ROWS, COUNTED_LATER = 65536, 8
"""The matches of so many rows of a side are counted row by row, later only those of every eighth batch."""


class ArrivalCounts:
    """Rows as they came, and blocks of rows where those were drawn, for each question."""

    def __init__(self, step_measures: StepMeasures, sources: Sequence[Source], spilled: Callable[[], bool]) -> None:
        self._step_measures = step_measures
        self._spilled = spilled
        self._lock = threading.Lock()
        self._by_rows = [TwoSided(aggregate=kind) for kind in step_measures.kinds]
        self._by_blocks = [TwoSided(aggregate=kind) for kind in step_measures.kinds]
        self._rates = RateCheck()
        self.blocks = [DrawnBlocks.of(source) for source in sources]
        self._arrivals = [0] * len(sources)
        self._frozen = False
        self._pending = False

    def through(self, side: int, rows: int, steps: Iterator[Step]) -> Iterator[Step]:
        """The steps of an arrival, unchanged; what they find is counted."""
        if self._frozen:
            yield from steps
            return
        counts = RowCounts(side, rows) if self._counts_rows(side) else None
        found = [Totals() for _ in self._by_rows]
        self._pending = True
        for step in steps:
            if step is not None:
                measures = self._step_measures.measure(step)
                found = [old + Totals.of(len(step), one) for old, one in zip(found, measures, strict=True)]
                if counts is not None:
                    counts.add(step, measures)
            yield step
        self._pending = False
        if self._spilled() or (counts is not None and counts.lost):
            self._frozen = True
        else:
            self._commit(side, rows, found, counts)

    def by_rows(self, number: int, total_rows: TotalRows) -> TwoSided:
        """The estimator of a question, with rows as what was drawn."""
        return self._of(self._by_rows[number], total_rows)

    def by_blocks(self, number: int, total_rows: TotalRows) -> TwoSided:
        """The same with blocks of rows."""
        return self._of(self._by_blocks[number], total_rows)

    def orders_depend(self) -> bool:
        """Do matches come at different rates?"""
        with self._lock:
            return not self._rates.agree(*self._by_rows[0].unit_variances())

    def to_values(self) -> dict[str, Any]:
        """Plain values for a pause. Matches of an arrival in hand are not counted: the counts stop there."""
        with self._lock:
            return {
                "frozen": self._frozen or self._pending,
                "arrivals": list(self._arrivals),
                "by_rows": [one.to_values() for one in self._by_rows],
                "by_blocks": [one.to_values() for one in self._by_blocks],
                "rates": self._rates.to_values(),
                "blocks": [None if blocks is None else blocks.to_values() for blocks in self.blocks],
            }

    def go_on(self, values: dict[str, Any]) -> None:
        """Continue the counts of an earlier process."""
        self._frozen, self._arrivals = values["frozen"], list(values["arrivals"])
        self._by_rows = [TwoSided.from_values(one) for one in values["by_rows"]]
        self._by_blocks = [TwoSided.from_values(one) for one in values["by_blocks"]]
        self._rates = RateCheck.from_values(values["rates"])
        for blocks, saved in zip(self.blocks, values["blocks"], strict=True):
            if blocks is not None and saved is not None:
                blocks.go_on(saved)

    def _of(self, estimator: TwoSided, total_rows: TotalRows) -> TwoSided:
        with self._lock:
            made = TwoSided.from_values(estimator.to_values())
        made.total_rows = total_rows
        return made

    @property
    def _drawn(self) -> bool:
        return self.blocks != [None] * len(self.blocks)

    def _counts_rows(self, side: int) -> bool:
        """Are the matches of the next batch counted row by row? Not of all, once many were."""
        few = self._by_rows[0].units[side] < COUNTED_ROWS
        return few or self._arrivals[side] % COUNTED_LATER == 0 or self._drawn

    def _commit(self, side: int, rows: int, found: list[Totals], counts: RowCounts | None) -> None:
        with self._lock:
            self._rates.update(side, rows, self._by_rows[0].rows[1 - side], found[0].matches)
            self._arrivals[side] += 1
            if counts is None:
                for estimator, totals in zip(self._by_rows, found, strict=True):
                    estimator.update_total(side, rows, totals)
                return
            for number, estimator in enumerate(self._by_rows):
                estimator.update(side, rows, *counts.sums(number), found[number].square)
            if self._drawn:
                self._commit_blocks(side, rows, counts, found)

    def _commit_blocks(self, side: int, rows: int, counts: RowCounts, found: list[Totals]) -> None:
        blocks = self.blocks[side]
        if blocks is None:
            for number, estimator in enumerate(self._by_blocks):
                estimator.update(side, rows, *counts.sums(number), found[number].square)
            return
        goes_on = blocks.inside
        ends, sizes = blocks.cut(rows)
        for number, estimator in enumerate(self._by_blocks):
            sums = counts.between(number, ends)
            estimator.update(side, rows, *sums, found[number].square, sizes=sizes, goes_on=goes_on)


def counting_nbytes(batch_rows: int, aggregates: int) -> int:
    """Bytes that counting the rows of a batch takes."""
    return 8 * batch_rows * (1 + 2 * aggregates)
