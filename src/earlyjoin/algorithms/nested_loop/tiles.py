"""A walk over all pairs of two lists of rows in bounded tiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from earlyjoin.predicates.encoding.keys import Int64


@dataclass(slots=True)
class Tiles:
    """How far the walk has come: pairs before (``i``, ``j``), row by row of blocks, are done."""

    i: int = 0
    j: int = 0

    def next(self, rows_i: int, rows_j: int, most: int) -> tuple[Int64, Int64] | None:
        """The next pairs, at most ``most`` of them, or None when all have been given out."""
        if self.i >= rows_i or rows_j == 0:
            return None
        # A tile is as wide as the second list allows; only a list longer than a tile is cut, and then tiles
        # are one row high.
        width = min(rows_j - self.j, most)
        height = 1 if width < rows_j else min(rows_i - self.i, max(1, most // width))
        i = np.repeat(np.arange(self.i, self.i + height, dtype=np.int64), width)
        j = np.tile(np.arange(self.j, self.j + width, dtype=np.int64), height)
        self.j += width
        if self.j >= rows_j:
            self.i, self.j = self.i + height, 0
        return i, j
