"""Rows of several places numbered as one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from earlyjoin.state.rows.stacked import StackedRows
from earlyjoin.state.rows.store import BatchRows, one_batch


def stacked(lengths: list[int]) -> tuple[StackedRows, pa.Table]:
    total = sum(lengths)
    table = pa.table({"n": np.arange(total), "s": [f"{'x' * (n % 7)}{n}" for n in range(total)]})
    starts = np.cumsum([0, *lengths[:-1]]).tolist()
    parts = [table.slice(start, length) for start, length in zip(starts, lengths, strict=True)]
    return StackedRows([BatchRows(one_batch(part)) for part in parts]), table


@pytest.mark.parametrize("lengths", [[5], [3, 4], [2, 0, 5, 1], [0, 3]])
@pytest.mark.parametrize("grouped", [True, False])
def test_rows_are_those_of_the_table_that_the_parts_make(lengths: list[int], grouped: bool) -> None:
    rows, table = stacked(lengths)
    index = np.random.default_rng(len(lengths)).integers(0, len(rows), 40)
    index = np.sort(index) if grouped else index
    taken = rows.take(index)
    assert [array.to_pylist() for array in taken] == [table[name].take(index).to_pylist() for name in ("n", "s")]
    assert rows.take(index, [1])[0].equals(taken[1])


def test_no_rows_are_taken_as_empty_arrays_and_sizes_follow_the_index() -> None:
    rows, _ = stacked([2, 3])
    assert [len(array) for array in rows.take(np.empty(0, dtype=np.int64))] == [0, 0]
    index = np.array([4, 0, 3, 1])
    assert rows.sizes(index).tolist() == [int(rows.sizes(np.array([n]))[0]) for n in index]
    assert rows.widest([0, 1]) >= rows.sizes(index).max()


def test_pieces_name_the_part_the_numbers_there_and_the_place() -> None:
    rows, _ = stacked([2, 3])
    pieces = [(part, numbers.tolist(), place) for part, numbers, place in rows.pieces(np.array([1, 0, 4, 1]))]
    assert pieces == [(0, [1, 0], slice(0, 2)), (1, [2], slice(2, 3)), (0, [1], slice(3, 4))]
