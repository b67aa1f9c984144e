"""The estimator of the PMJ paper, section 3.5: pairs as independent draws (equation 3, Theorem 3, interval 4).

It is kept for comparison. Pairs that share a row are not independent, so its interval is too narrow as soon as rows
differ in how many partners they have; :class:`~earlyjoin.algorithms.estimation.ripple.TwoSided` is the honest one.
"""

from __future__ import annotations

from typing import Self

from earlyjoin.algorithms.estimation.estimate import (
    Aggregate,
    Estimate,
    Estimator,
    quadratic,
    symmetric_interval,
    weights,
)
from earlyjoin.algorithms.estimation.quantiles import normal_quantile
from earlyjoin.algorithms.estimation.ripple import TwoSided


class IndependentPairs(Estimator):
    """Theorem 3: the variance of the mean over n of T pairs is (1 - n/T) V²/n, with V² the variance of a pair.

    >>> estimator = IndependentPairs((100, 100))
    >>> estimator.update((10, 10), 4)
    >>> estimator.get().rows
    400.0
    """

    _saved = ("pairs", "matches", "value", "square")

    def _start(self) -> None:
        self.pairs = 0
        self.matches = 0
        self.value = 0.0
        self.square = 0.0

    @classmethod
    def of(cls, joined: TwoSided) -> Self:
        """What the honest estimator has seen, seen as independent pairs: it knows all the sums that are needed here."""
        made = cls(joined.total_rows, aggregate=joined.aggregate, confidence=joined.confidence)
        made.pairs = int(joined.joined_pairs)
        made.matches = int(joined.own[0])
        made.value, made.square = joined.own[1:]
        return made

    def update(self, rows: tuple[int, int], matches: int, value: float = 0.0, square: float = 0.0) -> None:
        """A block: all pairs of so many rows of either side were joined.

        ``value`` is the sum of the expression over the matches, ``square`` that of its square.
        """
        self.pairs += rows[0] * rows[1]
        self.matches += matches
        self.value += value
        self.square += square

    @property
    def reason(self) -> str | None:
        if self.pairs < 2:
            return "fewer than two pairs of rows were joined so far"
        if self.aggregate is Aggregate.AVG and self.matches == 0:
            return "no match was found so far, so there is nothing to average"
        return self._unknown_totals()

    def get(self) -> Estimate | None:
        if self.reason is not None:
            return None
        n = self.pairs
        mean_count, mean_value = self.matches / n, self.value / n
        of = weights(self.aggregate, mean_count, mean_value)
        mean = of[0] * mean_count + of[1] * mean_value
        # V² with n - 1, as printed below the theorem.
        own = quadratic([self.matches, self.value, self.square], of)
        pair_variance = max(0.0, own - n * mean * mean) / (n - 1)
        variance = max(0.0, 1 - n / self.total_pairs) * pair_variance / n
        # PAPER UNCLEAR: (4) calls z_α "the α-quantile"; a (1 - α) interval with two ends needs that of 1 - α/2.
        z = normal_quantile((1 + self.confidence) / 2)
        if self.aggregate is Aggregate.AVG:
            center = mean_value / mean_count
            low, high = symmetric_interval(center, variance / mean_count**2, z)
        else:
            center = mean * self.total_pairs
            low, high = symmetric_interval(center, variance * self.total_pairs**2, z)
        if self.aggregate is Aggregate.COUNT:
            low = max(0.0, low)
        return Estimate(center, low, high, self.confidence)
