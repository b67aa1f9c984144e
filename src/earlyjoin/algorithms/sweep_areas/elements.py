"""The elements of a sweep area (PMJ section 3.1): columns that grow at the end and are forgotten at the front."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from earlyjoin.algorithms.sweep_areas.base import SweepArea
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state.budget import Account
from earlyjoin.state.growable import Growable

_PIECE = 4096
_ROOMY = 64
_NO_FLAGS = np.empty(0, dtype=np.bool_)


class Elements:
    """Equally long arrays of one account. A view is valid until the next change."""

    def __init__(self, account: Account, *columns: tuple[npt.DTypeLike, int | None]) -> None:
        self._account = account
        self._columns = columns
        self._parts = [Growable(dtype, account, width=width) for dtype, width in columns]
        self._start = 0

    def __len__(self) -> int:
        return self._parts[0].length - self._start

    @property
    def nbytes(self) -> int:
        """Bytes held, room included."""
        return sum(part.nbytes for part in self._parts)

    def column(self, number: int) -> npt.NDArray[Any]:
        """The elements' values in one column."""
        return self._parts[number].data[self._start :]

    def ensure(self, more: int) -> None:
        """Make room for ``more`` elements, or raise BudgetExceeded with no element changed."""
        try:
            self._grow(more)
        except BudgetExceeded:
            if not self._start:
                raise
            self._close_gap()
            self._grow(more)

    def _grow(self, more: int) -> None:
        for part in self._parts:
            part.ensure(part.length + more)

    def append(self, *values: npt.NDArray[Any]) -> None:
        """Add elements at the end; on BudgetExceeded nothing has changed."""
        self.ensure(len(values[0]))
        for part, column in zip(self._parts, values, strict=True):
            part.append(column)

    def drop(self, count: int) -> None:
        """Forget the first ``count`` elements."""
        self._start += count
        if self._start >= len(self):
            self._close_gap()

    def truncate(self, count: int) -> None:
        """Forget all but the first ``count`` elements."""
        for part in self._parts:
            part.truncate(self._start + count)

    def keep(self, chosen: Int64, first: int = 0) -> None:
        """Let ``chosen`` (numbers counted from ``first``) be the elements from ``first`` on, in that order."""
        self._close_gap()
        stop = first + len(chosen)
        for part in self._parts:
            part.data[first:stop] = part.data[first:][chosen]
            part.truncate(stop)
        self._shrink()

    def clear(self) -> None:
        """Forget everything and give the memory back."""
        for part in self._parts:
            part.clear()
        self._start = 0

    def _close_gap(self) -> None:
        if not self._start:
            return
        count = len(self)
        step = max(self._start, _PIECE)  # in pieces that do not overlap, or are small: NumPy copies what overlaps
        for part in self._parts:
            values = part.data
            for first in range(0, count, step):
                values[first : min(first + step, count)] = values[self._start + first : self._start + first + step]
            part.truncate(count)
        self._start = 0
        self._shrink()

    def _shrink(self) -> None:
        """Give memory back when far more is held than used, if there is room to copy the few elements left."""
        count = len(self)
        for number, part in enumerate(self._parts):
            if part.nbytes <= part.row_nbytes * (4 * count + _ROOMY):
                continue
            dtype, width = self._columns[number]
            smaller = Growable(dtype, self._account, width=width)
            try:
                smaller.append(part.data)
            except BudgetExceeded:
                continue
            part.clear()
            self._parts[number] = smaller


class Store(Protocol):
    """What keeps the elements of an area."""

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        ...

    def clear(self) -> None:
        """Forget everything and give the memory back."""
        ...


StoreOf = TypeVar("StoreOf", bound=Store)


class StoredArea(SweepArea, Generic[StoreOf]):
    """An area that is its elements, and nothing else."""

    _elements: StoreOf

    def clear(self) -> None:
        self._elements.clear()

    def __len__(self) -> int:
        return len(self._elements)

    @property
    def nbytes(self) -> int:
        return self._elements.nbytes


def matchable(keys: Keys, handles: Int64) -> tuple[Keys, Int64]:
    """The rows that can match at all."""
    if keys.valid is None:
        return keys, handles
    chosen = np.flatnonzero(keys.valid)
    if len(chosen) == len(keys):
        return Keys(keys.words, keys.heap), handles
    return Keys(keys.words[chosen], keys.heap.take(chosen) if keys.heap is not None else None), handles[chosen]


def flags(valid: Bool | None) -> Bool:
    """``valid`` as kernels take it: empty when every row can match."""
    return _NO_FLAGS if valid is None else valid
