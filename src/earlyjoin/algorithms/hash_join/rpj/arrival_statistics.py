"""How likely the next row is to be of which side and partition (RPJ section 4.2, equations 5 and 6).

P(j | Ri) comes from all rows of Ri so far: rows come in random order, so what came is a sample of what will come.
P(Ri) comes from recent rows, because the speed of an input changes: nrcnt is a mean in which a time unit counts
lambda times as much as the unit after it.

PAPER UNCLEAR: the length of a time unit. Here it is a number of arrivals of both inputs together, so that what leaves
depends on the order of the arrivals alone and not on the clock. At the paper's thousand tuples a second the default is
the paper's second. Until the first unit is over, the counts so far stand for nrcnt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from earlyjoin.predicates.encoding.keys import Int64

Float64 = npt.NDArray[np.float64]
UNIT_ROWS = 1000
DECAY = 0.5
"""lambda: what a unit keeps of its weight when the next is over."""


def partition_probability(totals: Int64) -> Float64:
    """P(j | Ri) of equation 5 for one side; zeros when nothing has come.

    >>> partition_probability(np.array([1, 3]))
    array([0.25, 0.75])
    """
    return totals / max(1, int(totals.sum()))


def arrival_probability(totals: Int64, recent: Float64, ended: tuple[bool, bool]) -> Float64:
    """p_arr of equation 6, shape (2, partitions): zero for a side that has ended.

    >>> arrival_probability(np.array([[1, 3], [2, 2]]), np.array([3.0, 1.0]), (False, False))
    array([[0.1875, 0.5625],
           [0.125 , 0.125 ]])
    """
    speed = np.where(ended, 0.0, recent)
    whole = speed.sum()
    shares = speed / whole if whole > 0 else np.where(ended, 0.0, 0.5)
    return np.stack([share * partition_probability(total) for share, total in zip(shares, totals, strict=True)])


class ArrivalStatistics:
    """n_total of every partition, nrcnt of both sides, and which sides have ended."""

    def __init__(self, partitions: int, *, unit_rows: int = UNIT_ROWS, decay: float = DECAY) -> None:
        self.totals = np.zeros((2, partitions), dtype=np.int64)
        self.ended = [False, False]
        self._unit_rows, self._decay = unit_rows, decay
        self._recent: Float64 | None = None
        self._unit = np.zeros(2, dtype=np.float64)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.totals.nbytes + 2 * self._unit.nbytes

    @property
    def recent(self) -> Float64:
        """Nrcnt of both sides."""
        return self._unit if self._recent is None else self._recent

    def arrived(self, side: int, counts: Int64) -> None:
        """So many rows of each partition of a side have come."""
        self.totals[side] += counts
        left = float(counts.sum())
        while left > 0:
            taken = min(left, self._unit_rows - self._unit.sum())
            self._unit[side] += taken
            left -= taken
            if self._unit.sum() >= self._unit_rows:
                self._end_unit()

    def _end_unit(self) -> None:
        old = self._recent
        self._recent = self._unit if old is None else self._decay * old + (1 - self._decay) * self._unit
        self._unit = np.zeros(2, dtype=np.float64)

    def end(self, side: int) -> None:
        """No more rows of this side."""
        self.ended[side] = True

    def probability(self) -> Float64:
        """p_arr now."""
        return arrival_probability(self.totals, self.recent, (self.ended[0], self.ended[1]))

    def save(self) -> dict[str, Any]:
        """Plain values for a snapshot."""
        recent = None if self._recent is None else self._recent.tolist()
        return {"totals": self.totals.tolist(), "ended": self.ended, "recent": recent, "unit": self._unit.tolist()}

    def load(self, values: dict[str, Any]) -> None:
        """The inverse of ``save``."""
        self.totals = np.asarray(values["totals"], dtype=np.int64)
        self.ended = list(values["ended"])
        self._recent = None if values["recent"] is None else np.asarray(values["recent"])
        self._unit = np.asarray(values["unit"])
