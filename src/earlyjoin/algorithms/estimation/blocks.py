"""Between-block variance: an honest interval where nothing is known but the number of matches of each block.

Blocks of disjoint rows of both inputs in random order (PMJ's pairs of initial runs) are exchangeable, whatever the
pairs inside a block share; how much their rates differ tells how far off the mean rate is (survey sampling: a ratio
estimate with clusters). It knows no rows, so it cannot tell how much of the variance disappears when an input is nearly
read: late in a run it is wider than :class:`~earlyjoin.algorithms.estimation.ripple.TwoSided`.
"""

from __future__ import annotations

import math

from earlyjoin.algorithms.estimation.estimate import (
    Aggregate,
    Estimate,
    Estimator,
    quadratic,
    scaled_interval,
    weights,
)
from earlyjoin.algorithms.estimation.quantiles import t_quantile

LEAST_BLOCKS = 3


class BetweenBlocks(Estimator):
    """Mean rate of the blocks and the variance between them, Student's t with one degree less than blocks.

    >>> estimator = BetweenBlocks((100, 100))
    >>> for matches in (3, 5, 4):
    ...     estimator.update((10, 10), matches)
    >>> estimator.get().rows
    400.0
    """

    _saved = ("blocks", "pairs", "pairs_squared", "least_rows", "sums", "with_pairs", "products", "negative")

    def _start(self) -> None:
        self.blocks = 0
        self.pairs = 0
        self.pairs_squared = 0
        self.least_rows = 0
        """Rows of the shorter side of each block: so many pairs that share no row."""
        self.sums = [0.0, 0.0]
        """Of matches and of values."""
        self.with_pairs = [0.0, 0.0]
        """Of their products with the pairs of the block."""
        self.products = [0.0, 0.0, 0.0]
        """Of matches², matches · value, value²."""
        self.negative = 0

    def update(self, rows: tuple[int, int], matches: int, value: float = 0.0) -> None:
        """A block of rows that are in no other block: all pairs of so many rows of either side were joined."""
        pairs = rows[0] * rows[1]
        if pairs == 0:
            return
        self.blocks += 1
        self.pairs += pairs
        self.pairs_squared += pairs * pairs
        self.least_rows += min(rows)
        self.sums = [self.sums[0] + matches, self.sums[1] + value]
        self.with_pairs = [self.with_pairs[0] + matches * pairs, self.with_pairs[1] + value * pairs]
        new = (matches * matches, matches * value, value * value)
        self.products = [old + more for old, more in zip(self.products, new, strict=True)]
        self.negative += value < 0

    @property
    def reason(self) -> str | None:
        if self.pairs and self.pairs >= self.total_pairs:
            return None
        if self.blocks < LEAST_BLOCKS:
            return f"only {self.blocks} blocks were joined so far; an interval needs {LEAST_BLOCKS}"
        if self.aggregate is not Aggregate.COUNT and self.sums[0] == 0:
            return "no match was found so far"
        return self._unknown_totals()

    def get(self) -> Estimate | None:
        if self.reason is not None:
            return None
        mean_count, mean_value = (total / self.pairs for total in self.sums)
        total = self.total_pairs
        if self.sums[0] == 0:
            return no_matches(total, self.pairs, self.least_rows, self.confidence)
        of = weights(self.aggregate, mean_count, mean_value)
        mean = of[0] * mean_count + of[1] * mean_value
        # Sum of (matches - mean * pairs)² over the blocks, a ratio estimate's residuals.
        crossed = of[0] * self.with_pairs[0] + of[1] * self.with_pairs[1]
        residuals = quadratic(self.products, of) - 2 * mean * crossed + mean**2 * self.pairs_squared
        between = max(0.0, residuals) * self.blocks / max(1, self.blocks - 1) / self.pairs**2
        # Whatever the blocks say: a mean of independent draws is never more exact than this.
        least = mean_count / self.pairs if self.aggregate is Aggregate.COUNT else 0.0
        variance = max(between, least) * max(0.0, 1 - self.pairs / total)
        quantile = t_quantile((1 + self.confidence) / 2, max(1, self.blocks - 1))
        positive = self.aggregate is Aggregate.COUNT or not self.negative
        center, low, high = scaled_interval(
            self.aggregate, mean_count, mean_value, variance, total, quantile, positive=positive
        )
        if self.aggregate is Aggregate.COUNT:
            low, high = bounded(center, low, high, self.sums[0], total - self.pairs)
        return Estimate(center, low, high, 1.0 if self.pairs >= total else self.confidence)


def bounded(center: float, low: float, high: float, found: float, pairs_left: float) -> tuple[float, float]:
    """The part of an interval that is possible: what was found is in the result, and no more than the pairs left."""
    return min(center, max(low, found)), max(center, min(high, found + pairs_left))


def no_matches(total_pairs: float, pairs: float, independent_pairs: float, confidence: float) -> Estimate:
    """No match yet: the rule of three, by the pairs that share no row, since those that do may all fail together."""
    most = -math.log(1 - confidence) / max(1.0, independent_pairs)
    return Estimate(0.0, 0.0, min(1.0, most) * max(0.0, total_pairs - pairs), confidence)
