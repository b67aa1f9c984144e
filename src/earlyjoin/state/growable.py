"""Arrays that grow inside a budget.

A large block grows without being copied (the kernel moves pages, not bytes), so growing neither stalls nor needs room
for two copies. The budget is asked for the new capacity before it is taken.

Inside a limit in bytes large blocks of wide entries are mappings of their own. The allocator of the system leaves holes
where many of them grow side by side: a process with rows of 2 kB and 64 MB took twice what its arrays held. Narrow
rows leave smaller holes, and fresh pages would cost joins that flush and fill again a tenth of their time. There may be
only so many mappings, so what counts as large grows with the limit.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from earlyjoin.errors import BudgetExceeded
from earlyjoin.state.budget import Account

_LEAST, _LEAST_NBYTES = 16, 128
"""What an array begins with: so many entries, if they take no more than that. Wide ones would take a small memory."""
_PIECE = 4096
_LEAST_MAPPED, _MOST_MAPPINGS = 1 << 16, 1 << 14
WIDE_NBYTES = 256
"""Entries of so many bytes are wide."""


class Growable:
    """A one- or two-dimensional array with room to grow along its first axis.

    Views taken from ``data`` are valid until the next growth: use them and let them go.
    """

    __slots__ = ("_account", "_array", "_mapping", "length", "wide")

    def __init__(self, dtype: npt.DTypeLike, account: Account, *, width: int | None = None) -> None:
        shape = (0,) if width is None else (0, width)
        self._array: npt.NDArray[np.generic] = np.empty(shape, dtype=dtype)
        self._account = account
        self._mapping: mmap.mmap | None = None
        self.wide = self.row_nbytes >= WIDE_NBYTES
        """May it have a mapping? Those who put many bytes at once into an array of bytes set it."""
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
        for target in (length,) if self._account.tight else (generous, length):
            if self._account.try_reserve((target - capacity) * self.row_nbytes):
                self._resize((target, *self._array.shape[1:]))
                return
        raise BudgetExceeded(f"{self._account.name} cannot grow to {length:,} entries of {self.row_nbytes} bytes")

    def _resize(self, shape: tuple[int, ...]) -> None:
        limit = self._account.limit.bytes
        nbytes = shape[0] * self.row_nbytes
        large = self.wide and limit is not None and nbytes >= max(_LEAST_MAPPED, limit // _MOST_MAPPINGS)
        if self._mapping is None and not large:
            self._array.resize(shape, refcheck=False)
            return
        if self._mapping is not None and self._grow_mapping(shape, nbytes):
            return
        old = self._array
        try:
            self._mapping = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError:  # the system has no more mappings
            self._mapping, self._array = None, np.empty(shape, dtype=old.dtype)
        else:
            self._array = _array_in(self._mapping, shape, old.dtype)
        self._array[: self.length] = old[: self.length]

    def _grow_mapping(self, shape: tuple[int, ...], nbytes: int) -> bool:
        """Let the mapping have more pages; False, with nothing changed, if a view of it is in use."""
        mapping, dtype, old_shape = self._mapping, self._array.dtype, self._array.shape
        assert mapping is not None
        self._array = np.empty((0, *shape[1:]), dtype=dtype)
        try:
            mapping.resize(nbytes)
        except (BufferError, OSError, SystemError):  # in use, no room, or no system call for it
            shape = old_shape
        self._array = _array_in(mapping, shape, dtype)
        return shape is not old_shape

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
        self._mapping = None
        self.length = 0


def _array_in(mapping: mmap.mmap, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
    """An array of the mapping's bytes, which cannot be moved while the array or a view of it lives."""
    return np.frombuffer(mapping, np.uint8, int(np.prod(shape)) * np.dtype(dtype).itemsize).view(dtype).reshape(shape)
