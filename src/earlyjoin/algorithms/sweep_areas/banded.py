"""Band and one-word equality (PMJ table 1): order by the word; u goes when it lies more than eps below the frontier."""

from __future__ import annotations

import numpy as np

from earlyjoin.algorithms.sweep_areas.base import SweepCursor, SweepOrder, SweepWords
from earlyjoin.algorithms.sweep_areas.elements import Elements, StoredArea, flags, matchable
from earlyjoin.kernels import sweep_ranges as kernels
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.budget import Account


class FirstWordOrder(SweepOrder):
    """By the first word of the key."""

    def words(self, side: int, keys: Keys) -> SweepWords:
        first = keys.words[:, 0]
        if keys.valid is None or first.dtype != np.float64:
            return first
        return np.where(keys.valid, first, 0.0)  # a NaN has no place in an order


class BandArea(StoredArea[Elements]):
    """One sorted column; what matches a word is a range of it, and exactly that: rounded subtraction is monotonous."""

    def __init__(self, account: Account, eps: int | float) -> None:
        self._eps = np.float64(eps) if isinstance(eps, float) else np.int64(eps)
        self._elements = Elements(account, (self._eps.dtype, None), (np.int64, None))

    def insert(self, keys: Keys, words: SweepWords, handles: Int64) -> None:
        keys, handles = matchable(keys, handles)
        self._elements.append(keys.words[:, 0], handles)

    def query(self, keys: Keys, cursor: SweepCursor, out_handles: Int64, out_rows: Int64) -> int:
        words, handles, queries = self._elements.column(0), self._elements.column(1), keys.words[:, 0]
        found, cursor.row, cursor.place = kernels.band_pairs(
            words, handles, queries, flags(keys.valid), self._eps, cursor.row, cursor.place, out_handles, out_rows
        )
        return found

    def expire(self, frontier: int | float) -> None:
        words = self._elements.column(0)
        self._elements.drop(kernels.first_within(words, words.dtype.type(frontier), self._eps, 0))

    @property
    def handles(self) -> Int64:
        return self._elements.column(1)
