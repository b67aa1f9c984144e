"""Rows that travel from tasks as messages and files: all of them, undamaged, and nothing is left."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.errors import DamagedFile
from earlyjoin.spark.bulk import delivery
from earlyjoin.spark.bulk.delivery import Delivery
from earlyjoin.spark.bulk.spooling import Spool, packing
from earlyjoin.spark.jobs import Jobs


def batches(*sizes: int) -> list[pa.RecordBatch]:
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    return [pa.record_batch({"a": list(range(end - n, end))}) for n, end in zip(sizes, ends, strict=True)]


def sent(rows: list[pa.RecordBatch], token: Path | None, inline: int, file: int) -> list[tuple[Any, ...]]:
    packed = packing(None if token is None else str(token), inline, file)(iter(rows))
    return [tuple(row.values()) for batch in packed for row in batch.to_pylist()]


@pytest.fixture
def spool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Spool() as spool:
        yield spool
    assert not list(tmp_path.iterdir())


def token_of(spool: Spool) -> Path:
    return spool._token


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(0, 40), max_size=12),
    inline=st.integers(0, 1000),
    file=st.integers(1, 1000),
    shared=st.booleans(),
)
def test_every_row_arrives_once_in_order(sizes: list[int], inline: int, file: int, shared: bool) -> None:
    with Spool() as spool:
        rows = sent(batches(*sizes), token_of(spool) if shared else None, inline, file)
        found = [value for row in rows for batch in spool.batches(row) for value in batch.column(0).to_pylist()]
        left = [path for path in token_of(spool).parent.iterdir() if len(path.name) == 32 and path != token_of(spool)]
    assert found == list(range(sum(sizes)))
    assert not left
    if not shared:
        assert all(name is None for _, name, _ in rows)


def test_a_task_that_does_not_see_the_directory_sends_all_rows(tmp_path: Path) -> None:
    rows = sent(batches(1000, 1000), tmp_path / "of another machine", 0, 1)
    assert [name for _, name, _ in rows] == [None, None]


def test_damaged_and_missing_files_are_named(spool: Spool) -> None:
    damaged, missing = sent(batches(1000, 1000), token_of(spool), 0, 1)
    path = token_of(spool).parent / damaged[1]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    (token_of(spool).parent / missing[1]).unlink()
    for row in (damaged, missing):
        with pytest.raises(DamagedFile, match=row[1]):
            list(spool.batches(row))


def test_a_task_that_comes_late_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spool = Spool()
    directory = token_of(spool).parent
    (directory / "nested").mkdir()  # what a task puts there while the directory is being removed stays at first
    (directory / "nested" / "late").touch()
    spool.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
def test_delivery_by_files(spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    names: list[str | None] = []

    class Small(Spool):
        def __init__(self) -> None:
            super().__init__(inline_nbytes=20_000, file_nbytes=100_000)

        def batches(self, row: Any) -> Any:
            names.append(row[1])
            return super().batches(row)

    monkeypatch.setattr(delivery, "Spool", Small)
    frame = spark.range(0, 100_000, 1, 3)
    found = Delivery(frame, pa.schema({"id": pa.int64()}), Jobs(spark), small=False, stopping=lambda: False)
    rows = [value for batch in found.batches() for value in batch.column(0).to_pylist()]
    assert sorted(rows) == list(range(100_000))
    assert sum(name is not None for name in names) >= 3
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
def test_delivery_that_is_given_up_leaves_nothing(spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(delivery, "Spool", partial(Spool, inline_nbytes=0))
    frame = spark.range(0, 3_000_000, 1, 2)
    jobs = Jobs(spark)
    over: list[bool] = []
    found = Delivery(frame, pa.schema({"id": pa.int64()}), jobs, small=False, stopping=lambda: bool(over)).batches()
    next(found)
    over.append(True)
    assert list(found) == []
    found.close()
    assert _soon(lambda: not list(tmp_path.iterdir()))


def _soon(holds: Any, seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(holds())
