"""Rows of several places numbered as one: results that point into many pages are built in one batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.rows.storage import take_array
from earlyjoin.state.rows.store import Rows


class StackedRows:
    """The rows of all parts, one part behind the other. Numbers that come part by part are gathered fastest."""

    def __init__(self, parts: Sequence[Rows]) -> None:
        self.parts = parts
        self.schema = parts[0].schema
        self.starts: Int64 = np.concatenate(([0], np.cumsum([len(part) for part in parts])))
        """The number of the first row of each part, and behind the last one that of all rows."""

    def __len__(self) -> int:
        return int(self.starts[-1])

    def take(self, index: Int64, columns: Sequence[int] | None = None) -> list[pa.Array]:
        """The chosen rows: what each part has of them, put together."""
        part = self._part_of(index)
        if np.all(part[:-1] <= part[1:]):
            return self._take_grouped(index, part, columns)
        order = np.argsort(part, kind="stable")
        grouped = self._take_grouped(index[order], part[order], columns)
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        places = pa.array(back)
        return [take_array(array, places) for array in grouped]

    def _take_grouped(self, index: Int64, part: Int64, columns: Sequence[int] | None) -> list[pa.Array]:
        pieces = [self.parts[number].take(rows, columns) for number, rows, _ in self._pieces(index, part)]
        if not pieces:
            return self.parts[0].take(index, columns)
        return pieces[0] if len(pieces) == 1 else [pa.concat_arrays(arrays) for arrays in zip(*pieces, strict=True)]

    def _part_of(self, index: Int64) -> Int64:
        part: Int64 = np.searchsorted(self.starts, index, side="right") - 1
        return part

    def _pieces(self, index: Int64, part: Int64) -> Iterator[tuple[int, Int64, slice]]:
        """Each stretch of numbers of one part: the part, their numbers there, their place in ``index``."""
        ends = np.append(np.flatnonzero(part[1:] != part[:-1]) + 1, len(part)).tolist()
        start = 0
        for end in ends if len(part) else []:
            number = int(part[start])
            yield number, index[start:end] - self.starts[number], slice(start, end)
            start = end

    def pieces(self, index: Int64) -> Iterator[tuple[int, Int64, slice]]:
        """The numbers by part, in stretches: the part, their numbers there, their place in ``index``."""
        return self._pieces(index, self._part_of(index))

    def sizes(self, index: Int64, columns: Sequence[int] | None = None) -> Int64:
        """Bytes of each of the chosen rows."""
        sizes = np.empty(len(index), dtype=np.int64)
        for number, rows, place in self.pieces(index):
            sizes[place] = self.parts[number].sizes(rows, columns)
        return sizes

    def widest(self, columns: Sequence[int]) -> int:
        """No row takes more bytes than this."""
        return max(part.widest(columns) for part in self.parts)
