"""How a sort-based join shares out its memory.

::

    making runs    rows of both sides (all of it, or split between them)  │ sweep in memory │ page being written
    idle merges    rows of both sides                                     │ sweep in memory │ merging
    clean-up       all of it for the merge

Merging while rows are gathered gets an eighth, and only as long as such a merge exists: the first runs are as long as
they can be. A budget in rows counts rows alone, so that a sweep in memory and a page being written take nothing.

*Split*: with ``split`` given, the rows of each side stay inside their own part. Both sides are still written together,
so a pair of runs has at most ``split`` of the rows from the left, and is written as soon as one part is full. When a
side has ended, its part goes to the other. A row that is larger than the part of its side ends the split.
"""

from __future__ import annotations

from earlyjoin.algorithms.merge_join.sorted_runs import page_limit, pages_of_a_merge
from earlyjoin.algorithms.wide_rows import two_pages_share
from earlyjoin.state.budget import Budget, MemoryLimit, all_but, fraction_of

_MERGING_SHARE = 1 / 8
_MERGING_NBYTES = 32 * 1024
_SWEEP_SHARE = 0.2


class SortShares:
    """The parts of a budget, and who may use them now."""

    def __init__(self, budget: Budget, sides: int, split: float | None, key_nbytes: int = 0) -> None:
        self._whole = budget
        self._sides = sides
        self._merging = budget.part(self.for_merging)
        self.page_limit = page_limit(self._merging.limit, sides)
        self.page_being_written = self._merging.account("page being written")
        self.page_being_written.reserve(self.page_limit.bytes or 0)
        self.has_shrunk = False
        """Are there pages on disk that were written for a larger memory?"""
        self._making_runs = budget.part(self._beside_a_page)
        self.ended = [False] * sides
        # Rows that are swept in memory are not counted twice, so a budget in rows needs no share for it.
        runs = self._making_runs
        sweeping = two_pages_share(runs.limit.bytes or 1, key_nbytes, _SWEEP_SHARE)  # keys are swept, rows are not
        self.sweeping, rows = (runs, runs) if budget.limit.bytes is None else runs.split(sweeping)
        self.is_split = split is not None
        self.gathering: tuple[Budget, ...] = rows.split(split) if split is not None else (rows,) * sides

    def prepare_for(self, limit: MemoryLimit) -> None:
        """From now on write pages that suit a memory of this size, if it is the smaller one."""
        pages = page_limit(self.for_merging(limit), self._sides)
        if pages < self.page_limit:
            self.page_being_written.release((self.page_limit.bytes or 0) - (pages.bytes or 0))
            self.page_limit, self.has_shrunk = pages, True

    def for_merging(self, whole: MemoryLimit) -> MemoryLimit:
        """What merges in idle time get of a whole."""
        least = min(_MERGING_NBYTES, whole.bytes // 2) if whole.bytes is not None else 1024
        return fraction_of(whole, _MERGING_SHARE, least_rows=2 * self._sides - 2, least_bytes=least)

    def _beside_a_merge(self, whole: MemoryLimit) -> MemoryLimit:
        return all_but(whole, self.for_merging(whole))

    def _beside_a_page(self, whole: MemoryLimit) -> MemoryLimit:
        if whole.bytes is None:
            return whole
        page = fraction_of(self.for_merging(whole), 1 / pages_of_a_merge(self._sides), least_bytes=1)
        return all_but(whole, page)

    def leave_room_for_merging(self) -> bool:
        """Do the rows in memory leave the part for merging free?"""
        return self._making_runs.would_fit(self._beside_a_merge(self._whole.limit))

    def set_aside_for_merging(self) -> Budget:
        """From now on rows in memory leave this part free."""
        self._making_runs.reshare(self._beside_a_merge)
        return self._merging

    def end_merging(self) -> None:
        """All of the memory is for making runs again."""
        self._making_runs.reshare(self._beside_a_page)

    def end(self, side: int) -> None:
        """No more rows of a side will come."""
        self.ended[side] = True
        if self.is_split:
            self.gathering[1 - side].reshare(lambda whole: whole)

    def give_up_split(self) -> None:
        """A part is too small for a row of its side: from now on both use all of it."""
        self.is_split = False
        for part in self.gathering:
            part.reshare(lambda whole: whole)
