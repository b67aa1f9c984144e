"""Batches that wait for a row group: all rows in their order, and few batches however many came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import earlyjoin as ej
from earlyjoin.local.outputs.writers import Pile


@pytest.mark.parametrize("sizes", [[], [3], [1] * 8, [1] * 1000, [1, 5000] * 40, [0, 2, 7] * 30, [10_000] * 20])
def test_rows_keep_their_order(sizes: list[int]) -> None:
    numbers = np.arange(sum(sizes))
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    pile, start = Pile(schema), 0
    for size in sizes:
        part = numbers[start : start + size]
        pile.add(pa.record_batch([pa.array(part), pa.array([str(n) for n in part], pa.string())], schema=schema))
        start += size
    assert pile.rows == len(numbers)
    assert pile.table()["n"].to_pylist() == numbers.tolist()


def test_small_batches_are_put_together() -> None:
    pile = Pile(pa.schema([("n", pa.int64())]))
    for n in range(2000):
        pile.add(pa.record_batch({"n": [n]}))
    assert pile.table()["n"].num_chunks <= 7 * 5


def test_large_batches_are_left_as_they_are() -> None:
    pile = Pile(pa.schema([("n", pa.int64())]))
    batches = [pa.record_batch({"n": np.arange(1000)}) for _ in range(20)]
    for batch in batches:
        pile.add(batch)
    chunks = pile.table()["n"].chunks
    assert [chunk.buffers()[1].address for chunk in chunks] == [
        batch.column(0).buffers()[1].address for batch in batches
    ]


@pytest.mark.parametrize(
    "type_", [pa.struct([("x", pa.string_view())]), pa.list_(pa.struct([("x", pa.binary_view())]))]
)
def test_views_inside_other_values_can_be_written(type_: pa.DataType, tmp_path: Path) -> None:
    """Found by the fuzz: Arrow cannot cut such columns into row groups."""
    value: Any = {"x": "text"} if pa.types.is_struct(type_) else [{"x": b"bytes"}, {"x": None}]
    left = pa.table({"k": range(500), "v": pa.array([value] * 500, type_)})
    right = pa.table({"k": range(500), "w": range(500)})
    target = tmp_path / "joined.parquet"
    assert ej.join(left, right, on="k", batch_rows=7).write(target) == 500
    assert pq.read_table(target)["v"].to_pylist() == [value] * 500
