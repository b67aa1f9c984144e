"""Where the blocks of a block-shuffled input end: blocks, not rows, are then what was drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from earlyjoin.algorithms.estimation.tally import Counts
from earlyjoin.local.sources.base import Source


class DrawnBlocks:
    """The blocks of one input, and how far it was read."""

    def __init__(self, sizes: list[int], seed: int) -> None:
        self._ends = np.cumsum(np.asarray(sizes, dtype=np.int64))
        self.shuffle = (seed, len(sizes))
        """What two inputs must not have in common."""
        self._at = 0

    @classmethod
    def of(cls, source: Source) -> DrawnBlocks | None:
        """None for an input that is not shuffled by blocks."""
        shuffled = source.shuffled_blocks()
        return None if shuffled is None else cls(*shuffled)

    @property
    def inside(self) -> bool:
        """Has a part of the present block come already?"""
        return self._at > 0 and self._at not in self._ends

    def cut(self, rows: int) -> tuple[Counts, Counts]:
        """Where in the next ``rows`` rows each block's part ends, and how many rows each part has."""
        inside = self._ends[(self._ends > self._at) & (self._ends < self._at + rows)]
        ends = np.append(inside - self._at, rows).astype(np.int64)
        self._at += rows
        return ends, np.diff(ends, prepend=0)

    def to_values(self) -> dict[str, Any]:
        """How far the blocks were read, as plain values, for a pause."""
        return {"at": self._at}

    def go_on(self, values: dict[str, Any]) -> None:
        """The inverse of ``to_values``."""
        self._at = values["at"]
