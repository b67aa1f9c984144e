"""Sums over matches: in all, and row by row for the rows of one side, of which only a bounded number are followed.

What is summed is a :class:`Measure`: 1 for every match, or the value of an expression. A row's sums tell how much rows
differ, which is all that the honest interval needs besides the totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Measure(NamedTuple):
    """What the matches of a step are worth. ``chosen`` None: all count; ``values`` None: only how many there are."""

    chosen: Flags | None = None
    values: Floats | None = None

    def rows(self, index: Counts) -> Counts:
        """The row numbers of the matches that count."""
        return index if self.chosen is None else index[self.chosen]

    def worth(self) -> Floats | None:
        """The values of the matches that count."""
        return self.values if self.chosen is None or self.values is None else self.values[self.chosen]


EVERY_MATCH = Measure()


@dataclass(frozen=True, slots=True)
class Totals:
    """Over matches: of 1, of the value, of its square, and how many values were below 0."""

    matches: float = 0.0
    value: float = 0.0
    square: float = 0.0
    negative: int = 0

    @classmethod
    def of(cls, count: int, measure: Measure) -> Self:
        """Of the matches of one step."""
        values = measure.worth()
        if values is None:
            return cls(float(count if measure.chosen is None else np.count_nonzero(measure.chosen)))
        return cls(len(values), float(values.sum()), product(values, values), int(np.count_nonzero(values < 0)))

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.matches + other.matches,
            self.value + other.value,
            self.square + other.square,
            self.negative + other.negative,
        )


@dataclass(frozen=True, slots=True)
class RowMoments:
    """How the matches are spread over some rows of a side."""

    rows: float = 0.0
    """Rows looked at; those without a match count too."""
    same: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Over pairs of different matches of one row: of 1·1, 1·value, value·value."""

    @classmethod
    def of(cls, rows: float, matches: Counts | Floats, values: Floats | None = None, square: float = 0.0) -> Self:
        """From each row's number of matches and sum of values; ``square``: of the value, over all these matches."""
        ones = product(matches, matches) - float(matches.sum())
        if values is None:
            return cls(rows, (ones, 0.0, 0.0))
        return cls(rows, (ones, product(matches, values) - float(values.sum()), product(values, values) - square))


class RowSums:
    """Matches and values of each of the first rows of one side of a block."""

    def __init__(self, most_rows: int, *, with_values: bool) -> None:
        self.matches = np.zeros(most_rows, dtype=np.int64)
        self.values = np.zeros(most_rows, dtype=np.float64) if with_values else None
        self.square = 0.0

    @staticmethod
    def nbytes_a_row(*, with_values: bool) -> int:
        """Bytes for each row that is followed."""
        return 16 if with_values else 8

    def add(self, index: Counts, measure: Measure) -> None:
        """The matches of a step, by the number of their row in the block; rows that are not followed are left out."""
        if len(self.matches) == 0:
            return
        index, values = measure.rows(index), measure.worth()
        followed = index < len(self.matches)
        if not followed.all():
            index, values = index[followed], None if values is None else values[followed]
        if len(index) == 0:
            return
        found = np.bincount(index)
        self.matches[: len(found)] += found
        if self.values is not None and values is not None:
            self.values[: len(found)] += np.bincount(index, weights=values)
            self.square += product(values, values)

    def moments(self, rows: int, kept: int) -> RowMoments:
        """Of a block side of ``rows`` rows, of which ``kept`` could match at all and so have numbers."""
        followed = min(kept, len(self.matches))
        if followed == 0:
            return RowMoments(float(rows) if len(self.matches) else 0.0)
        values = None if self.values is None else self.values[:followed]
        # Rows that cannot match have no number: as many of them go with those followed as with the others.
        return RowMoments.of(rows * followed / kept, self.matches[:followed], values, self.square)

    def clear(self) -> None:
        """A new block begins."""
        self.matches[:] = 0
        if self.values is not None:
            self.values[:] = 0
        self.square = 0.0


def product(a: Counts | Floats, b: Counts | Floats) -> float:
    """The scalar product. Not ``np.dot``: its threads wait for each other, 40 ms a batch beside a busy join."""
    return float(np.einsum("i,i->", a, b, dtype=np.float64, casting="unsafe"))
