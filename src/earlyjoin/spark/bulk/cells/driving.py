"""Which part of a condition should drive the operator inside a cell: the one that leaves fewest candidates to check.

An equality usually does. But a condition such as *same symbol, and at most a second apart* has few symbols with many
rows each: there the band finds the partners and the equality checks them, in cells that are hashed by the symbol.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earlyjoin.spark.bulk.cells.growing import Sample, Sizes
from earlyjoin.spark.bulk.cells.space import Space

_COMPARED = 1024
_CLEARLY = 2.0
"""How many times fewer candidates another part must leave."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pairs that each part of a condition, taken alone, would leave to check in all cells together."""

    by_part: dict[int, float]
    equality: int | None

    @property
    def best(self) -> int | None:
        """The part to drive; None when it is the one that drives anyway."""
        if self.equality is None or self.equality not in self.by_part:
            return None
        part = min(self.by_part, key=lambda number: self.by_part[number])
        clearly = self.by_part[part] * _CLEARLY < self.by_part[self.equality]
        return part if part != self.equality and clearly else None


def candidates(space: Space, sample: Sample, sizes: Sizes, buckets: int) -> Candidates:
    """Estimated from a sample; ``buckets`` says among how many cells the equality spreads the rows."""
    homes, guests = sample.homes, sample.guests
    here, there = (_some(rows.valid, len(rows)) for rows in (homes, guests))
    if not len(here) or not len(there):
        return Candidates({}, space.equality)
    scale = sizes.rows[0] * sizes.rows[1] / (len(here) * len(there))
    meeting: dict[int, npt.NDArray[np.bool_]] = {}
    for axis, (part, _) in enumerate(space.places):
        low, high = (ends[there] for ends in guests.box(axis, space.no_reach))
        meets = (homes.points(axis)[here][:, np.newaxis] <= high) & (homes.ends(axis)[here][:, np.newaxis] >= low)
        meeting[part] = meeting[part] & meets if part in meeting else meets
    by_part = {part: float(1 + np.count_nonzero(meets)) * scale / buckets for part, meets in meeting.items()}
    if space.equality is not None:
        equal = homes.hashes[here][:, np.newaxis] == guests.hashes[there]
        by_part[space.equality] = float(1 + np.count_nonzero(equal)) * scale
    return Candidates(by_part, space.equality)


def _some(valid: npt.NDArray[np.bool_] | None, length: int) -> npt.NDArray[np.int64]:
    able = np.arange(length, dtype=np.int64) if valid is None else np.flatnonzero(valid)
    return able[:_COMPARED]  # a sample is in random order
