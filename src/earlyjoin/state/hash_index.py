"""A hash index over the keys of a key store, inside a budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from earlyjoin.errors import BudgetExceeded
from earlyjoin.kernels import hash_index as kernels
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state.budget import Account
from earlyjoin.state.growable import Growable

_FIRST_BUCKETS = 16
_MOST_ROWS = 2**31 - 1
_MOST_COMPARISONS = 2**24
"""Comparisons in one step of a probe: some tens of milliseconds."""
_NO_BYTES = np.empty(0, dtype=np.uint8)
_NO_OFFSETS = np.empty(0, dtype=np.int64)
_NO_FLAGS = np.empty(0, dtype=np.bool_)
_Int32 = npt.NDArray[np.int32]


@dataclass(slots=True)
class Cursor:
    """How far a probe has come: a row of the probing batch, and a stored row in its chain."""

    row: int = 0
    node: int = kernels.NOT_STARTED


class HashIndex:
    """Finds the stored rows with an equal key. Holds row numbers only; the keys stay in their store."""

    def __init__(self, account: Account) -> None:
        self._heads = Growable(np.int32, account)
        self._nexts = Growable(np.int32, account)
        self._mask = _FIRST_BUCKETS - 1
        self._split = 0

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._heads.nbytes + self._nexts.nbytes

    @property
    def buckets(self) -> int:
        """Buckets in use."""
        return self._mask + 1 + self._split

    def reserve(self, rows: int) -> None:
        """Make room for so many rows in all, or raise BudgetExceeded: ``insert`` will not fail then."""
        if rows > _MOST_ROWS:
            raise BudgetExceeded(f"a hash index numbers at most {_MOST_ROWS:,} rows, and there are {rows:,}")
        if self._heads.length == 0:
            self._heads.append(np.full(_FIRST_BUCKETS, -1, dtype=np.int32))
        self._nexts.ensure(rows)
        self._heads.ensure(max(self.buckets, rows))

    def insert(self, keys: Keys, first: int) -> None:
        """Add the rows from ``first`` on; ``keys`` are all keys of the store. Call ``reserve`` before."""
        stop = len(keys)
        heads, nexts = cast(_Int32, self._heads.whole), cast(_Int32, self._nexts.whole)
        words = cast(Int64, keys.words)
        self._nexts.length = stop
        kernels.insert(heads, nexts, words, _flags(keys.valid), first, stop, self._mask, self._split)
        if stop > self.buckets:
            self._mask, self._split = kernels.split_buckets(
                heads, nexts, words, self._mask, self._split, stop - self.buckets
            )
            self._heads.length = self.buckets

    def probe(
        self,
        keys: Keys,
        probing: Keys,
        cursor: Cursor,
        out_probing: Int64,
        out_stored: Int64,
        *,
        once: bool = False,
        skip: Bool | None = None,
    ) -> tuple[int, int]:
        """Fill the outputs with matching row numbers and move the cursor; returns (found, comparisons).

        ``keys`` are those of the store. ``once`` looks for one match a probing row; stored rows flagged in ``skip``
        are passed over.
        """
        if self._heads.length == 0:
            cursor.row = len(probing)
            return 0, 0
        offsets, data = _heap(keys)
        probing_offsets, probing_data = _heap(probing)
        found, cursor.row, cursor.node, comparisons = kernels.probe(
            cast(_Int32, self._heads.whole), cast(_Int32, self._nexts.whole), cast(Int64, keys.words), offsets, data,
            self._mask, self._split, _flags(skip),
            cast(Int64, probing.words), probing_offsets, probing_data, _flags(probing.valid),
            cursor.row, cursor.node, once, _MOST_COMPARISONS, out_probing, out_stored,
        )  # fmt: skip
        return found, comparisons

    def clear(self) -> None:
        """Forget everything and give the memory back."""
        self._heads.clear()
        self._nexts.clear()
        self._mask, self._split = _FIRST_BUCKETS - 1, 0


def _heap(keys: Keys) -> tuple[Int64, npt.NDArray[np.uint8]]:
    return (keys.heap.offsets, keys.heap.data) if keys.heap is not None else (_NO_OFFSETS, _NO_BYTES)


def _flags(flags: Bool | None) -> Bool:
    return flags if flags is not None else _NO_FLAGS
