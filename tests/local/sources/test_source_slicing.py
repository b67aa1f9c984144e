"""Cutting and gathering keep every row and every limit."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.local.sources import BatchSizes
from earlyjoin.local.sources.slicing import Cutter, gather


def batches(lengths: list[int]) -> list[pa.RecordBatch]:
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    return [pa.record_batch({"a": pa.array(range(s, s + n), pa.int64())}) for s, n in zip(starts, lengths, strict=True)]


def rows(cut: list[pa.RecordBatch]) -> list[int]:
    return [value for batch in cut for value in batch["a"].to_pylist()]


@settings(deadline=None)
@given(st.lists(st.integers(0, 60), max_size=8), st.integers(0, 300), st.integers(1, 20), st.integers(0, 60))
def test_cut(lengths: list[int], skip: int, first: int, more: int) -> None:
    cutter = Cutter(BatchSizes(first=first, most=first + more), skip)
    cut = [piece for batch in batches(lengths) for piece in cutter.cut(batch)]
    assert rows(cut) == list(range(sum(lengths)))[skip:]
    assert all(0 < piece.num_rows <= min(first * 2**i, first + more) for i, piece in enumerate(cut))


@settings(deadline=None)
@given(st.integers(1, 20), st.integers(0, 100), st.data())
def test_gather(first: int, more: int, data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, first), max_size=40))
    gathered = list(gather(batches(lengths), BatchSizes(first=first, most=first + more)))
    assert rows(gathered) == list(range(sum(lengths)))
    assert all(0 < piece.num_rows <= first + more for piece in gathered)
    if gathered:
        assert gathered[0].num_rows <= first


def test_a_batch_that_fits_stays_itself() -> None:
    (batch,) = batches([5])
    assert next(Cutter(BatchSizes()).cut(batch)) is batch
