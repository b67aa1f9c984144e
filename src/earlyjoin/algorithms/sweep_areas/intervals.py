"""Overlapping intervals (PMJ table 1, temporal join): order by start; u goes when it ends before the frontier.

Elements stay in the order of their starts, under a tree of the largest ends. Those that ended are skipped by the tree
and swept out when they may be the larger part.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from earlyjoin.algorithms.sweep_areas.base import SweepCursor, SweepWords
from earlyjoin.algorithms.sweep_areas.elements import Elements, StoredArea, flags, matchable
from earlyjoin.errors import BudgetExceeded
from earlyjoin.kernels import sweep_overlaps as kernels
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.budget import Account

_FEW = 256
"""So many elements are looked through at every expiry."""
_LOWS, _HIGHS, _TOPS, _HANDLES = range(4)


class IntervalArea(StoredArea[Elements]):
    """Intervals by start, with an index of ends."""

    def __init__(self, account: Account, *, closed: bool) -> None:
        self._closed = closed
        self._elements = Elements(account, *((np.int64, None),) * 4)
        self._frontier: int | None = None
        self._due = _FEW
        """Size at which the elements are looked through again."""

    def insert(self, keys: Keys, words: SweepWords, handles: Int64) -> None:
        keys, handles = matchable(keys, handles)
        try:
            self._elements.ensure(len(keys))
        except BudgetExceeded:
            self._sweep_out()
            self._elements.ensure(len(keys))
        old = len(self._elements)
        self._elements.append(keys.words[:, 0], keys.words[:, 1], keys.words[:, 1], handles)
        self._index(old)

    def _index(self, first: int) -> None:
        kernels.raise_tops(self._elements.column(_HIGHS), self._elements.column(_TOPS), first)

    def query(self, keys: Keys, cursor: SweepCursor, out_handles: Int64, out_rows: Int64) -> int:
        column = self._elements.column
        area = column(_LOWS), column(_HIGHS), column(_TOPS), column(_HANDLES)
        queries = cast(Int64, keys.words)
        found, cursor.row, cursor.place = kernels.interval_pairs(
            area, queries, flags(keys.valid), self._closed, cursor.row, cursor.place, out_handles, out_rows
        )
        return found

    def expire(self, frontier: int | float) -> None:
        self._frontier = int(frontier)
        if len(self) <= _FEW or len(self) >= self._due:
            self._sweep_out()

    def _sweep_out(self) -> None:
        if self._frontier is None:
            return
        highs = self._elements.column(_HIGHS)
        alive = np.flatnonzero(highs >= self._frontier if self._closed else highs > self._frontier)
        if len(alive) < len(highs):
            self._elements.keep(alive)
            self._index(0)
        self._due = 2 * len(alive) + _FEW

    def clear(self) -> None:
        super().clear()
        self._frontier = None

    @property
    def handles(self) -> Int64:
        return self._elements.column(_HANDLES)
