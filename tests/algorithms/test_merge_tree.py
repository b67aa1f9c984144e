"""Which runs fit into a merge."""

from __future__ import annotations

from earlyjoin.algorithms.merge_join import merge_tree
from earlyjoin.algorithms.merge_join.merge_tree import RunPair
from earlyjoin.algorithms.merge_join.sorted_runs import SortedRun
from earlyjoin.state.budget import MemoryLimit


def pairs(count: int, page_rows: int, footprint: int) -> list[RunPair]:
    run = SortedRun(first_words=[1] * 40, page_rows=page_rows, footprint=footprint)
    run.rest_footprint = footprint if page_rows > 1 else 0
    return [RunPair((run, run)) for _ in range(count)]


def test_single_rows_leave_no_rest_unless_many_of_them_are_read_at_once() -> None:
    """A memory that was made smaller could not hold the blocks of a merge that had begun in a larger one."""
    assert merge_tree.fits(pairs(2, 1, 100), MemoryLimit(rows=8))
    assert not merge_tree.fits(pairs(2, 1, 100), MemoryLimit(rows=8), pages_at_once=20)
    assert merge_tree.fits(pairs(2, 1, 100), MemoryLimit(rows=20 * (4 + 5)), pages_at_once=20)
    assert merge_tree.fits(pairs(2, 1, 20_000), MemoryLimit(bytes=100_000))
    assert not merge_tree.fits(pairs(2, 1, 20_000), MemoryLimit(bytes=2_000_000), pages_at_once=20)


def test_pages_read_at_once_fit() -> None:
    for page_rows, footprint in ((1, 50), (7, 4000)):
        some = pairs(3, page_rows, footprint)
        for limit in (MemoryLimit(rows=5000), MemoryLimit(bytes=10**6)):
            assert merge_tree.fits(some, limit, merge_tree.pages_at_once(some, limit))
