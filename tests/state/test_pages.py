"""Pages: rows with marks, cut so that they fit, and one group of them in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from earlyjoin.errors import BudgetExceeded
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.pages import PageLayout, PageSlot, cut_pages
from earlyjoin.state.disk.runs import Run, RunWriter
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.rows.store import empty_columns

ROWS = pa.record_batch({"a": pa.array([1, None, 3], pa.int64()), "s": pa.array(["x", "yy", None])})


@pytest.mark.parametrize(
    ("rows", "marks"),
    [(ROWS, ()), (ROWS, ("row",)), (ROWS, ("arrival", "departure", "row")), (empty_columns(3), ("arrival", "row"))],
)
def test_rows_and_marks_come_back(rows: pa.RecordBatch, marks: tuple[str, ...]) -> None:
    layout = PageLayout(rows.schema, marks)
    given = [np.arange(3) + 10 * number for number in range(len(marks))]
    page = layout.page(rows, given)
    assert page.schema == layout.schema
    assert layout.rows_of(page).num_rows == 3
    assert layout.rows_of(page).to_pylist() == rows.to_pylist()
    assert [mark.tolist() for mark in layout.marks_of(page)] == [mark.tolist() for mark in given]


def cut(sizes: list[int], most: int, limit: int | None, *, learns: bool) -> list[tuple[int, int, int]]:
    def make(start: int, stop: int) -> tuple[int, int]:
        return stop - start, sum(sizes[start:stop])

    return list(cut_pages(len(sizes), most, limit, make, learns=learns))


def test_pages_fit_unless_a_single_row_is_larger() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(1, 40, 50).tolist()
        for learns in (False, True):
            pages = cut(sizes, 9, 60, learns=learns)
            assert [start for start, _, _ in pages] == np.cumsum([0, *(rows for _, rows, _ in pages[:-1])]).tolist()
            assert sum(rows for _, rows, _ in pages) == 50
            for start, rows, nbytes in pages:
                assert nbytes == sum(sizes[start : start + rows])
                assert 0 < rows <= 9
                assert nbytes <= 60 or rows == 1
    assert cut([100, 1, 1], 3, 60, learns=False) == [(0, 1, 100), (1, 2, 2)]


def test_a_page_as_heavy_as_the_last_is_not_tried_larger() -> None:
    assert [rows for _, rows, _ in cut([10] * 8, 8, 20, learns=True)] == [2, 2, 2, 2]
    assert [rows for _, rows, _ in cut([10, 10, 10, 10, 1, 1, 1, 1], 8, 40, learns=False)] == [4, 4]
    assert [rows for _, rows, _ in cut([10] * 4, 3, None, learns=True)] == [3, 1]
    assert cut([], 3, 5, learns=True) == []


class Made:
    def __init__(self, page: pa.RecordBatch) -> None:
        self.values, self.nbytes = page.column(0).to_pylist(), 1000 * page.num_rows

    def __len__(self) -> int:
        return len(self.values)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[SpillDirectory]:
    with SpillDirectory(tmp_path) as spill:
        yield spill


def run_of(directory: SpillDirectory, *pages: list[int]) -> Run:
    schema = pa.schema([("a", pa.int64())])
    writer = RunWriter(directory.new_path(".pages"), schema, Counters())
    for page in pages:
        writer.write(pa.record_batch({"a": pa.array(page, pa.int64())}))
    return writer.close()


def test_a_slot_holds_one_group_and_books_it(directory: SpillDirectory) -> None:
    budget, counters = Budget(MemoryLimit(bytes=2**16)), Counters()
    slot: PageSlot[Made] = PageSlot(budget, counters)
    one, other = run_of(directory, [1, 2], [3], [4, 5]), run_of(directory, [6])
    assert slot.hold(one, 0, 2, Made).values == [1, 2, 3]
    assert (slot.nbytes, budget.used_bytes, counters.pages_read) == (3000, 3000, 2)
    assert slot.holds(one, 0)
    assert not slot.holds(one, 1)
    assert not slot.holds(other, 0)
    slot.hold(one, 0, 2, Made)
    assert counters.pages_read == 2, "what is held is not read again"
    assert slot.hold(one, 2, 3, Made).values == [4, 5]
    assert slot.hold(other, 0, 1, Made).values == [6]
    assert (slot.nbytes, budget.used_bytes, budget.peak_bytes) == (1000, 1000, 3000)
    slot.drop()
    assert (slot.nbytes, budget.used_bytes) == (0, 0)
    assert not slot.holds(other, 0)


def test_a_group_without_room_is_refused(directory: SpillDirectory) -> None:
    budget = Budget(MemoryLimit(bytes=2**16))
    slot: PageSlot[Made] = PageSlot(budget, Counters())
    run = run_of(directory, list(range(100)), [7])
    with pytest.raises(BudgetExceeded):
        slot.hold(run, 0, 1, Made)
    assert (slot.nbytes, budget.used_bytes) == (0, 0)
    assert slot.hold(run, 1, 2, Made).values == [7]
    slot.drop()
