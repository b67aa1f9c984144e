"""Points within eps (PMJ table 1, similarity join): order by the coordinate that tells most points apart.

The paper orders by Z-codes of eps-cubes; in many dimensions most cubes straddle the first split, and everything stays
in the root (papers/notes.md). Here the sweep goes along one dimension, chunks are sorted by a second one, and the
distance is summed in the order in which dimensions tell points apart, until it is too large. What is left is decided
by the predicate's own sum.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from earlyjoin.algorithms.sweep_areas.base import SweepCursor, SweepOrder, SweepWords
from earlyjoin.algorithms.sweep_areas.elements import flags
from earlyjoin.algorithms.sweep_areas.plane import HANDLES, OWN, SECOND, PlaneArea
from earlyjoin.kernels import sweep_plane
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.budget import Account

_SAMPLE = 2048
_TINY = 1e-161
"""Steps up to about 2**-537 have a square that rounds to 0 or to the square of a smaller eps."""

Float64 = npt.NDArray[np.float64]


def _reach(eps: float) -> float:
    """A step whose square is surely above the rounded square of eps."""
    return float(np.nextafter(eps * (1 + 1e-15) + _TINY, np.inf))


class NearOrder(SweepOrder):
    """By one coordinate, chosen from the first points seen."""

    def __init__(self, eps: float) -> None:
        self._reach = _reach(eps)
        self._dimensions: Int64 | None = None

    @property
    def dimensions(self) -> Int64:
        """The columns, the most selective first."""
        assert self._dimensions is not None, "no points were given to the order yet"
        return self._dimensions

    def words(self, side: int, keys: Keys) -> SweepWords:
        points = cast(Float64, keys.words if keys.valid is None else keys.words[keys.valid])
        if self._dimensions is None:
            if not len(points):
                return np.zeros(len(keys), dtype=np.float64)
            self._dimensions = self._choose(points[:: 1 + len(points) // _SAMPLE])
        word = cast(Float64, keys.words[:, self._dimensions[0]])
        return word if keys.valid is None else np.where(keys.valid, word, 0.0)

    def _choose(self, sample: Float64) -> Int64:
        """Dimensions by how many pairs of the sample are within eps on them alone."""
        with np.errstate(over="ignore"):
            columns = np.sort(sample, axis=0).T
            close = [np.searchsorted(values, values + self._reach, side="right").sum() for values in columns]
        return np.argsort(close, kind="stable").astype(np.int64)

    def state(self) -> dict[str, Any]:
        return {} if self._dimensions is None else {"dimensions": self._dimensions.tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        if state:
            self._dimensions = np.array(state["dimensions"], dtype=np.int64)


class NearArea(PlaneArea):
    """Points, with their coordinates in the order that was chosen."""

    def __init__(self, account: Account, order: NearOrder, eps: float, width: int) -> None:
        super().__init__(account, np.float64, (np.float64, width))
        self._order = order
        square = eps * eps
        self._reach = _reach(eps)
        self._limits = square, square * (1 + 1e-12) + 1e-318, self._reach

    def _columns(self, keys: Keys, words: SweepWords, handles: Int64) -> tuple[npt.NDArray[Any], ...]:
        points = keys.words[:, self._order.dimensions]
        with np.errstate(over="ignore"):
            last = np.nextafter(points[:, 0] + self._reach, np.inf)
        return points[:, min(1, keys.width - 1)], points[:, 0], last, handles, points

    def query(self, keys: Keys, cursor: SweepCursor, out_handles: Int64, out_rows: Int64) -> int:
        if not len(self):
            cursor.row = len(keys)
            return 0
        column = self._elements.column
        area = column(SECOND), column(HANDLES), column(OWN)
        found, cursor.row, cursor.place = sweep_plane.near_pairs(
            self._spans(), self._bounds(), area, cast(Float64, keys.words), flags(keys.valid), self._order.dimensions,
            self._limits, cursor.row, cursor.place, out_handles, out_rows,
        )  # fmt: skip
        return found
