"""Which runs to merge (PMJ figure 2): pairs of runs, one of each side, and the groups in which they are merged.

With more than two sides a "pair" has as many runs as there are sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from earlyjoin.algorithms.merge_join.sorted_runs import SortedRun
from earlyjoin.state.budget import MemoryLimit

_MOST_BLOCK_ROWS = 16384
"""Rows of a block beyond which it does not get faster."""


@dataclass(slots=True)
class RunPair:
    """Runs of all sides that were written together."""

    runs: tuple[SortedRun, ...]
    level: int = 0
    """How often its rows were merged."""
    joined: bool = True
    """Have the runs been joined with each other?"""

    @property
    def pages(self) -> int:
        """Pages of all runs."""
        return sum(run.pages for run in self.runs)


def to_merge_in_idle_time(pairs: Sequence[RunPair], fan_in: int) -> list[int]:
    """The first pairs of the lowest level that has two; they would be merged sooner or later."""
    for level in sorted({pair.level for pair in pairs}):
        same = [number for number, pair in enumerate(pairs) if pair.level == level]
        if len(same) > 1:
            return same[:fan_in]
    return []


def to_merge_before_the_last(pairs: Sequence[RunPair], fan_in: int, most: int) -> list[int]:
    """The smallest pairs, so many that all later merges, of which the last takes ``most``, are full."""
    return smallest_first([pair.pages for pair in pairs], fan_in, most)


def smallest_first(sizes: Sequence[int], fan_in: int, most: int) -> list[int]:
    """Which runs of these sizes to merge now: all later merges, of which the last takes ``most``, are full then.

    >>> smallest_first([9, 1, 5, 2, 7], fan_in=3, most=3)
    [1, 2, 3]
    >>> smallest_first([9, 1, 5, 2], fan_in=3, most=3)
    [1, 3]
    """
    step = fan_in - 1
    count = (len(sizes) - most) % step or step
    by_size = sorted(range(len(sizes)), key=lambda number: (sizes[number], number))
    return sorted(by_size[: count + 1])


def fitting(pairs: Sequence[RunPair], limit: MemoryLimit) -> int:
    """How many of the pairs can be merged in the memory: a rest of a page of each run, some pages more, the output.

    Never fewer than two; whether these fit is found out by trying.
    """
    for count in range(len(pairs), 2, -1):
        if fits(pairs[:count], limit):
            return count
    return min(2, len(pairs))


def fits(pairs: Sequence[RunPair], limit: MemoryLimit, pages_at_once: int = 1) -> bool:
    """Is the memory enough to merge all of the pairs, so many pages of a run at once?"""
    runs = [run for pair in pairs for run in pair.runs]
    if limit.rows is not None:
        blocks = [run.page_rows * pages_at_once for run in runs]
        # Single rows are written on as soon as they are read: they leave no rest.
        rest, most = sum(rows for rows in blocks if rows > 1), limit.rows
        block = max(blocks) if max(blocks) > 1 else 0
    else:
        assert limit.bytes is not None
        rest, most = sum(run.rest_footprint if pages_at_once == 1 else run.footprint for run in runs), limit.bytes
        rest, block = rest * pages_at_once, _largest(runs) * pages_at_once
    return rest + (len(pairs[0].runs) + 3) * block <= most


def pages_at_once(pairs: Sequence[RunPair], limit: MemoryLimit) -> int:
    """How many pages of a run a merge may read as one block: more in a larger memory, so that blocks meet less often.

    Room is for two blocks of each run, and for five more.
    """
    runs = [run for pair in pairs for run in pair.runs if run.pages]
    if not runs:
        return 1
    if limit.rows is not None:
        needed, most = sum(2 * run.page_rows for run in runs) + 5 * max(run.page_rows for run in runs), limit.rows
    else:
        assert limit.bytes is not None
        needed, most = sum(2 * run.footprint for run in runs) + 5 * _largest(runs), limit.bytes
    longest = max(run.page_rows for run in runs)
    return max(1, min(most // max(1, needed), _MOST_BLOCK_ROWS // longest))


def _largest(runs: list[SortedRun]) -> int:
    return max(run.footprint for run in runs)
