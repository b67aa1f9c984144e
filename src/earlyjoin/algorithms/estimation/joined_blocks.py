"""Blocks that an operator joins in memory (PMJ section 3.5): what it says about them, and the estimate from them.

::

    rows are taken in ──▶ a prefix of the block has met itself ──▶ … ──▶ all of it has met ──▶ it leaves memory: next
                                └ the estimate: closed blocks and the last complete prefix of the open one

Rows of different blocks have not met, so every block is a rectangle of its own in the matrix of pairs. During a join in
memory the matches come in the order of their keys, which is no random order: they count when the prefix is complete.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from earlyjoin.algorithms.estimation.blocks import BetweenBlocks
from earlyjoin.algorithms.estimation.estimate import Aggregate, Estimator, TotalRows
from earlyjoin.algorithms.estimation.rates import RateCheck
from earlyjoin.algorithms.estimation.ripple import TwoSided
from earlyjoin.algorithms.estimation.tally import Measure, RowMoments, RowSums, Totals
from earlyjoin.algorithms.protocol import Matches

Measuring = Callable[[Matches], Sequence[Measure]]
"""What the matches of a step are worth, for each aggregate."""


class JoinedBlocks:
    """The operator's side: it tells what happens to the block in memory, and an estimator may listen."""

    def __init__(self) -> None:
        self.rows = [0, 0]
        """Rows of the block in memory, those that cannot match too."""
        self.kept = [0, 0]
        """Those of them that have a number."""
        self.listener: LoadEstimate | None = None

    def take(self, side: int, rows: int, kept: int) -> None:
        """So many rows came into the block."""
        self.rows[side] += rows
        self.kept[side] += kept

    def found(self, step: Matches | None) -> None:
        """Matches within the block, by their row numbers in it."""
        if step is not None and self.listener is not None:
            self.listener.found(step)

    def met(self) -> None:
        """All rows of the block have met each other."""
        if self.listener is not None:
            self.listener.met((self.rows[0], self.rows[1]), (self.kept[0], self.kept[1]))

    def leave(self) -> None:
        """The block leaves memory; the next rows are of another."""
        if self.listener is not None:
            self.listener.leave()
        self.rows, self.kept = [0, 0], [0, 0]

    def to_values(self) -> dict[str, Any]:
        """Plain values."""
        return {"rows": list(self.rows), "kept": list(self.kept)}

    def go_on(self, values: dict[str, Any]) -> None:
        """The inverse of ``to_values``."""
        self.rows, self.kept = list(values["rows"]), list(values["kept"])


class _Tally:
    """One aggregate over the blocks."""

    def __init__(self, aggregate: Aggregate, followed_rows: int) -> None:
        with_values = aggregate is not Aggregate.COUNT
        self.aggregate = aggregate
        self.sides = [RowSums(followed_rows, with_values=with_values) for _ in range(2)]
        self.totals = Totals()
        self.closed, self.between = TwoSided(aggregate=aggregate), BetweenBlocks(aggregate=aggregate)
        self.open: tuple[tuple[int, int], Totals, tuple[RowMoments, RowMoments]] | None = None

    def found(self, step: Matches, measure: Measure) -> None:
        self.totals += Totals.of(len(step), measure)
        for sums, index in zip(self.sides, step.index, strict=True):
            assert index is not None
            sums.add(index, measure)

    def met(self, rows: tuple[int, int], kept: tuple[int, int]) -> None:
        left, right = (sums.moments(*side) for sums, *side in zip(self.sides, rows, kept, strict=True))
        self.open = (rows, self.totals, (left, right))

    def leave(self) -> None:
        if self.open is not None:
            rows, totals, moments = self.open
            self.closed.update_rectangle(rows, totals, moments)
            self.closed.new_block()
            self.between.update(rows, int(totals.matches), totals.value)
        self.forget()

    def forget(self) -> None:
        self.open, self.totals = None, Totals()
        for sums in self.sides:
            sums.clear()

    def two_sided(self) -> TwoSided:
        made = TwoSided.from_values(self.closed.to_values())
        if self.open is not None:
            made.update_rectangle(*self.open)
        return made

    def between_blocks(self) -> BetweenBlocks:
        made = BetweenBlocks.from_values(self.between.to_values())
        if self.open is not None:
            rows, totals, _ = self.open
            made.update(rows, int(totals.matches), totals.value)
        return made


class LoadEstimate:
    """The listener: sums of the block in memory and of all before, for each aggregate.

    Of each side the first ``followed_rows`` rows of a block are followed one by one; with 0 nothing is known but the
    totals of each block, and the interval comes from the differences between blocks.
    """

    def __init__(self, aggregates: Sequence[Aggregate], measuring: Measuring, followed_rows: int) -> None:
        self._tallies = [_Tally(aggregate, followed_rows) for aggregate in aggregates]
        self._measuring = measuring
        self._followed = followed_rows
        self._before = ((0, 0), 0.0)
        self._stage = 0
        self._lost = False
        self._lock = threading.Lock()
        self.rates = RateCheck()

    # What the operator tells

    def found(self, step: Matches) -> None:
        """Matches within the block in memory."""
        if not self._lost:
            # Only the thread of the join comes here, and nobody asks for these sums before the prefix is complete.
            for tally, measure in zip(self._tallies, self._measuring(step), strict=True):
                tally.found(step, measure)

    def met(self, rows: tuple[int, int], kept: tuple[int, int]) -> None:
        """The rows of the block so far have all met."""
        if self._lost:
            return
        with self._lock:
            for tally in self._tallies:
                tally.met(rows, kept)
        matches = self._tallies[0].totals.matches
        (left, right), earlier = self._before
        pairs = float(rows[0]) * rows[1] - float(left) * right
        # Of all blocks the first stages go into one bin, the second ones into another: in orders that depend on each
        # other the rate falls from stage to stage, the same way in every block.
        spread = (_alike(rows, (left, right), 0, pairs), _alike(rows, (left, right), 1, pairs))
        self.rates.add_to(self._stage, spread, pairs, matches - earlier)
        self._before, self._stage = (rows, matches), self._stage + 1

    def leave(self) -> None:
        """The block is over."""
        with self._lock:
            for tally in self._tallies:
                tally.leave()
        self._before, self._stage, self._lost = ((0, 0), 0.0), 0, False

    # What is asked

    def estimator(self, number: int, total_rows: TotalRows) -> Estimator:
        """The honest estimator of an aggregate, as far as blocks have met."""
        tally = self._tallies[number]
        with self._lock:
            made: Estimator = tally.two_sided() if self._followed else tally.between_blocks()
        made.total_rows = total_rows
        return made

    def joined(self, number: int, total_rows: TotalRows) -> TwoSided:
        """All pairs that have met, which is all that the paper's estimator needs to know."""
        with self._lock:
            made = self._tallies[number].two_sided()
        made.total_rows = total_rows
        return made

    def orders_depend(self) -> bool:
        """Do matches come at different rates while a block grows?"""
        return not self.rates.agree(*self.joined(0, (None, None)).unit_variances())

    def to_values(self) -> dict[str, Any]:
        """Plain values. Of the block in memory only its last complete prefix is kept: the rest of it will not count."""
        closed = [
            {"rows": tally.two_sided().to_values(), "blocks": tally.between_blocks().to_values()}
            for tally in self._tallies
        ]
        return {"tallies": closed, "rates": self.rates.to_values()}

    def go_on(self, values: dict[str, Any]) -> None:
        """Continue the counts of an earlier process."""
        for tally, saved in zip(self._tallies, values["tallies"], strict=True):
            tally.closed = TwoSided.from_values(saved["rows"])
            tally.between = BetweenBlocks.from_values(saved["blocks"])
            tally.forget()
        self.rates = RateCheck.from_values(values["rates"])
        self._lost = True


def _alike(rows: tuple[int, int], before: tuple[int, int], side: int, pairs: float) -> float:
    """Rows of a side in the pairs that a stage added, counted as if each had the same number of them (Kish)."""
    other, old = rows[1 - side], before[1 - side]
    squares = (rows[side] - before[side]) * float(other) ** 2 + before[side] * float(other - old) ** 2
    return pairs**2 / squares if squares else 0.0
