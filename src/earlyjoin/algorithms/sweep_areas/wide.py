"""Elements whose keys have several words or bytes (PMJ section 3.1), and equality of such keys.

Equality of several words sweeps by a hash of all of them: with the first column alone, a column of few values would
keep large parts of the inputs in the area. Words and bytes are then compared exactly.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from earlyjoin.algorithms.sweep_areas.base import SweepCursor, SweepOrder, SweepWords
from earlyjoin.algorithms.sweep_areas.elements import Elements, StoredArea, flags, matchable
from earlyjoin.kernels import sweep_ranges, sweep_wide
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.budget import Account
from earlyjoin.state.growable import Growable

_NO_BYTES = np.empty(0, dtype=np.uint8)
_NO_OFFSETS = np.empty(0, dtype=np.int64)
_SWEEP, _HANDLES, _WORDS, _BEGINS, _ENDS, _ORDER = range(6)


class HashOrder(SweepOrder):
    """By the only word of the key, or by a hash of its words."""

    by_value = False

    def words(self, side: int, keys: Keys) -> SweepWords:
        return sweep_wide.sweep_words(cast(Int64, keys.words))


class WideElements:
    """Sorted by sweep word; the bytes of the keys lie in one heap, in the same order."""

    def __init__(self, account: Account, width: int) -> None:
        plain: tuple[npt.DTypeLike, None] = (np.int64, None)
        self._columns = Elements(account, plain, plain, (np.int64, width), plain, plain, plain)
        self._heap = Growable(np.uint8, account)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def nbytes(self) -> int:
        """Bytes held, room included."""
        return self._columns.nbytes + self._heap.nbytes

    @property
    def handles(self) -> Int64:
        """The handles of all elements."""
        return self._columns.column(_HANDLES)

    def append(self, sweep: npt.NDArray[Any], keys: Keys, handles: Int64) -> None:
        """Add elements at the end; on BudgetExceeded nothing has changed."""
        first, count = len(self), len(keys)
        begins = ends = np.zeros(count, dtype=np.int64)
        self._columns.ensure(count)
        if keys.heap is not None and count:
            offsets = keys.heap.offsets
            bounds = offsets - offsets[0] + self._heap.length
            begins, ends = bounds[:-1], bounds[1:]
            self._heap.append(keys.heap.data[offsets[0] : offsets[-1]])
        self._columns.append(sweep, handles, keys.words, begins, ends, np.arange(first, first + count))

    def stored(self) -> sweep_wide.Stored:
        """The elements as kernels take them."""
        column = self._columns.column
        data = cast("npt.NDArray[np.uint8]", self._heap.data)
        return (
            column(_SWEEP), column(_HANDLES), column(_WORDS), column(_BEGINS), column(_ENDS), data, column(_ORDER)
        )  # fmt: skip

    def drop(self, count: int) -> None:
        """Forget the first ``count`` elements, which are also the first ``count`` of the order."""
        if not count:
            return
        self._columns.drop(count)
        self._columns.column(_ORDER)[:] -= count
        begins, ends = self._columns.column(_BEGINS), self._columns.column(_ENDS)
        dead = int(begins[0]) if len(self) else self._heap.length
        live = self._heap.length - dead
        if dead >= live:
            data = self._heap.data
            data[:live] = data[dead:]
            self._heap.truncate(live)
            begins -= dead
            ends -= dead

    def clear(self) -> None:
        """Forget everything and give the memory back."""
        self._columns.clear()
        self._heap.clear()


def asking(keys: Keys) -> sweep_wide.Asking:
    """Querying keys as kernels take them."""
    offsets, data = (_NO_OFFSETS, _NO_BYTES) if keys.heap is None else (keys.heap.offsets, keys.heap.data)
    return cast(Int64, keys.words), offsets, data, flags(keys.valid)


class WideEqualArea(StoredArea[WideElements]):
    """Equality of several words, or of bytes; u goes when its sweep word lies below the frontier."""

    def __init__(self, account: Account, width: int) -> None:
        self._elements = WideElements(account, width)

    def insert(self, keys: Keys, words: SweepWords, handles: Int64) -> None:
        if keys.valid is not None:
            words = words[keys.valid]
        keys, handles = matchable(keys, handles)
        self._elements.append(words, keys, handles)

    def query(self, keys: Keys, cursor: SweepCursor, out_handles: Int64, out_rows: Int64) -> int:
        found, cursor.row, cursor.place = sweep_wide.equal_pairs(
            self._elements.stored(), asking(keys), cursor.row, cursor.place, out_handles, out_rows
        )
        return found

    def expire(self, frontier: int | float) -> None:
        sweep = self._elements.stored()[0]
        self._elements.drop(sweep_ranges.first_within(sweep, np.int64(frontier), np.int64(0), 0))

    @property
    def handles(self) -> Int64:
        return self._elements.handles
