"""The size of the whole result, from the matches of every pair of blocks that was joined.

Blocks are drawn at random, rows are not: those of one file come together. So the unit is the block, as in a ripple join
whose rows are blocks: ``cells[i, j]`` matches of left block i with right block j, of ``blocks`` blocks in all.

That needs few blocks where rows were dealt out to files at random, which keys show, and many where part i of one table
matches part i of the other: most of the result is then in pairs of blocks of which few were drawn, or none. An interval
is given only where enough of them were (docs/decisions/0021-intervals-from-few-blocks.md).
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
from earlyjoin.spark.early.key_evidence import Evidence

CONFIDENCE = 0.95
LEAST_MATCHES = 10
"""Fewer do not show whether matches are everywhere or in some pairs of files only."""
LIKE_CHANCE = 0.5
"""Matches dealt out at random are spread over more than this share of the pairs of blocks that is expected then."""
LEAST_EFFECTIVE = 10.0
"""Where files differ: blocks of a side, and pairs of them, over which matches have to be spread."""
LEAST_FILE_PAIRS = 6.0
"""Where files differ: pairs of files i and i that are to be expected among those drawn."""
MOST_UNMET = 0.2
"""Where files differ: a frequent key that was not met may add so much of the estimate."""

Cells = npt.NDArray[np.int64]


class BlockEstimate:
    """Grows with the rectangle of joined blocks."""

    def __init__(self, blocks: tuple[int, int]) -> None:
        self._blocks = blocks
        self.cells: Cells = np.zeros((0, 0), dtype=np.int64)
        self.reason: str | None = "no random blocks were joined yet"
        self._estimate: Estimate | None = None

    def update(self, cells: Cells, evidence: Evidence | None = None) -> None:
        """The matches of all blocks drawn so far, and what their keys say; without it, files are taken to differ."""
        self.cells = cells
        self._estimate, self.reason = estimate_of(cells, self._blocks, evidence)

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


def estimate_of(
    cells: Cells, blocks: tuple[int, int], evidence: Evidence | None = None
) -> tuple[Estimate | None, str | None]:
    """The estimate from a rectangle of joined blocks, or why there is none."""
    rows, columns = cells.shape
    if not rows or not columns:
        return None, "no random blocks were joined yet"
    exact = int(cells.sum())
    if (rows, columns) == blocks:
        return Estimate(float(exact), float(exact), float(exact), 1.0), None
    if exact == 0:
        return None, f"no match was found in {rows} x {columns} random blocks"
    drawn = min(n for n, whole in zip(cells.shape, blocks, strict=True) if n < whole)
    if drawn < LEAST_UNITS:
        return None, f"only {drawn} random blocks of a side were joined; an interval needs {LEAST_UNITS}"
    if exact < LEAST_MATCHES:
        return None, f"only {exact} matches in {rows} x {columns} random blocks; an interval needs {LEAST_MATCHES}"
    differing, why = _differing(cells, blocks, evidence)
    if not differing:
        degrees = max(2.0, _matching(cells, blocks) - 1)
    else:
        too_few = _too_few(cells, differing, max(blocks) if evidence is None else max(e.files for e in evidence))
        if too_few is not None:
            return None, f"{why}, and {too_few}"
        # Half of them: the files that belong together differ in their number of matches, too.
        degrees = min(_spread(cells, differing)) / 2
    estimate, reason = _interval(cells, blocks, degrees)
    if estimate is None or evidence is None:
        return estimate, reason
    unmet = _unmet(estimate, cells, blocks, evidence) if differing else None
    if unmet is not None:
        return None, f"{why}, and {unmet}"
    return _raised(estimate, cells, blocks, evidence), None


# Files that differ


def _differing(cells: Cells, blocks: tuple[int, int], evidence: Evidence | None) -> tuple[list[int], str]:
    """Sides whose files cannot stand for each other, and why; none where rows were dealt out at random."""
    parts = [side for side in (0, 1) if cells.shape[side] < blocks[side]]
    if evidence is None:
        return parts, "files may hold different keys"
    differing = [side for side in parts if not evidence[side].mixed]
    names = " and ".join(("left", "right")[side] for side in differing)
    why = f"rows are not in random order: the files of the {names} input hold different keys"
    matches = float(cells.sum())
    if _effective(cells) < LIKE_CHANCE * cells.size * matches / (cells.size + matches):
        return parts, why if differing else "the files of one input match some files of the other far more than others"
    return differing, why


def _too_few(cells: Cells, differing: list[int], files: int) -> str | None:
    """Why the blocks that were drawn do not stand for all where files differ; None when they do."""
    rows, columns = cells.shape
    if min(_spread(cells, differing)) < LEAST_EFFECTIVE:
        return f"nearly all matches are in a few of the {rows} x {columns} random blocks that were joined"
    if len(differing) == 2 and rows * columns / files < LEAST_FILE_PAIRS:
        return f"{rows} x {columns} random blocks are too few for {files} files"
    return None


def _spread(cells: Cells, differing: list[int]) -> list[float]:
    """Over how many blocks of these sides matches are spread, and over how many pairs of them."""
    sides = [_effective(cells.sum(axis=1 - side)) for side in differing]
    return [*sides, _effective(cells)] if len(differing) == 2 else sides


def _effective(matches: Cells) -> float:
    """So many equal numbers would vary as much in their sum as these (Kish 1965)."""
    values = matches.astype(np.float64)
    return float(values.sum()) ** 2 / float(np.sum(values * values))


def _unmet(estimate: Estimate, cells: Cells, blocks: tuple[int, int], evidence: Evidence) -> str | None:
    """Is there a key, frequent on one side, that may be as frequent in files of the other that were not drawn?"""
    for side, name, other_name in ((0, "left", "right"), (1, "right", "left")):
        if cells.shape[1 - side] == blocks[1 - side]:
            continue
        here, there = evidence[side], evidence[1 - side]
        key = here.most_unmet * blocks[side] / cells.shape[side]
        share = here.most_unmet / max(1, here.rows)
        as_many = share * there.rows * blocks[1 - side] / cells.shape[1 - side] if there.repeats else 1.0
        if key * max(1.0, as_many) > MOST_UNMET * estimate.rows:
            return f"{share:.0%} of the rows on the {name} have one key, which was not met on the {other_name} yet"
    return None


def _raised(estimate: Estimate, cells: Cells, blocks: tuple[int, int], evidence: Evidence) -> Estimate:
    """Frequent keys of one side that were not met may have partners that were not drawn: the upper end has room."""
    more = 0.0
    for side in (0, 1):
        if cells.shape[1 - side] < blocks[1 - side]:
            partners = 1 + evidence[1 - side].repeats * blocks[1 - side] / cells.shape[1 - side]
            more += evidence[side].unmet * blocks[side] / cells.shape[side] * partners
    return replace(estimate, high=estimate.high + more)


# Intervals


def _interval(cells: Cells, blocks: tuple[int, int], degrees: float) -> tuple[Estimate | None, str | None]:
    rows, columns = cells.shape
    if rows == blocks[0] or columns == blocks[1]:
        side = 0 if columns == blocks[1] else 1
        return _one_sided(cells.sum(axis=1 - side), blocks[side], degrees), None
    estimator = TwoSided(blocks, aggregate=Aggregate.SUM, confidence=_widened(degrees))
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


def _matching(cells: Cells, blocks: tuple[int, int]) -> int:
    """Blocks with a match, of the side that has fewer: those without say little about how much the others differ."""
    return min(int(np.count_nonzero(cells.sum(axis=1 - side))) for side in (0, 1) if cells.shape[side] < blocks[side])


def _widened(degrees: float) -> float:
    """The confidence at which a normal interval is as wide as Student's: the variance comes of few blocks too."""
    return math.erf(t_quantile((1 + CONFIDENCE) / 2, degrees) / math.sqrt(2))


def _one_sided(totals: Cells, blocks: int, degrees: float) -> Estimate:
    """One side was read completely: a plain random sample of the other side's blocks."""
    drawn = len(totals)
    center = float(totals.mean()) * blocks
    variance = float(totals.var(ddof=1)) / drawn * (1 - drawn / blocks) * blocks**2
    quantile = ALLOWANCE * t_quantile((1 + CONFIDENCE) / 2, min(degrees, drawn - 1))
    return Estimate(center, *positive_interval(center, variance, quantile), CONFIDENCE)
