"""A sweep area over two axes (PMJ section 3.4, "organization"): chunks sorted by the second axis.

::

    insert ──▶ pieces ahead of the frontier, short on the sweep axis
    expire ──▶ pieces behind the frontier are settled: what is dead is left out, the rest merged into chunks of
               growing size, so that there are few chunks to search and few merges a row

A query leaves out the chunks that its extent on the sweep axis does not meet, and in the others finds what its extent
on the second axis meets by binary search or a tree. Columns of every area: the second axis (low end), the sweep word,
the largest sweep word that the element reaches, the handle; then those of the kind.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from earlyjoin.algorithms.sweep_areas.base import SweepArea, SweepWords
from earlyjoin.algorithms.sweep_areas.elements import Elements, matchable
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.budget import Account

PIECE = 512
_FEW = 256
"""So many elements are looked through at every expiry."""
SECOND, SWEEP, LAST, HANDLES, OWN = range(5)


class PlaneArea(SweepArea):
    """Elements in chunks. Subclasses say what the columns are and how to query them."""

    def __init__(self, account: Account, dtype: npt.DTypeLike, *own: tuple[npt.DTypeLike, int | None]) -> None:
        self._elements = Elements(account, (dtype, None), (dtype, None), (dtype, None), (np.int64, None), *own)
        self._chunks = Elements(account, (np.int64, 2), (dtype, 3))
        self._settled = 0
        """How many of the chunks, from the first on, lie behind the frontier."""
        self._frontier: int | float | None = None

    @abstractmethod
    def _columns(self, keys: Keys, words: SweepWords, handles: Int64) -> tuple[npt.NDArray[Any], ...]:
        """The columns of elements."""

    def _index(self, first: int) -> None:
        """Elements from ``first`` on have changed."""

    def insert(self, keys: Keys, words: SweepWords, handles: Int64) -> None:
        if keys.valid is not None:
            words = words[keys.valid]
        keys, handles = matchable(keys, handles)
        if not len(keys):
            return
        columns = self._columns(keys, words, handles)
        try:
            self._ensure(len(keys))
        except BudgetExceeded:
            self._settle(self._settled, 0)
            self._ensure(len(keys))
        first, chunk = len(self._elements), len(self._chunks)
        self._elements.append(*columns)
        if chunk > self._settled and self._sizes()[-1] < PIECE // 2:
            # Few rows at a time would leave a piece for each: grow the last one instead.
            chunk -= 1
            first = int(self._spans()[chunk, 0])
        self._cut(first, chunk)
        self._index(first)

    def _ensure(self, more: int) -> None:
        self._elements.ensure(more)
        self._chunks.ensure(more // PIECE + 2)

    def _cut(self, first: int, chunk: int) -> None:
        """Make the elements from ``first`` on, ascending by sweep word, pieces from number ``chunk`` on."""
        count = len(self._elements) - first
        starts = np.arange(0, count, PIECE)
        stops = np.minimum(starts + PIECE, count)
        words = self._elements.column(SWEEP)[first:]
        lows, highs = np.minimum.reduceat(words, starts), np.maximum.reduceat(words, starts)
        lasts = np.maximum.reduceat(self._elements.column(LAST)[first:], starts)
        self._elements.keep(_sorted_pieces(self._elements.column(SECOND)[first:]), first)
        self._chunks.truncate(chunk)
        self._chunks.append(np.stack([starts + first, stops + first], axis=1), np.stack([lows, highs, lasts], axis=1))

    def expire(self, frontier: int | float) -> None:
        self._frontier = frontier
        bounds = self._bounds()
        begun = self._settled + int(np.count_nonzero(bounds[self._settled :, 1] <= frontier))
        first = self._settled
        if len(self) <= _FEW:
            first = 0
        elif begun > self._settled:
            sizes = self._sizes()
            total = int(sizes[first:begun].sum())
            while first > 0 and (sizes[first - 1] <= 2 * total or bounds[first - 1, 2] < frontier):
                first -= 1
                total += int(sizes[first])
        if begun > first:
            self._settle(begun, first)

    def _settle(self, begun: int, first: int) -> None:
        """Make one settled chunk of the living elements of the chunks ``first`` to ``begun``."""
        if begun == first or self._frontier is None:
            return
        spans, bounds = self._spans().copy(), self._bounds().copy()
        start, stop = int(spans[first, 0]), int(spans[begun - 1, 1])
        last = self._elements.column(LAST)[start:stop]
        alive = np.flatnonzero(last >= self._frontier)
        if len(alive) < len(last) or begun > first + 1:
            alive = alive[np.argsort(self._elements.column(SECOND)[start:stop][alive], kind="stable")]
            rest = np.arange(stop - start, len(self._elements) - start)
            self._elements.keep(np.concatenate([alive, rest]), start)
            self._index(start)
        merged = slice(first, first + 1) if len(alive) else slice(first, first)
        span = np.array([[start, start + len(alive)]])[: len(alive)]
        bound = np.array(
            [[bounds[first:begun, 0].min(), bounds[first:begun, 1].max(), bounds[first:begun, 2].max()]], bounds.dtype
        )[: len(alive)]
        self._settled = merged.stop
        self._chunks.truncate(first)
        shift = stop - start - len(alive)
        self._chunks.append(np.concatenate([span, spans[begun:] - shift]), np.concatenate([bound, bounds[begun:]]))

    def _spans(self) -> Int64:
        return self._chunks.column(0)

    def _bounds(self) -> npt.NDArray[Any]:
        return self._chunks.column(1)

    def _sizes(self) -> Int64:
        spans = self._spans()
        return spans[:, 1] - spans[:, 0]

    def clear(self) -> None:
        self._elements.clear()
        self._chunks.clear()
        self._settled = 0
        self._frontier = None

    def __len__(self) -> int:
        return len(self._elements)

    @property
    def nbytes(self) -> int:
        return self._elements.nbytes + self._chunks.nbytes

    @property
    def handles(self) -> Int64:
        return self._elements.column(HANDLES)


def _sorted_pieces(values: npt.NDArray[Any]) -> Int64:
    """The numbers that sort every piece of PIECE values, and the shorter last one, in itself."""
    whole = len(values) - len(values) % PIECE
    chosen = np.empty(len(values), dtype=np.int64)
    inner = np.argsort(values[:whole].reshape(-1, PIECE), axis=1, kind="stable")
    chosen[:whole] = (inner + np.arange(0, whole, PIECE)[:, np.newaxis]).ravel()
    chosen[whole:] = whole + np.argsort(values[whole:], kind="stable")
    return chosen
