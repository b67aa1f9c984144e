"""Arrays that grow inside a budget.

``realloc`` grows a large block without copying it on most systems (the kernel moves pages, not bytes), so growing
neither stalls nor needs room for two copies. The budget is asked for the new capacity before it is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from earlyjoin.errors import BudgetExceeded
from earlyjoin.state.budget import Account

_LEAST, _LEAST_NBYTES = 16, 128
"""What an array begins with: so many entries, if they take no more than that. Wide ones would take a small memory."""
_PIECE = 4096


class Growable:
    """A one- or two-dimensional array with room to grow along its first axis.

    Views taken from ``data`` are valid until the next growth: use them and let them go.
    """

    __slots__ = ("_account", "_array", "length")

    def __init__(self, dtype: npt.DTypeLike, account: Account, *, width: int | None = None) -> None:
        shape = (0,) if width is None else (0, width)
        self._array: npt.NDArray[np.generic] = np.empty(shape, dtype=dtype)
        self._account = account
        self.length = 0

    @property
    def data(self) -> npt.NDArray[np.generic]:
        """The filled part."""
        return self._array[: self.length]

    @property
    def whole(self) -> npt.NDArray[np.generic]:
        """The filled part and the room behind it, for kernels that write in place."""
        return self._array

    @property
    def nbytes(self) -> int:
        """Bytes held, room included."""
        return self._array.nbytes

    @property
    def row_nbytes(self) -> int:
        """Bytes of one entry."""
        return self._array.itemsize * (self._array.shape[1] if self._array.ndim == 2 else 1)

    def ensure(self, length: int) -> None:
        """Make room for ``length`` entries in all, or raise BudgetExceeded with nothing changed."""
        capacity = self._array.shape[0]
        if length <= capacity:
            return
        least = min(_LEAST, _LEAST_NBYTES // max(1, self.row_nbytes))
        generous = max(least, length, capacity + capacity // 2)
        for target in (generous, length):
            if self._account.try_reserve((target - capacity) * self.row_nbytes):
                self._array.resize((target, *self._array.shape[1:]), refcheck=False)
                return
        raise BudgetExceeded(f"{self._account.name} cannot grow to {length:,} entries of {self.row_nbytes} bytes")

    def append(self, values: npt.NDArray[np.generic] | Sequence[int]) -> None:
        """Add entries at the end."""
        stop = self.length + len(values)
        self.ensure(stop)
        self._array[self.length : stop] = values
        self.length = stop

    def extend(self, count: int) -> npt.NDArray[np.generic]:
        """Add ``count`` entries to be filled by the caller, zero at first only where never used before."""
        stop = self.length + count
        self.ensure(stop)
        start, self.length = self.length, stop
        return self._array[start:stop]

    def truncate(self, length: int) -> None:
        """Forget the entries from ``length`` on; the room stays."""
        self.length = min(self.length, length)

    def keep(self, index: npt.NDArray[np.int64]) -> None:
        """Let these entries, in ascending order, be all there are; in pieces, so that no second copy is needed."""
        for start in range(0, len(index), _PIECE):
            piece = index[start : start + _PIECE]
            self._array[start : start + len(piece)] = self._array[piece]
        self.length = len(index)

    def clear(self) -> None:
        """Forget everything and give the memory back."""
        self._account.release(self.nbytes)
        self._array = np.empty((0, *self._array.shape[1:]), dtype=self._array.dtype)
        self.length = 0
