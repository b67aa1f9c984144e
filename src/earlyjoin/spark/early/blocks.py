"""Blocks of a side: small random parts of files that can be read alone and told apart again in the bulk.

A file is cut into *slots* by a hash of the row's number in it, so that a block is some 10⁴ rows from all over its file:
a sorted file does not make blocks that differ. Files that depend on each other (part i of one table matches part i of
the other) do make blocks that differ; that is why blocks, not rows, are what was drawn when sizes are estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from earlyjoin.spark.inspecting.scans import FILE, ROW, Files, Small
from earlyjoin.spark.session import functions

LOOK_BIT, DRAWN_BIT = 1, 2
"""Bits of a tag: rows of the look, and rows of the blocks that were drawn at random."""
BLOCK_BYTES = 2**19
"""Of a file, compressed; about 10⁴ rows of a middling table."""
MOST_SLOTS = 256
_EXPANSION = 4
"""How much larger rows are in memory than in their files, about."""


class Blocks:
    """All blocks of one side in random order."""

    def __init__(self, below: Files | Small, seed: int, side: int) -> None:
        self._paths: tuple[str | None, ...] = below.paths if isinstance(below, Files) else (None,)
        self._numbered = isinstance(below, Files) and below.numbered
        self.nbytes = below.nbytes
        self.slots = self._slots() if self._numbered else 1
        self.count = len(self._paths) * self.slots
        # Different seeds for the sides, or both would choose the same places.
        self.order = np.random.default_rng([seed, side]).permutation(self.count)

    @property
    def files(self) -> int:
        """Number of files."""
        return len(self._paths)

    def share(self, chosen: Sequence[int]) -> float:
        """Which part of the files has to be read for these blocks."""
        return len({block // self.slots for block in chosen}) / self.files

    def rows_nbytes(self, chosen: Sequence[int]) -> float:
        """What the rows of these blocks take in memory, about."""
        return _EXPANSION * self.nbytes * len(chosen) / self.count

    def paths(self, chosen: Sequence[int]) -> list[str]:
        """The files of these blocks."""
        return [path for path in self._by_path(chosen) if path is not None]

    def read_filter(self, chosen: Sequence[int]) -> Any:
        """A Column that holds for rows of these blocks, and that keeps Spark from reading other files."""
        f = functions()
        paths = self._by_path(chosen)
        if None in paths:
            return f.lit(True)
        return f.col(FILE).isin(list(paths)) & self.contains(chosen)

    def contains(self, chosen: Sequence[int]) -> Any:
        """A Column that holds for rows of these blocks; nearly all others are told by their slot alone."""
        f = functions()
        paths = self._by_path(chosen)
        if None in paths:
            return f.lit(True)
        if self.slots == 1:
            return f.col(FILE).isin(list(paths))
        any_slot = self._slot().isin(sorted({slot for slots in paths.values() for slot in slots}))
        by_slots: dict[tuple[int, ...], list[str | None]] = {}
        for path, slots in paths.items():
            by_slots.setdefault(tuple(slots), []).append(path)
        parts = [f.col(FILE).isin(found) & self._slot().isin(list(slots)) for slots, found in by_slots.items()]
        return any_slot & reduce(lambda one, other: one | other, parts)

    def number(self, chosen: Sequence[int]) -> Any:
        """A Column with the number of the block, for rows of these blocks."""
        f = functions()
        paths = sorted({block // self.slots for block in chosen})
        file_number = f.lit(paths[0])
        for number in paths[1:]:
            file_number = f.when(f.col(FILE) == f.lit(self._paths[number]), f.lit(number)).otherwise(file_number)
        slot = self._slot() if self.slots > 1 else f.lit(0)
        return (file_number * f.lit(self.slots) + slot).cast("long")

    def _slots(self) -> int:
        return int(np.clip(round(self.nbytes / len(self._paths) / BLOCK_BYTES), 1, MOST_SLOTS))

    def _slot(self) -> Any:
        f = functions()
        return f.pmod(f.xxhash64(f.col(ROW)), f.lit(self.slots)).cast("int")

    def _by_path(self, chosen: Sequence[int]) -> dict[str | None, list[int]]:
        slots: dict[str | None, list[int]] = {}
        for block in sorted(chosen):
            slots.setdefault(self._paths[block // self.slots], []).append(block % self.slots)
        return slots


def tag_column(look: Any | None, drawn: Any | None) -> Any:
    """The tag of a row, a Column, from those that hold for rows of the look and of random blocks (None: no row)."""
    f = functions()
    bits = [
        f.when(holds, f.lit(bit)).otherwise(f.lit(0))
        for bit, holds in ((LOOK_BIT, look), (DRAWN_BIT, drawn))
        if holds is not None
    ]
    return (reduce(lambda one, other: one + other, bits) if bits else f.lit(0)).cast("tinyint")
