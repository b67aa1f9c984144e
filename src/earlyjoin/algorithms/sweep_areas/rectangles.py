"""Intersecting rectangles (PMJ table 1, spatial join): order by low x; u goes when its high x lies below the frontier.

On the second axis a chunk is an interval index: low ends in order, under a tree of the largest high ends.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from earlyjoin.algorithms.sweep_areas.base import SweepCursor, SweepWords
from earlyjoin.algorithms.sweep_areas.elements import flags
from earlyjoin.algorithms.sweep_areas.plane import HANDLES, LAST, OWN, SECOND, SWEEP, PlaneArea
from earlyjoin.kernels import sweep_overlaps, sweep_plane
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.budget import Account

_Y_HIGHS, _TOPS = OWN, OWN + 1


class RectangleArea(PlaneArea):
    """Rectangles as words x1, y1, x2, y2."""

    def __init__(self, account: Account) -> None:
        super().__init__(account, np.int64, (np.int64, None), (np.int64, None))

    def _columns(self, keys: Keys, words: SweepWords, handles: Int64) -> tuple[npt.NDArray[Any], ...]:
        x_low, y_low, x_high, y_high = keys.words.T
        return y_low, x_low, x_high, handles, y_high, y_high

    def _index(self, first: int) -> None:
        sweep_overlaps.raise_tops(self._elements.column(_Y_HIGHS), self._elements.column(_TOPS), first)

    def query(self, keys: Keys, cursor: SweepCursor, out_handles: Int64, out_rows: Int64) -> int:
        column = self._elements.column
        area = column(SECOND), column(SWEEP), column(LAST), column(HANDLES), column(_Y_HIGHS), column(_TOPS)
        spans, bounds, queries = self._spans(), self._bounds(), cast(Int64, keys.words)
        found, cursor.row, cursor.place = sweep_plane.rectangle_pairs(
            spans, bounds, area, queries, flags(keys.valid), cursor.row, cursor.place, out_handles, out_rows
        )
        return found
