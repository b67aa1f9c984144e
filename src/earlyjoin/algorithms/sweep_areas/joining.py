"""The join of two sorted runs over two sweep areas (PMJ figure 3, ``earlyJoinInitialRuns``), block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from earlyjoin.algorithms.sweep_areas.base import SweepArea, SweepCursor, SweepOrder, SweepWords
from earlyjoin.algorithms.sweep_areas.factory import make_sweep
from earlyjoin.kernels.sorting import stable_order
from earlyjoin.predicates.base import LEFT, RIGHT, BoundPredicate
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.budget import Account, Budget, MemoryLimit

BLOCK_ROWS = 8192
ROOM = 65536


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Elements of one side in ascending order of their sweep words."""

    keys: Keys
    words: SweepWords
    handles: Int64

    def __len__(self) -> int:
        return len(self.handles)

    @classmethod
    def of(cls, order: SweepOrder, side: int, keys: Keys) -> SortedRun:
        """Sort the rows that can match; their handles are their numbers."""
        words = order.words(side, keys)
        rows = np.arange(len(keys)) if keys.valid is None else np.flatnonzero(keys.valid)
        rows = rows[stable_order(words[rows])]
        chosen = keys.take(rows)
        return cls(Keys(chosen.words, chosen.heap), words[rows], rows)


def sweep_runs(
    areas: tuple[SweepArea, SweepArea],
    runs: tuple[SortedRun, SortedRun],
    *,
    block_rows: int = BLOCK_ROWS,
    room: int = ROOM,
) -> Iterator[tuple[Int64, Int64]]:
    """Handles of matching pairs, left and right, at most ``room`` at a time; both arrays are reused for the next.

    The side whose next element comes first passes a block: into its own area, and through the other side's.
    BudgetExceeded when the areas do not fit. What an area needs for a block counts as its own, so smaller blocks need
    less memory.
    """
    own_rows, other_handles = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    at = [0, 0]
    while at[LEFT] < len(runs[LEFT]) or at[RIGHT] < len(runs[RIGHT]):
        side = _next_side(runs, at)
        run, start = runs[side], at[side]
        at[side] = stop = min(start + block_rows, len(run))
        keys, handles = run.keys.slice(start, stop), run.handles[start:stop]
        if at[1 - side] < len(runs[1 - side]):
            areas[side].insert(keys, run.words[start:stop], handles)
        cursor = SweepCursor()
        while cursor.row < len(keys):
            found = areas[1 - side].query(keys, cursor, other_handles, own_rows)
            if found:
                pair = handles[own_rows[:found]], other_handles[:found]
                yield pair if side == LEFT else pair[::-1]
        _expire(areas, runs, at)


def _next_side(runs: tuple[SortedRun, SortedRun], at: list[int]) -> int:
    for side in (LEFT, RIGHT):
        if at[1 - side] == len(runs[1 - side]):
            return side
    return LEFT if runs[LEFT].words[at[LEFT]] <= runs[RIGHT].words[at[RIGHT]] else RIGHT


def _expire(areas: tuple[SweepArea, SweepArea], runs: tuple[SortedRun, SortedRun], at: list[int]) -> None:
    """An area is queried by the other side alone, so it expires by what is still to come from there."""
    for side in (LEFT, RIGHT):
        if at[1 - side] == len(runs[1 - side]):
            areas[side].clear()
    nexts = [runs[side].words[at[side]].item() for side in (LEFT, RIGHT) if at[side] < len(runs[side])]
    if nexts:
        for area in areas:
            area.expire(min(nexts))


def sweep_join(
    predicate: BoundPredicate, left: Keys, right: Keys, *, account: Account | None = None, block_rows: int = BLOCK_ROWS
) -> Iterator[tuple[Int64, Int64]]:
    """All pairs of rows that match, sorted and swept in memory; as :func:`sweep_runs` gives them."""
    if account is None:
        account = Budget(MemoryLimit(bytes=2**62)).account("sweep areas")
    order, make_area = make_sweep(predicate)
    runs = SortedRun.of(order, LEFT, left), SortedRun.of(order, RIGHT, right)
    areas = make_area(LEFT, account), make_area(RIGHT, account)
    yield from sweep_runs(areas, runs, block_rows=block_rows)
    for area in areas:
        area.clear()
