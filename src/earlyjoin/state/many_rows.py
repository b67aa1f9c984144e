"""Several stores or pages as one: rows are numbered through."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from earlyjoin.predicates.keys import Int64
from earlyjoin.state.rows import Rows
from earlyjoin.state.storage import take_array


class ManyRows:
    """The rows of the first part, then those of the second, and so on."""

    def __init__(self, schema: pa.Schema, parts: Sequence[Rows]) -> None:
        self.schema = schema
        self._parts = parts
        self.starts: Int64 = np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)
        """The number of each part's first row; then the number of all rows."""

    def __len__(self) -> int:
        return int(self.starts[-1])

    def take(self, index: Int64, columns: Sequence[int] | None = None) -> list[pa.Array]:
        """Gather from each part, then put the rows into the order asked for."""
        owner, order = self._by_part(index)
        taken = [
            self._parts[number].take(index[rows] - self.starts[number], columns)
            for number, rows in _groups(owner, order)
        ]
        places = np.empty(len(index), dtype=np.int64)
        places[order] = np.arange(len(index))
        back = pa.array(places)
        count = len(self.schema) if columns is None else len(columns)
        if not taken:
            fields = [self.schema.field(c) for c in (range(count) if columns is None else columns)]
            return [pa.array([], field.type) for field in fields]
        if len(taken) == 1:
            return taken[0]
        return [take_array(pa.concat_arrays([part[c] for part in taken]), back) for c in range(count)]

    def sizes(self, index: Int64, columns: Sequence[int] | None = None) -> Int64:
        """Bytes of each of the chosen rows."""
        owner, order = self._by_part(index)
        sizes = np.zeros(len(index), dtype=np.int64)
        for number, rows in _groups(owner, order):
            sizes[rows] = self._parts[number].sizes(index[rows] - self.starts[number], columns)
        return sizes

    def widest(self, columns: Sequence[int]) -> int:
        """No row takes more bytes than this."""
        return max((part.widest(columns) for part in self._parts), default=0)

    def _by_part(self, index: Int64) -> tuple[Int64, Int64]:
        owner = np.searchsorted(self.starts, index, side="right") - 1
        return owner, np.argsort(owner, kind="stable")


def _groups(owner: Int64, order: Int64) -> list[tuple[int, Int64]]:
    """The places in the index that belong to each part."""
    numbers, firsts = np.unique(owner[order], return_index=True)
    return list(zip(numbers.tolist(), np.split(order, firsts[1:]), strict=False))
