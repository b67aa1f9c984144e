"""What only the nested loop does: what it writes and reads, and rows that are too large for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej
from algorithms.harness import Join, batch
from earlyjoin.algorithms.protocol import Slice
from earlyjoin.errors import BudgetExceeded
from earlyjoin.state.counters import Phase
from earlyjoin.state.snapshot import Snapshot
from state.arrow_columns import COLUMNS, Text

LEFT = pa.schema([("k", pa.int64()), ("l", pa.string())])
RIGHT = pa.schema([("k", pa.int64()), ("r", pa.string())])
PAD = "x" * 500


def left(*keys: int | None, pad: str = PAD) -> pa.RecordBatch:
    return batch(keys, l=[f"{number} {pad}" for number in range(len(keys))])


def right(*keys: int | None, pad: str = PAD) -> pa.RecordBatch:
    return batch(keys, r=[f"{number} {pad}" for number in range(len(keys))])


def spilled_rows(join: Join) -> int:
    return sum(run.run.rows for runs in join.operator._runs for run in runs)  # type: ignore[attr-defined]


@pytest.mark.parametrize("how", ["inner", "full", "semi"])
def test_what_fits_into_memory_writes_nothing(how: str, tmp_path: Path) -> None:
    join = Join("nested", LEFT, RIGHT, tmp_path, how=how, memory="4MB")
    rows = join.arrive(0, left(*range(200))) + join.arrive(1, right(*range(100, 300)))
    assert not join.operator.has_reactive_work()
    rows += join.end(0) + join.end(1) + join.finish()
    assert len(rows) == {"inner": 100, "full": 300, "semi": 100}[how]
    assert list(tmp_path.iterdir()) == []
    counters = join.counters
    assert (counters.tuples_written, counters.pages_written, counters.bytes_written, counters.flushes) == (0, 0, 0, 0)
    assert (counters.tuples_read, counters.pages_read, counters.bytes_read) == (0, 0, 0)
    assert counters.comparisons == 200 * 200
    join.close()


@pytest.mark.parametrize("memory", ["64KiB", "40rows"])
@pytest.mark.parametrize("how", ["inner", "full", "anti"])
def test_counters_agree_with_what_is_on_disk(how: str, memory: str, tmp_path: Path) -> None:
    join = Join("nested", LEFT, RIGHT, tmp_path, how=how, memory=memory)
    counters, found = join.counters, []
    for start in range(0, 100, 20):
        found += join.arrive(0, left(*range(start, start + 20)))
        found += join.arrive(1, right(*range(start + 50, start + 70)))
        assert counters.tuples_written == spilled_rows(join)
        assert counters.pages_written == sum(run.run.pages for runs in join.operator._runs for run in runs)
        assert counters.flushes == sum(map(len, join.operator._runs))
    assert counters.flushes > 0
    found += join.end(0) + join.end(1)
    before = counters.tuples_read
    found += join.finish()
    assert counters.tuples_written == spilled_rows(join) == 200, "at the end every row is on disk, each once"
    files = list(tmp_path.rglob("*.pages"))
    assert len(files) == counters.flushes
    assert 0 < counters.bytes_written <= sum(path.stat().st_size for path in files)
    assert counters.tuples_read > before
    assert counters.tuples_read >= counters.pages_read > 0
    assert counters.bytes_read > 0
    assert sum(counters.results.values()) == len(found) == {"inner": 50, "full": 150, "anti": 50}[how]
    # Every pair of rows is compared once, on arrival or on disk.
    assert counters.comparisons == 100 * 100
    join.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("side", [0, 1])
def test_a_row_larger_than_the_memory_is_a_clear_error(side: int, tmp_path: Path) -> None:
    join = Join("nested", LEFT, RIGHT, tmp_path, memory="64KiB")
    join.arrive(1 - side, [left, right][1 - side](1, 2))
    with pytest.raises(
        BudgetExceeded,
        match=r"a row of about 100.0 kB is too large for what the memory of 65.5 kB sets aside for the rows of a join",
    ):
        join.arrive(side, [left, right][side](1, pad="y" * 100_000))
    assert join.context.budget.peak_bytes <= 64 * 1024
    join.close()
    assert list(tmp_path.iterdir()) == []


def test_a_row_that_can_be_held_but_not_read_back_is_a_clear_error(tmp_path: Path) -> None:
    join = Join("nested", LEFT, RIGHT, tmp_path, memory="64KiB")
    join.arrive(0, left(1, pad="y" * 30_000))
    with pytest.raises(
        BudgetExceeded, match=r"a row of about .* is too large for what the memory of 65.5 kB sets aside"
    ):
        join.arrive(1, right(1, pad="y" * 30_000))
    assert join.context.budget.peak_bytes <= 64 * 1024
    join.close()
    assert list(tmp_path.iterdir()) == []


def test_rows_of_an_abandoned_reactive_call_do_not_mark_what_arrives_later(tmp_path: Path) -> None:
    """Regression: a query that was paused in its reactive phase counted all later results as reactive."""
    join = Join("nested", LEFT, RIGHT, tmp_path, memory="16rows", output_rows=4)
    for _ in range(4):
        join.arrive(0, left(*[1] * 8))
        join.arrive(1, right(*[1] * 8))
    reacting = join.operator.react(Slice(1000))
    while next(reacting) is None:
        pass
    assert join.operator.phase is Phase.REACTIVE
    reactive = join.counters.results[Phase.REACTIVE]
    assert reactive > 0
    join.operator.snapshot().save(tmp_path / "saved")
    reacting.close()
    other = Join("nested", LEFT, RIGHT, tmp_path, memory="16rows", output_rows=4)
    other.operator.restore(Snapshot.load(tmp_path / "saved"))
    for one in (join, other):
        before = dict(one.counters.results)
        assert one.take(one.operator.resume()) == []
        found = one.arrive(0, left(1, 1, 1)) + one.arrive(1, right(1, 1, 1))
        assert len(found) >= 9
        assert one.counters.results[Phase.ARRIVING] == before[Phase.ARRIVING] + len(found)
        assert one.counters.results[Phase.REACTIVE] == before[Phase.REACTIVE]
        one.close()


def test_every_type_survives_the_way_over_the_disk(tmp_path: Path) -> None:
    """Also dictionaries that differ from batch to batch, of which an Arrow file holds but one."""
    columns = COLUMNS | {"words": pa.array(["a", None, "b", "c", "d", "e", "f"], pa.dictionary(pa.int8(), pa.string()))}
    schema = pa.schema([("key", pa.int64()), *((name, array.type) for name, array in columns.items())])
    pa.register_extension_type(Text())
    try:
        join = Join("nested", schema, RIGHT, tmp_path, memory="16rows", how="left", on=ej.equal("key", "k"))
        found: list[dict[str, Any]] = []
        expected: list[dict[str, Any]] = []
        for number in range(4):
            parts = {name: array.slice(number) for name, array in columns.items()}
            words = pa.array([f"{number}", None, "same", "x", "y", "z", "w"][number:], parts["words"].type)
            keys = pa.array(range(10 * number, 10 * number + 7 - number), pa.int64())
            rows = pa.RecordBatch.from_arrays([keys, *(parts | {"words": words}).values()], schema=schema)
            found += join.arrive(0, rows)
            expected += rows.to_pylist()
            found += join.arrive(1, right(*range(100, 104)))
        found += join.arrive(1, right(*(row["key"] for row in expected[::2])))
        found += join.end(0) + join.end(1) + join.finish()
    finally:
        pa.unregister_extension_type("earlyjoin.test.text")
    assert join.counters.flushes > 2
    found.sort(key=lambda row: row["key"])
    assert len(found) == len(expected)
    for row, wanted in zip(found, expected, strict=True):
        for name, value in wanted.items():
            assert repr(row[name]) == repr(value), name
    join.close()


def test_batches_that_are_larger_than_the_memory_are_taken_in_pieces(tmp_path: Path) -> None:
    join = Join("nested", LEFT, RIGHT, tmp_path, memory="128KiB", on=ej.less("k"))
    found = join.arrive(0, left(*range(300))) + join.arrive(1, right(*range(300))) + join.finish()
    assert len(found) == 300 * 299 // 2
    assert len({(row["k"], row["k_right"]) for row in found}) == len(found)
    assert join.counters.flushes > 2
    join.close()
