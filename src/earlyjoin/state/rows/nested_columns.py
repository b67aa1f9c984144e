"""Columns of types without a flat form: dictionaries, decoded and encoded again, and everything nested, as chunks."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa

from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Account
from earlyjoin.state.rows.columns import Column
from earlyjoin.state.rows.dictionaries import decoded, encoded
from earlyjoin.state.rows.inner_views import converted, without_inner_views
from earlyjoin.state.rows.sizes import array_nbytes


class DictionaryColumn(Column):
    """Dictionary-encoded values: batches bring dictionaries of their own, so the values are kept, and encoded again."""

    def __init__(self, type_: pa.DataType, values: Column) -> None:
        super().__init__(type_, values._account)
        self._values = values

    def append(self, values: pa.Array) -> None:
        self._values.append(decoded(values))

    def take(self, index: pa.Array) -> pa.Array:
        return encoded(self._values.take(index), self.type)

    def truncate(self, length: int) -> None:
        self._values.truncate(length)

    def keep(self, index: Int64) -> None:
        self._values.keep(index)

    def clear(self) -> None:
        self._values.clear()

    @property
    def nbytes(self) -> int:
        return self._values.nbytes

    def sizes(self, index: Int64) -> Int64 | int:
        return self._values.sizes(index)

    @property
    def widest(self) -> int:
        return self._values.widest


class ChunkedColumn(Column):
    """Values of any other type, as the Arrow arrays they came in."""

    def __init__(self, type_: pa.DataType, account: Account) -> None:
        super().__init__(type_, account)
        self._stored = without_inner_views(type_)
        self._chunks: list[pa.Array] = []
        self._starts = [0]
        self._nbytes = 0
        self._averages: list[int] = []
        """Bytes of a value, of each chunk: measured once, because that takes time where values are nested."""

    def append(self, values: pa.Array) -> None:
        if len(values) == 0:
            return
        # Copied, because what arrives may be a slice that keeps a whole file block alive.
        values = pa.concat_arrays([converted(values, self._stored), pa.array([], self._stored)])
        nbytes = array_nbytes(values)
        self._account.reserve(nbytes)
        self._nbytes += nbytes
        self._averages.append(nbytes // len(values) + 1)
        self._chunks.append(values)
        self._starts.append(self._starts[-1] + len(values))

    def take(self, index: pa.Array) -> pa.Array:
        """Chunk by chunk: Arrow would put all chunks together first, whatever is taken."""
        rows = index.to_numpy(zero_copy_only=False)
        if len(rows) == 0:
            return pa.array([], self.type)
        chunks = np.searchsorted(self._starts, rows, side="right") - 1
        order = np.argsort(chunks, kind="stable")
        numbers, firsts = np.unique(chunks[order], return_index=True)
        parts = []
        for number, of_chunk in zip(numbers, np.split(order, firsts[1:]), strict=True):
            parts.append(self._chunks[number].take(pa.array(rows[of_chunk] - self._starts[number])))
        places = np.empty(len(rows), dtype=np.int64)
        places[order] = np.arange(len(rows))
        return converted(pa.concat_arrays(parts).take(pa.array(places)), self.type)

    def truncate(self, length: int) -> None:
        kept = [
            chunk.slice(0, length - start)
            for chunk, start in zip(self._chunks, self._starts, strict=False)
            if start < length
        ]
        self._chunks = kept
        self._starts = [0, *np.cumsum([len(chunk) for chunk in kept], dtype=np.int64).tolist()]
        self._measure()

    def keep(self, index: Int64) -> None:
        """Chunk by chunk, each let go as soon as its rows are copied; a chunk that loses nothing stays as it is."""
        places = np.searchsorted(index, self._starts)
        chunks = []
        for number, (first, stop) in enumerate(itertools.pairwise(places.tolist())):
            chunk, start = self._chunks[number], self._starts[number]
            if stop - first < len(chunk):
                chunk = chunk.take(pa.array(index[first:stop] - start))
            if len(chunk):
                chunks.append(chunk)
            self._chunks[number] = None
        self._chunks = chunks
        self._starts = [0, *np.cumsum([len(chunk) for chunk in chunks], dtype=np.int64).tolist()]
        self._measure()

    def clear(self) -> None:
        self._account.release(self._nbytes)
        self._chunks, self._starts, self._nbytes, self._averages = [], [0], 0, []

    def _measure(self) -> None:
        """Find out how large the chunks are that are left, and give back the rest."""
        sizes = [array_nbytes(chunk) for chunk in self._chunks]
        self._averages = [size // len(chunk) + 1 for size, chunk in zip(sizes, self._chunks, strict=True)]
        self._account.release(self._nbytes - sum(sizes))
        self._nbytes = sum(sizes)

    @property
    def nbytes(self) -> int:
        return self._nbytes

    def sizes(self, index: Int64) -> Int64 | int:
        """The average of each value's chunk: nested values are not measured one by one."""
        averages = np.array(self._averages, dtype=np.int64)
        return averages[np.searchsorted(self._starts, index, side="right") - 1]

    @property
    def widest(self) -> int:
        return max(self._averages, default=0)
