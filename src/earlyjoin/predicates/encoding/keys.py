"""Encoded keys: what a predicate makes of the columns it looks at, and all that kernels ever see of a row.

A key is a few 64-bit *words* and, for strings and bytes, a slice of a *heap*. Two rows are compared by words
first; the heap decides when the words (which then hold a hash) are equal, so equality is always exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bytes:
    """Variable-length bytes of n rows: row i is ``data[offsets[i]:offsets[i + 1]]``."""

    offsets: Int64
    data: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Bytes that these rows hold in memory."""
        return self.offsets.nbytes + int(self.offsets[-1] - self.offsets[0])

    def slice(self, start: int, stop: int) -> Bytes:
        """Rows ``start`` to ``stop`` without copying the bytes."""
        return Bytes(self.offsets[start : stop + 1], self.data)

    def take(self, index: Int64) -> Bytes:
        """The chosen rows, packed."""
        lengths = (self.offsets[1:] - self.offsets[:-1])[index]
        offsets = np.zeros(len(index) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        # Position of every output byte in the input: its row's start plus its place within the row.
        source = np.repeat(self.offsets[:-1][index] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Bytes(offsets, self.data[source])


@dataclass(frozen=True, slots=True)
class Keys:
    """The encoded keys of n rows.

    ``words`` has shape (n, width) and dtype int64 or float64 and is C-contiguous. ``valid`` is None when every row can
    match; rows where it is False (a null, an inverted interval) satisfy no predicate.
    """

    words: npt.NDArray[np.int64] | npt.NDArray[np.float64]
    heap: Bytes | None = None
    valid: Bool | None = None

    def __len__(self) -> int:
        return len(self.words)

    @property
    def width(self) -> int:
        """Words a row."""
        return int(self.words.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes that these keys hold in memory."""
        heap = self.heap.nbytes if self.heap is not None else 0
        valid = self.valid.nbytes if self.valid is not None else 0
        return self.words.nbytes + heap + valid

    def slice(self, start: int, stop: int) -> Keys:
        """Rows ``start`` to ``stop``."""
        heap = self.heap.slice(start, stop) if self.heap is not None else None
        valid = self.valid[start:stop] if self.valid is not None else None
        return Keys(self.words[start:stop], heap, valid)

    def take(self, index: Int64) -> Keys:
        """The chosen rows, in the order of ``index``."""
        heap = self.heap.take(index) if self.heap is not None else None
        valid = self.valid[index] if self.valid is not None else None
        return Keys(self.words[index], heap, valid)

    def without(self, excluded: Bool | None) -> Keys:
        """The same keys, all valid; those of some rows match nothing."""
        return self if excluded is None else Keys(self.words, self.heap, ~np.asarray(excluded, dtype=np.bool_))
