"""Do all arrivals find matches at the same rate? They do when both inputs come in random and *independent* orders.

Two inputs that are each shuffled but in the same order (a table joined with itself, orders with their lines) find their
matches when partners arrive together, so that early rates are too high and no order check on one input can see it. Each
arrival (rows x rows of the other side, matches) goes into a bin; bins of one side must agree with all others within the
variance that :class:`~earlyjoin.algorithms.estimation.ripple.TwoSided` found.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from earlyjoin.algorithms.estimation.quantiles import chi_square_as_normal

MOST_BINS = 32
_LIMIT = 5.0


class RateCheck:
    """Matches and pairs of each arrival, neighbours merged when there are too many."""

    def __init__(self) -> None:
        self.bins: tuple[list[list[float]], list[list[float]]] = ([], [])
        """For each side: [rows, rows of the other side, pairs, matches]."""
        self._every = [1, 1]
        self._in_last = [0, 0]

    def update(self, side: int, rows: int, met: int, matches: float) -> None:
        """So many rows of ``side`` met so many of the other, and matched so often."""
        if rows == 0 or met == 0:
            return
        bins = self.bins[side]
        if bins and self._in_last[side] < self._every[side]:
            last = bins[-1]
            bins[-1] = [last[0] + rows, max(last[1], met), last[2] + rows * met, last[3] + matches]
            self._in_last[side] += 1
        else:
            bins.append([rows, met, float(rows) * met, matches])
            self._in_last[side] = 1
        if len(bins) > MOST_BINS:
            bins[:] = [_merged(bins[i : i + 2]) for i in range(0, len(bins), 2)]
            self._every[side] *= 2
            self._in_last[side] = self._every[side] // 2

    def add_to(self, number: int, rows: tuple[float, float], pairs: float, matches: float) -> None:
        """The same for blocks, which grow in stages: a bin for the first stages of all blocks, and so on."""
        if pairs == 0:
            return
        bins = self.bins[0]
        while len(bins) <= number:
            bins.append([0.0] * 4)
        bins[number] = [old + new for old, new in zip(bins[number], (*rows, pairs, matches), strict=True)]

    def agree(self, row_variances: tuple[float, float], pair_variance: float) -> bool:
        """Are the differences of the rates as small as these variances of rows and of pairs make them?"""
        sides = np.array([side for side in (0, 1) for _ in self.bins[side]])
        bins = np.array(self.bins[0] + self.bins[1], dtype=np.float64).reshape(-1, 4)
        filled = bins[:, 2] > 0
        sides, bins = sides[filled], bins[filled]
        if len(bins) < 2:
            return True
        rows, met, pairs, matches = bins.T
        mean = matches.sum() / pairs.sum()
        own, other = np.where(sides == 0, *row_variances), np.where(sides == 0, *row_variances[::-1])
        variance = own / rows + other / met + pair_variance / pairs
        usable = variance > 0
        # Between the mean and a bin both vary; rates of few expected matches are no normal numbers: leave them out.
        usable &= mean * pairs >= 5
        if np.count_nonzero(usable) < 2:
            return True
        differences = (matches[usable] / pairs[usable] - mean) ** 2 / variance[usable]
        return chi_square_as_normal(float(differences.sum()), int(usable.sum())) <= _LIMIT

    def to_values(self) -> dict[str, Any]:
        """Plain values."""
        return {"bins": [list(self.bins[0]), list(self.bins[1])], "every": self._every, "in_last": self._in_last}

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Self:
        """The inverse of ``to_values``."""
        made = cls()
        made.bins = (list(values["bins"][0]), list(values["bins"][1]))
        made._every, made._in_last = list(values["every"]), list(values["in_last"])
        return made


def _merged(bins: list[list[float]]) -> list[float]:
    rows, met, pairs, matches = (list(column) for column in zip(*bins, strict=True))
    return [sum(rows), max(met), sum(pairs), sum(matches)]
