"""Encoded keys in memory, numbered like the rows they belong to, counted against a budget."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from earlyjoin.errors import BudgetExceeded
from earlyjoin.kernels.keeping_bytes import keep_bytes
from earlyjoin.predicates.encoding.keys import Bool, Bytes, Int64, Keys
from earlyjoin.state.budget import Account
from earlyjoin.state.growable import Growable


class KeyStore:
    """Keys of one predicate and side. What it holds is shaped by the first keys that it is given."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._words: Growable | None = None
        self._offsets: Growable | None = None
        self._heap: Growable | None = None
        self._valid: Growable | None = None

    def __len__(self) -> int:
        return self._words.length if self._words is not None else 0

    @property
    def nbytes(self) -> int:
        """Bytes held, room for growth included."""
        return sum(part.nbytes for part in self._parts())

    def append(self, keys: Keys) -> None:
        """Add keys at the end; on BudgetExceeded the store is as it was."""
        first = len(self)
        if self._words is None:
            self._words = Growable(keys.words.dtype, self._account, width=keys.width)
            if keys.heap is not None:
                self._offsets = Growable(np.int64, self._account)
                self._heap = Growable(np.uint8, self._account)
        try:
            self._append_heap(keys.heap)
            self._append_validity(keys.valid, first, len(keys))
            self._words.append(keys.words)
        except BudgetExceeded:
            self.truncate(first)
            raise

    def _append_heap(self, heap: Bytes | None) -> None:
        if heap is None or self._offsets is None or self._heap is None:
            return
        if self._offsets.length == 0:
            self._offsets.append(np.zeros(1, dtype=np.int64))
        self._offsets.ensure(self._offsets.length + len(heap))
        shift = self._heap.length - heap.offsets[0]
        self._heap.append(heap.data[heap.offsets[0] : heap.offsets[-1]])
        self._offsets.append(heap.offsets[1:] + shift)

    def _append_validity(self, valid: Bool | None, first: int, count: int) -> None:
        if self._valid is None and valid is not None:
            flags = Growable(np.bool_, self._account)
            flags.extend(first)[:] = True
            self._valid = flags  # only now: a refusal must not leave flags that are shorter than the keys
        if self._valid is not None:
            self._valid.append(np.ones(count, dtype=np.bool_) if valid is None else valid)

    def keys(self) -> Keys | None:
        """All keys, as views that are valid until the next append; None before the first."""
        if self._words is None:
            return None
        heap = None
        if self._offsets is not None and self._heap is not None:
            offsets = self._offsets.data if self._offsets.length else np.zeros(1, dtype=np.int64)
            heap = Bytes(cast(Int64, offsets), cast("npt.NDArray[np.uint8]", self._heap.data))
        valid = cast(Bool, self._valid.data) if self._valid is not None else None
        return Keys(cast(Int64, self._words.data), heap, valid)

    def truncate(self, length: int) -> None:
        """Forget the keys from ``length`` on."""
        if self._offsets is not None and self._heap is not None and self._offsets.length:
            self._offsets.truncate(length + 1)
            self._heap.truncate(int(self._offsets.data[-1]))
        for part in (self._words, self._valid):
            if part is not None:
                part.truncate(length)

    def keep(self, index: Int64) -> None:
        """Let these keys, in ascending order, be all there are."""
        if self._offsets is not None and self._heap is not None and self._offsets.length:
            heap = cast("npt.NDArray[np.uint8]", self._heap.data)
            end = keep_bytes(cast(Int64, self._offsets.data), heap, index)
            self._offsets.truncate(len(index) + 1)
            self._heap.truncate(end)
        for part in (self._words, self._valid):
            if part is not None:
                part.keep(index)

    def clear(self) -> None:
        """Forget everything and give the memory back."""
        for part in self._parts():
            part.clear()
        self._words = self._offsets = self._heap = self._valid = None

    def _parts(self) -> list[Growable]:
        return [part for part in (self._words, self._offsets, self._heap, self._valid) if part is not None]
