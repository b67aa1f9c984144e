"""What the keys of random blocks say about what was not drawn.

Matches alone do not show everything. Sixteen pairs of blocks look alike when part i of one table matches part i of the
other and no such pair is among them, but the keys of these blocks differ then: are the rows of a side dealt out to its
files at random? And a key that a third of the lines have adds nothing while its only order was not drawn, but the lines
were: is there a frequent key that was not met on the other side?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from earlyjoin.algorithms.estimation.quantiles import chi_square_as_normal
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.predicates.equality import BoundEqual

SAMPLED_ROWS = 512
"""Of a block, evenly spaced: enough to see that files differ, and cheap however large blocks are."""
LEAST_ROWS = 16
"""Of a side: fewer cannot show that files differ."""
MIXED = 3.0
"""Files whose keys differ by more than so many standard deviations were not dealt out at random."""
FREQUENT = 8
"""A key is frequent when so many of the sampled rows have it."""
MOST_FREQUENT = 16
"""So many frequent keys are looked up on the other side."""


@dataclass(frozen=True, slots=True)
class SideEvidence:
    """What the drawn rows of one side say."""

    files: int
    """Of the whole side."""
    mixed: bool
    """Could the rows of the drawn blocks be of any file?"""
    rows: int
    """Rows drawn."""
    unmet: float = 0.0
    """Of these, rows under frequent keys that no drawn row of the other side has."""
    most_unmet: float = 0.0
    """The same under the most frequent of these keys."""
    repeats: float = 0.0
    """How many other drawn rows have the key of a row, on average, frequent keys left out."""


Evidence = tuple[SideEvidence, SideEvidence]


class KeyEvidence:
    """Looks at the key columns of both sides; ``equal`` are the places of columns that have to be equal."""

    def __init__(self, files: tuple[int, int], equal: Sequence[tuple[int, int]]) -> None:
        self._files = files
        self._equal = tuple(equal)

    def of(self, keys: tuple[pa.Table, pa.Table], blocks: tuple[Int64, Int64]) -> Evidence:
        """From the key columns of all rows drawn, and for each row the place of its block among those drawn."""
        left, right = (self._side(side, keys, blocks[side]) for side in (0, 1))
        return left, right

    def _side(self, side: int, keys: tuple[pa.Table, pa.Table], block: Int64) -> SideEvidence:
        rows, files = keys[side].num_rows, self._files[side]
        places = _spaced(block)
        sample = keys[side].take(pa.array(places))
        mixed = files == 1 or (
            rows >= LEAST_ROWS and all(_are_mixed(column, block[places]) for column in sample.columns)
        )
        if not self._equal or rows == 0:
            return SideEvidence(files, mixed, rows)
        own, other = ([pair[which] for pair in self._equal] for which in (side, 1 - side))
        counted, counts = _by_frequency(sample.select(own))
        scale = rows / len(places)
        frequent = int(np.count_nonzero(counts[:MOST_FREQUENT] >= FREQUENT))
        there = keys[1 - side].select(other)
        unmet = [int(counts[place]) * scale for place in range(frequent) if not _has(there, counted, place)]
        rest = counts[frequent:]
        repeats = float(np.sum(rest * (rest - 1.0))) / max(1, int(rest.sum())) * scale
        return SideEvidence(files, mixed, rows, sum(unmet), max(unmet, default=0.0), repeats)


def equal_places(plan: Plan, positions: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Which of the columns at ``positions`` of both schemas have to be equal."""
    pairs: list[tuple[int, int]] = []
    for part in plan.condition.parts:
        if isinstance(part, BoundEqual):
            left, right = (
                [positions[side].index(plan.schemas[side].get_field_index(name)) for name in part.columns[side]]
                for side in (0, 1)
            )
            pairs += zip(left, right, strict=True)
    return pairs


def _spaced(block: Int64) -> Int64:
    """Rows of each block, evenly spaced."""
    order = np.argsort(block, kind="stable")
    sizes = np.bincount(block) if len(block) else np.zeros(0, dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    chosen = [
        order[start + np.arange(min(size, SAMPLED_ROWS)) * size // min(size, SAMPLED_ROWS)]
        for start, size in zip(starts, sizes, strict=True)
        if size
    ]
    return np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.int64)


def _are_mixed(column: pa.ChunkedArray, block: Int64) -> bool:
    """Do the values of blocks differ no more than by chance (Kruskal and Wallis 1952)?"""
    try:
        ranks = pc.rank(column, tiebreaker="min").to_numpy().astype(np.int64)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return False  # values without an order cannot show it
    _, place, equal = np.unique(ranks, return_inverse=True, return_counts=True)
    middle: npt.NDArray[np.float64] = (np.cumsum(equal) - (equal - 1) / 2)[place]
    rows, sums = np.bincount(block), np.bincount(block, weights=middle)
    rows, sums = rows[rows > 0], sums[rows > 0]
    spread = float(middle.var(ddof=1))
    if len(rows) < 2 or spread == 0:
        return True
    statistic = float(np.sum(rows * (sums / rows - middle.mean()) ** 2)) / spread
    return chi_square_as_normal(statistic, len(rows) - 1) <= MIXED


def _by_frequency(keys: pa.Table) -> tuple[pa.Table, Int64]:
    """Different keys without nulls, the most frequent first, and how many rows have each."""
    names = [str(place) for place in range(keys.num_columns)]
    keys = keys.rename_columns(names)
    try:
        counted = keys.group_by(names).aggregate([([], "count_all")])
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowKeyError):
        return keys.slice(0, 0), np.zeros(0, dtype=np.int64)  # values that Arrow does not group
    counted = counted.filter(pc.is_valid(counted.column(0))) if len(names) == 1 else counted.drop_null()
    counted = counted.take(pc.sort_indices(counted, [("count_all", "descending")]))
    return counted.select(names), counted.column("count_all").to_numpy().astype(np.int64)


def _has(table: pa.Table, keys: pa.Table, place: int) -> bool:
    """Is this key in the table?"""
    holds: pa.ChunkedArray | None = None
    for column, values in zip(table.columns, keys.columns, strict=True):
        try:
            same = pc.equal(column, values[place])
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            return False  # of types that Arrow does not compare: nobody knows
        holds = same if holds is None else pc.and_(holds, same)
    return holds is not None and bool(pc.any(holds).as_py())
