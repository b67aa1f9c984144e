"""The honest estimator: the two-sided form of the ripple join (Haas and Hellerstein, SIGMOD 1999), for any predicate.

n_L rows of the left and n_R of the right input came in random order and all their pairs were joined: a rectangle of the
N_L x N_R matrix of pairs. Rows, not pairs, were drawn at random, so the mean over the rectangle varies with the rows of
either side (Haas and Hellerstein, section 5) and with what is left between them, each with its finite population
correction::

    Var = (1 - f_L) S_L²/n_L + (1 - f_R) S_R²/n_R + (1 - f_L)(1 - f_R) S_LR²/(n_L n_R)

S_L² is the variance of a left row's *rate* (the share of the right input that it matches). It is not estimated from the
final counts of each row, which would have to be kept, but from the counts of arriving rows alone: a row that arrives
when n rows of the other side are there finds m matches, and m (m - 1) / (n (n - 1)) is unbiased for its squared rate.
So the state is a few sums. The same holds for the sums of an expression over the matches of a row.

A *unit* is what was drawn at random: a row, or a block of rows where only blocks come in random order.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from earlyjoin.algorithms.estimation.blocks import bounded, no_matches
from earlyjoin.algorithms.estimation.estimate import (
    Aggregate,
    Estimate,
    Estimator,
    Weights,
    quadratic,
    scaled_interval,
    weights,
)
from earlyjoin.algorithms.estimation.quantiles import t_quantile
from earlyjoin.algorithms.estimation.tally import RowMoments, Totals, product

Numbers = npt.NDArray[np.float64] | npt.NDArray[np.int64]

LEAST_UNITS = 3
ALLOWANCE = 1.1
"""Intervals are wider by this, because the variance is an estimate too: without it they cover 95 % on average and less
on some inputs (docs/estimates.md has both)."""
_ROUNDS = 4


class TwoSided(Estimator):
    """A rectangle of joined pairs that grows by the rows that arrive on either side.

    Left 2 rows, right 3 rows; the right ones matched 1, 0 and 2 of the left ones:

    >>> estimator = TwoSided((20, 30))
    >>> estimator.update(0, 2)
    >>> estimator.update(1, 3, np.array([1, 0, 2]))
    >>> estimator.matches, estimator.reason
    (3.0, 'no row of the left input has met rows of the right one on its arrival yet')
    >>> estimator.update(0, 2, np.array([1, 2]))
    >>> estimator.get().rows
    300.0
    """

    _saved = ("rows", "pairs", "sums", "own", "spread", "same_0", "same_1", "same_pairs", "units", "negative")

    def _start(self) -> None:
        self.rows = [0, 0]
        self.pairs = 0.0
        """Pairs joined, of closed rectangles."""
        self.sums = [0.0, 0.0]
        """Over all matches: of 1 and of the value."""
        self.own = [0.0, 0.0, 0.0]
        """Over all matches: of 1, value, value²."""
        self.spread = [0.0, 0.0]
        """Of closed rectangles, for each side: squares of the pairs of each unit."""
        self.same_0 = [0.0, 0.0, 0.0]
        self.same_1 = [0.0, 0.0, 0.0]
        """For each side, over pairs of different matches of one unit on its arrival: of 1·1, 1·value, value·value."""
        self.same_pairs = [0.0, 0.0]
        """How many such pairs there could have been."""
        self.units = [0.0, 0.0]
        """For each side: units that met rows of the other side on their arrival."""
        self.negative = 0
        self._open_rows = [0, 0]
        self._open_squares = [0.0, 0.0]
        self._last = [[0.0] * 4, [0.0] * 4]
        """For each side, of the last block: rows, pairs, matches, value."""

    def update(
        self,
        side: int,
        rows: int,
        matches: Numbers | None = None,
        values: npt.NDArray[np.float64] | None = None,
        squares: float = 0.0,
        *,
        sizes: npt.NDArray[np.int64] | None = None,
        goes_on: bool = False,
    ) -> None:
        """So many rows of ``side`` arrived and were joined with all rows of the other side in this rectangle.

        ``matches`` are the matches of each arriving row, ``values`` the sum of the expression over them (rows without
        a match may be left out of both), ``squares`` the sum of its square over all matches. With ``sizes`` the units
        are blocks of so many rows each, and ``matches`` and ``values`` are theirs, one entry for each block; the first
        of them is the rest of the last block of the update before if it ``goes_on``.
        """
        met = self._open_rows[1 - side]
        self.rows[side] += rows
        self._open_rows[side] += rows
        if rows == 0:
            return
        counts: Numbers = np.zeros(0) if matches is None or met == 0 else matches
        own, both = [float(counts.sum()), 0.0, 0.0], [product(counts, counts), 0.0, 0.0]
        sums = None if met == 0 else values
        if sums is not None:
            own[1:] = [float(sums.sum()), squares]
            both[1:] = [product(counts, sums), product(sums, sums)]
            self.negative += int(np.count_nonzero(sums < 0))
        if sizes is None:
            self._open_squares[side] += rows
            self.units[side] += rows if met else 0
            self.same_pairs[side] += rows * met * (met - 1.0) if met else 0.0
        else:
            self._add_blocks(side, sizes, counts, sums, both, goes_on=goes_on)
        self.sums = [self.sums[0] + own[0], self.sums[1] + own[1]]
        self.own = [old + new for old, new in zip(self.own, own, strict=True)]
        same = self.same_1 if side else self.same_0
        same[:] = [old + two - one for old, two, one in zip(same, both, own, strict=True)]

    def _add_blocks(
        self,
        side: int,
        sizes: npt.NDArray[np.int64],
        counts: Numbers,
        sums: npt.NDArray[np.float64] | None,
        both: list[float],
        *,
        goes_on: bool,
    ) -> None:
        """Book blocks as units; ``both`` gets what the first one has in common with its part that came before."""
        met = self._open_rows[1 - side]
        parts = np.zeros((4, len(sizes)))
        parts[0], parts[1] = sizes, sizes * float(met)
        if len(counts):
            parts[2], parts[3] = counts, 0.0 if sums is None else sums
        self._open_squares[side] += product(parts[0], parts[0])
        self.same_pairs[side] += float(np.sum(parts[1] * np.maximum(0.0, parts[1] - 1)))
        self.units[side] += len(sizes) if met else 0
        if goes_on:
            size, exposure, count, value = self._last[side]
            first = parts[:, 0]
            self._open_squares[side] += 2 * size * first[0]
            self.same_pairs[side] += 2 * exposure * first[1]
            self.units[side] -= 1 if met and exposure else 0
            both[0] += 2 * count * first[2]
            both[1] += count * first[3] + value * first[2]
            both[2] += 2 * value * first[3]
            if len(sizes) == 1:
                parts[:, -1] += self._last[side]
        self._last[side] = [float(x) for x in parts[:, -1]]

    def update_total(self, side: int, rows: int, totals: Totals) -> None:
        """As ``update``, of a batch whose matches were not counted row by row: others tell how rows differ."""
        met = self._open_rows[1 - side]
        self.rows[side] += rows
        self._open_rows[side] += rows
        self._open_squares[side] += rows
        if met:
            self.sums = [self.sums[0] + totals.matches, self.sums[1] + totals.value]
            own = (totals.matches, totals.value, totals.square)
            self.own = [old + new for old, new in zip(self.own, own, strict=True)]
            self.negative += totals.negative

    def update_block(self, rows: tuple[int, int], left: Numbers, right: Numbers) -> None:
        """A rectangle of its own, all at once: the matches of each row of either side in it."""
        moments = (RowMoments.of(rows[0], left), RowMoments.of(rows[1], right))
        self.update_rectangle(rows, Totals(float(left.sum())), moments)
        self.new_block()

    def update_rectangle(self, rows: tuple[int, int], totals: Totals, moments: tuple[RowMoments, RowMoments]) -> None:
        """A new rectangle in which all rows have met; of some of its rows it is known what each of them matched."""
        self.new_block()
        for side in (0, 1):
            self.rows[side] += rows[side]
            self._open_rows[side] = rows[side]
            self._open_squares[side] = float(rows[side])
        if not (rows[0] and rows[1]):
            return
        own = (totals.matches, totals.value, totals.square)
        self.sums = [self.sums[0] + own[0], self.sums[1] + own[1]]
        self.own = [old + new for old, new in zip(self.own, own, strict=True)]
        self.negative += totals.negative
        for side, (same, new) in enumerate(zip((self.same_0, self.same_1), moments, strict=True)):
            same[:] = [old + more for old, more in zip(same, new.same, strict=True)]
            met = rows[1 - side]
            self.same_pairs[side] += new.rows * met * (met - 1.0)
            self.units[side] += new.rows

    def new_block(self) -> None:
        """Close the rectangle: rows that come from now on are joined with each other alone (PMJ's next runs)."""
        left, right = self._open_rows
        self.pairs += float(left) * right
        for side in (0, 1):
            self.spread[side] += self._open_squares[side] * self._open_rows[1 - side] ** 2
        self._open_rows, self._open_squares = [0, 0], [0.0, 0.0]

    def __add__(self, other: Self) -> Self:
        return super(TwoSided, self._closed()).__add__(other._closed())

    def to_values(self) -> dict[str, Any]:
        """Everything, as plain values; the open rectangle goes on growing after ``from_values``."""
        return super().to_values() | {
            "open": [list(self._open_rows), list(self._open_squares), [list(last) for last in self._last]]
        }

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Self:
        made = super().from_values(values)
        rows, squares, last = values["open"]
        made._open_rows, made._open_squares, made._last = list(rows), list(squares), [list(one) for one in last]
        return made

    @property
    def matches(self) -> float:
        """Matches found so far."""
        return self.sums[0]

    @property
    def joined_pairs(self) -> float:
        """Pairs joined so far."""
        return self.pairs + float(self._open_rows[0]) * self._open_rows[1]

    @property
    def fractions(self) -> tuple[float, float]:
        """How much of each input was read."""
        left, right = (
            0.0 if total is None else (rows / total if total else 1.0)
            for rows, total in zip(self.rows, self.total_rows, strict=True)
        )
        return left, right

    @property
    def reason(self) -> str | None:
        unknown = self._unknown_totals()
        if unknown is not None:
            return unknown
        for name, rows, total in zip(("left", "right"), self.rows, self.total_rows, strict=True):
            if total is not None and rows > total:
                return f"the {name} input has more rows ({rows:,}) than it said it would have ({total:,})"
        if self.joined_pairs >= self.total_pairs:
            return None if self.aggregate is not Aggregate.AVG or self.sums[0] else "no match was found"
        if self.joined_pairs == 0:
            return "rows of both inputs are needed, and one has not arrived yet"
        if self.aggregate is not Aggregate.COUNT and self.sums[0] == 0:
            return "no match was found so far"
        for side, name in enumerate(("left", "right")):
            if self.fractions[side] < 1 and self.sums[0] and (self.units[side] == 0 or self.same_pairs[side] == 0):
                other = ("right", "left")[side]
                return f"no row of the {name} input has met rows of the {other} one on its arrival yet"
            if self.fractions[side] < 1 and self.sums[0] and self._drawn(side) < LEAST_UNITS:
                return f"too few rows or blocks of the {name} input have arrived; an interval needs {LEAST_UNITS}"
        return None

    def get(self) -> Estimate | None:
        if self.reason is not None:
            return None
        pairs, total = self.joined_pairs, self.total_pairs
        if pairs >= total:
            exact = self._exact()
            return Estimate(exact, exact, exact, 1.0)
        if self.sums[0] == 0:
            return no_matches(total, pairs, min(self._drawn(0), self._drawn(1)), self.confidence)
        mean_count, mean_value = self.sums[0] / pairs, self.sums[1] / pairs
        of = weights(self.aggregate, mean_count, mean_value)
        parts = self._variance(of, of[0] * mean_count + of[1] * mean_value)
        quantile = ALLOWANCE * t_quantile((1 + self.confidence) / 2, self._degrees(parts))
        positive = self.aggregate is Aggregate.COUNT or not self.negative
        center, low, high = scaled_interval(
            self.aggregate, mean_count, mean_value, sum(parts), total, quantile, positive=positive
        )
        if self.aggregate is Aggregate.COUNT:
            low, high = bounded(center, low, high, self.sums[0], total - pairs)
        return Estimate(center, low, high, self.confidence)

    def unit_variances(self) -> tuple[tuple[float, float], float]:
        """Variances of the rate of a left unit, of a right unit, and of what is left of a pair."""
        if self.joined_pairs == 0:
            return (0.0, 0.0), 0.0
        left, right, rest = self._components((1.0, 0.0), self.sums[0] / self.joined_pairs)
        return (left, right), rest

    def _exact(self) -> float:
        if self.aggregate is Aggregate.AVG:
            return self.sums[1] / self.sums[0]
        return self.sums[0] if self.aggregate is Aggregate.COUNT else self.sums[1]

    def _variance(self, of: Weights, mean: float) -> tuple[float, float, float]:
        """The three parts of the variance of the mean over the joined pairs of a combination of (1, value)."""
        left, right, rest = self._components(of, mean)
        unread = [1 - fraction for fraction in self.fractions]
        whole = self.pairs == 0
        between_unread = unread[0] * unread[1] if whole else 1 - self.joined_pairs / self.total_pairs
        return (
            unread[0] * left / max(1.0, self._drawn(0)),
            unread[1] * right / max(1.0, self._drawn(1)),
            between_unread * rest / self.joined_pairs,
        )

    def _components(self, of: Weights, mean: float) -> tuple[float, float, float]:
        """S_L², S_R² and S_LR² of a combination of (1, value) whose mean over the joined pairs is ``mean``."""
        pairs = self.joined_pairs
        own = quadratic(self.own, of) / pairs
        squared_rates = []
        for side, same in enumerate((self.same_0, self.same_1)):
            squared = max(0.0, quadratic(same, of)) / self.same_pairs[side] if self.same_pairs[side] else 0.0
            # In a finite input a row also meets each partner with itself.
            other_total = self.total_rows[1 - side]
            share = 1 / other_total if other_total else 0.0
            squared_rates.append((1 - share) * squared + share * own)
        left = right = rest = 0.0
        # The square of the true mean is that of the estimate less its variance: a few rounds settle it.
        for _ in range(_ROUNDS):
            variance = left / max(1.0, self._drawn(0)) + right / max(1.0, self._drawn(1)) + rest / pairs
            mean_squared = max(0.0, mean * mean - variance)
            left, right = (max(0.0, rate - mean_squared) for rate in squared_rates)
            rest = max(0.0, own - mean_squared - left - right)
        return left, right, rest

    def _drawn(self, side: int) -> float:
        """How many units of a side were drawn, counted so that unequal ones weigh as they should (Kish)."""
        squares = self.spread[side] + self._open_squares[side] * self._open_rows[1 - side] ** 2
        return self.joined_pairs**2 / squares if squares else 0.0

    def _degrees(self, parts: tuple[float, float, float]) -> float:
        """Degrees of freedom of the variance (Welch and Satterthwaite)."""
        doubt = sum(
            part * part / max(1.0, min(self._drawn(side), self.units[side]) - 1)
            for side, part in enumerate(parts[:2])
            if part > 0
        )
        return sum(parts) ** 2 / doubt if doubt > 0 else math.inf

    def _closed(self) -> Self:
        copy = self.from_values(self.to_values())
        copy.new_block()
        return copy
