"""A sweep area for predicates that have none of their own: it keeps everything and compares every pair.

The order is constant, so nothing ever expires and a sweep over such areas is a block nested loop.
"""

from __future__ import annotations

import numpy as np

from earlyjoin.algorithms.sweep_areas import AreaMaker, SweepArea, SweepCursor, SweepOrder, SweepWords, make_sweep
from earlyjoin.errors import BudgetExceeded, UnsupportedError
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.budget import Account
from earlyjoin.state.growable import Growable
from earlyjoin.state.key_store import KeyStore


class ConstantOrder(SweepOrder):
    """All elements pass by at once."""

    def words(self, side: int, keys: Keys) -> SweepWords:
        """Zeros."""
        return np.zeros(len(keys), dtype=np.int64)


class ScanArea(SweepArea):
    """Elements in the order in which they came."""

    def __init__(self, predicate: BoundPredicate, side: int, account: Account) -> None:
        self._predicate = predicate
        self._side = side
        self._keys = KeyStore(account)
        self._handles = Growable(np.int64, account)

    def insert(self, keys: Keys, words: SweepWords, handles: Int64) -> None:
        """Keep them."""
        first = len(self)
        self._keys.append(keys)
        try:
            self._handles.append(handles)
        except BudgetExceeded:
            self._keys.truncate(first)
            raise

    def query(self, keys: Keys, cursor: SweepCursor, out_handles: Int64, out_rows: Int64) -> int:
        """Compare row by row; ``place`` is the first element not compared yet."""
        mine, found = self._keys.keys(), 0
        while mine is not None and cursor.row < len(keys):
            start = max(0, cursor.place)
            here = np.arange(start, len(self), dtype=np.int64)
            there = np.full(len(here), cursor.row, dtype=np.int64)
            if self._side == 0:
                holds = self._predicate.holds(mine, here, keys, there)
            else:
                holds = self._predicate.holds(keys, there, mine, here)
            matches = here[holds][: len(out_rows) - found]
            out_handles[found : found + len(matches)] = self._handles.data[matches]
            out_rows[found : found + len(matches)] = cursor.row
            found += len(matches)
            if found == len(out_rows):
                cursor.place = int(matches[-1]) + 1 if len(matches) else start
                return found
            cursor.row, cursor.place = cursor.row + 1, -1
        cursor.row = len(keys)
        return found

    def expire(self, frontier: int | float) -> None:
        """Nothing is known to be over."""

    def clear(self) -> None:
        """Forget everything."""
        self._keys.clear()
        self._handles.clear()

    def __len__(self) -> int:
        return self._handles.length

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._keys.nbytes + self._handles.nbytes

    @property
    def handles(self) -> Int64:
        """The names of the elements."""
        return np.asarray(self._handles.data, dtype=np.int64)


def sweep_or_scan(predicate: BoundPredicate) -> tuple[SweepOrder, AreaMaker]:
    """The predicate's own order and areas, or those of this module where it has none."""
    try:
        return make_sweep(predicate)
    except UnsupportedError:
        return ConstantOrder(), lambda side, account: ScanArea(predicate, side, account)
