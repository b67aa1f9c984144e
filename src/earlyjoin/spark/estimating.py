"""The size of the whole result, from the matches of every pair of blocks that was joined.

Blocks are drawn at random, rows are not: those of one file come together. So the unit is the block, as in a ripple join
whose rows are blocks: ``cells[i, j]`` matches of left block i with right block j, of ``blocks`` blocks in all. Whatever
the files have to do with each other is in the differences between blocks, and with it in the interval.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from earlyjoin.algorithms.estimation import Aggregate, Estimate, TwoSided
from earlyjoin.algorithms.estimation.quantiles import positive_interval, t_quantile
from earlyjoin.algorithms.estimation.ripple import ALLOWANCE, LEAST_UNITS

CONFIDENCE = 0.95

Cells = npt.NDArray[np.int64]


class BlockEstimate:
    """Grows with the rectangle of joined blocks."""

    def __init__(self, blocks: tuple[int, int]) -> None:
        self._blocks = blocks
        self.cells: Cells = np.zeros((0, 0), dtype=np.int64)
        self.reason: str | None = "no random blocks were joined yet"
        self._estimate: Estimate | None = None

    def update(self, cells: Cells) -> None:
        """The matches of all blocks drawn so far."""
        self.cells = cells
        self._estimate, self.reason = estimate_of(cells, self._blocks)

    def get(self, found: int) -> dict[str, Any] | None:
        """The estimate, of which so many rows were found already, or None."""
        if self._estimate is None:
            return None
        known = max(found, int(self.cells.sum()))
        low, high = (max(round_(end), known) for round_, end in ((math.floor, self._low), (math.ceil, self._high)))
        rows = min(max(round(self._estimate.rows), low), high)
        return {"rows": rows, "low": low, "high": high, "confidence": self._estimate.confidence}

    @property
    def _low(self) -> float:
        return self._estimate.low if self._estimate is not None else 0.0

    @property
    def _high(self) -> float:
        return self._estimate.high if self._estimate is not None else math.inf


def estimate_of(cells: Cells, blocks: tuple[int, int]) -> tuple[Estimate | None, str | None]:
    """The estimate from a rectangle of joined blocks, or why there is none."""
    rows, columns = cells.shape
    if not rows or not columns:
        return None, "no random blocks were joined yet"
    exact = float(cells.sum())
    if (rows, columns) == blocks:
        return Estimate(exact, exact, exact, 1.0), None
    if exact == 0:
        return None, f"no match was found in {rows} x {columns} random blocks"
    drawn = min(n for n, whole in zip(cells.shape, blocks, strict=True) if n < whole)
    if drawn < LEAST_UNITS:
        return None, f"only {drawn} random blocks of a side were joined; an interval needs {LEAST_UNITS}"
    if rows == blocks[0] or columns == blocks[1]:
        return _one_sided(cells.sum(axis=1 if columns == blocks[1] else 0), blocks[0 if columns == blocks[1] else 1])
    estimator = TwoSided(blocks, aggregate=Aggregate.SUM, confidence=_widened(_matching(cells)))
    values = cells.astype(np.float64)
    squares = float(np.sum(values * values))
    estimator.update(0, rows)
    estimator.update(1, columns, np.full(columns, rows), values.sum(axis=0), squares)
    # Left blocks have met all right ones too, though they did not come after them: the sums are symmetric.
    sums = values.sum(axis=1)
    estimator.same_0 = [
        float(rows * columns * (columns - 1)),
        float((columns - 1) * sums.sum()),
        float(np.sum(sums * sums)) - squares,
    ]
    estimator.same_pairs[0] = rows * columns * (columns - 1.0)
    estimator.units[0] = float(rows)
    estimate = estimator.get()
    return None if estimate is None else replace(estimate, confidence=CONFIDENCE), estimator.reason


def _matching(cells: Cells) -> int:
    """Blocks with a match, of the side that has fewer: where files depend on each other most blocks have none.

    Blocks without a match say little about how blocks with one differ, so only the others count as degrees of freedom.
    """
    return min(int(np.count_nonzero(cells.sum(axis=axis))) for axis in (0, 1))


def _widened(units: int) -> float:
    """The confidence at which a normal interval is as wide as Student's: the variance comes of few blocks too."""
    return math.erf(t_quantile((1 + CONFIDENCE) / 2, max(2, units - 1)) / math.sqrt(2))


def _one_sided(totals: Cells, blocks: int) -> tuple[Estimate | None, str | None]:
    """One side was read completely: a plain random sample of the other side's blocks."""
    drawn = len(totals)
    if drawn < LEAST_UNITS:
        return None, f"only {drawn} random blocks were joined; an interval needs {LEAST_UNITS}"
    center = float(totals.mean()) * blocks
    variance = float(totals.var(ddof=1)) / drawn * (1 - drawn / blocks) * blocks**2
    quantile = ALLOWANCE * t_quantile((1 + CONFIDENCE) / 2, drawn - 1)
    return Estimate(center, *positive_interval(center, variance, quantile), CONFIDENCE), None
