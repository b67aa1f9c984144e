"""What XJoin, DHJ, EHJ and DPHJ share: flushes at the right row, counters, room, hot keys, saved states."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from algorithms.harness import Join
from algorithms.hashing.driving import SCHEMA, Run, interleaved, naive, random_keys
from earlyjoin.algorithms.protocol import Slice
from earlyjoin.errors import BudgetExceeded

ALGORITHMS = ["xjoin", "dhj", "ehj", "dphj"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("one_side", [None, "left"])
def test_counters_do_not_depend_on_batches(algorithm: str, one_side: str | None, tmp_path: Path) -> None:
    left = list(np.random.default_rng(5).permutation(120))
    if one_side is None:
        left = random_keys(150, 40, seed=1)
    arrivals = []
    for start in range(0, 300, 20):  # blocks of one side, so that batches of any size can be made of them
        arrivals += [(0, int(key)) for key in left[start // 2 : start // 2 + 10]]
        arrivals += [(1, key) for key in random_keys(20, 120 if one_side else 40, seed=start)]
    counted = []
    for batch_rows in (1, 3, 20):
        run = Run(algorithm, tmp_path, arrivals, batch_rows=batch_rows, options={"one_side": one_side, "partitions": 4})
        assert run.pairs == naive(arrivals)
        counted.append(run.counted())
        if one_side is not None:
            # Rows that match are unlinked from their chains after a probe, for all rows of a batch at once.
            del counted[-1]["comparisons"]
    assert counted[0] == counted[1] == counted[2]
    assert counted[0]["flushes"] > 0


@pytest.mark.parametrize(("algorithm", "together"), [("xjoin", 1), ("hmj", 8)])
def test_flushes_are_written_one_behind_the_other(algorithm: str, together: int, tmp_path: Path) -> None:
    """What leaves together has one page that is not full, and only a flush after reading costs a random access."""
    options = {"partitions": 4, "page_rows": 5} | ({"flush": "all"} if algorithm == "hmj" else {})
    join = Join(algorithm, SCHEMA, SCHEMA, tmp_path, memory="60rows", options=options)
    operator: Any = join.operator
    make, calls = operator.eviction.make, []
    operator.eviction.make = lambda needed: (calls.append(needed), make(needed))
    for number in range(10):
        keys = pa.array(random_keys(40, 1000, seed=number))
        join.arrive(number % 2, pa.RecordBatch.from_arrays([keys, keys], schema=SCHEMA))
    counters = join.counters
    assert (together - 1) * len(calls) < counters.flushes <= together * len(calls)  # a partition may be empty
    assert counters.tuples_written <= 5 * counters.pages_written < counters.tuples_written + 5 * len(calls)
    assert counters.seeks == 1 < len(calls)
    join.take(operator.react(Slice(10_000)))
    seeks, most = counters.seeks, len(calls) + 3
    assert counters.pages_read > 0
    while len(calls) < most:
        join.arrive(0, pa.RecordBatch.from_arrays([keys, keys], schema=SCHEMA))
    assert counters.seeks == seeks + 1
    join.close()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_counters_are_the_same_in_two_runs(algorithm: str, tmp_path: Path) -> None:
    arrivals = interleaved(random_keys(200, 30, seed=1), random_keys(260, 30, seed=2), 2, 3)
    runs = [Run(algorithm, tmp_path, arrivals, react=3) for _ in range(2)]
    assert runs[0].rows == runs[1].rows
    assert runs[0].join.counters.to_dict() == runs[1].join.counters.to_dict()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("how", ["inner", "full", "semi"])
def test_a_hot_key_that_never_fits(algorithm: str, how: str, tmp_path: Path) -> None:
    arrivals = interleaved([7] * 90 + [1], [7] * 110 + [2])
    run = Run(algorithm, tmp_path, arrivals, memory="16rows", how=how, output_rows=16)
    if how == "inner":
        assert run.pairs == naive(arrivals)
    elif how == "semi":
        assert sorted(row["id"] for row in run.rows) == list(range(90))
    else:
        unmatched = {(row["id"], row["id_right"]) for row in run.rows} - set(naive(arrivals))
        assert unmatched == {(90, None), (None, 110)}
    assert max(run.join.sizes) <= 16


def test_memory_counted_in_rows_is_used_to_the_last_row(tmp_path: Path) -> None:
    """The first flush comes with the row that does not fit, and all but two pages are for the table."""
    join = Join("xjoin", SCHEMA, SCHEMA, tmp_path, memory="4000rows", options={"partitions": 5})
    batch = pa.RecordBatch.from_arrays([pa.array(range(4100)), pa.array(range(4100))], schema=SCHEMA)
    seen = []
    for step in join.operator.arrive(0, batch):
        assert step is None
        seen.append((join.counters.flushes, int(join.operator.table.in_memory.sum())))  # type: ignore[attr-defined]
    assert max(rows for flushes, rows in seen if flushes == 0) == 4000 - 40
    join.close()


@pytest.mark.parametrize("one_side", [None, "left"])
def test_no_more_rows_leave_than_still_have_to_come(one_side: str | None, tmp_path: Path) -> None:
    """XJoin's memory is full when inputs of known size end, and that does not depend on batches."""
    left = random_keys(150, 40, seed=1) if one_side is None else list(range(150))
    right = random_keys(200, 40 if one_side is None else 400, seed=2)
    arrivals = [(0, key) for key in left[:50]] + [(1, key) for key in right] + [(0, key) for key in left[50:]]
    options = {"one_side": one_side, "partitions": 4}
    unknown = Run("xjoin", tmp_path, arrivals, options=options)
    known = [
        Run("xjoin", tmp_path, arrivals, batch_rows=rows, options=options, rows_expected=(150, 200)) for rows in (1, 30)
    ]
    in_memory = known[0].in_memory_at_end.sum()
    assert unknown.in_memory_at_end.sum() < in_memory
    assert one_side or in_memory == known[0].operator.table.memory.limit.rows  # else some places are of discarded rows
    assert [run.pairs for run in known] == [naive(arrivals)] * 2
    assert known[0].counted() | {"comparisons": 0} == known[1].counted() | {"comparisons": 0}


def test_little_makes_room_for_the_clean_up(tmp_path: Path) -> None:
    """XJoin loads the partition with the least on disk into a full memory; no more than that needs makes room."""
    arrivals = interleaved(random_keys(1500, 400, seed=1), random_keys(1500, 400, seed=2))
    run = Run("xjoin", tmp_path, arrivals, memory="600rows", options={"partitions": 8}, rows_expected=(1500, 1500))
    assert run.pairs == naive(arrivals)
    made_room = run.join.counters.tuples_written - run.on_disk_at_end.sum()
    assert 0 < made_room < run.on_disk_at_end.min() + run.in_memory_at_end.max()
    assert run.on_disk_at_end.min() < run.on_disk_at_end.mean() - 20


@pytest.mark.parametrize("expected", [(150, None), (0, 0), (10, 20), (150, 180), (151, 200), (5000, 9000)])
@pytest.mark.parametrize("how", ["inner", "full"])
def test_sizes_that_are_wrong_or_unknown(expected: tuple[int | None, ...], how: str, tmp_path: Path) -> None:
    arrivals = interleaved(random_keys(150, 40, seed=1), random_keys(200, 60, seed=2))
    run = Run("xjoin", tmp_path, arrivals, how=how, options={"partitions": 4}, rows_expected=expected, react=1)
    assert Counter(pair for pair in run.pairs.elements() if None not in pair) == naive(arrivals)
    alone = {key for side, key in arrivals if side} - {key for side, key in arrivals if not side}
    unmatched = sum(side == 1 and key in alone for side, key in arrivals)
    assert sum(left is None for left, _ in run.pairs.elements()) == (unmatched if how == "full" else 0)


def test_an_input_that_ends_early_and_nulls(tmp_path: Path) -> None:
    """What is known by then counts: nulls have gone, and a side that has ended has no more rows."""
    batches = [
        pa.RecordBatch.from_pydict({"k": keys, "id": list(range(len(keys)))}, schema=SCHEMA)
        for keys in (random_keys(150, 40, seed=1), [*([None] * 100), *random_keys(150, 40, seed=2)])
    ]
    join = Join("xjoin", SCHEMA, SCHEMA, tmp_path, memory="60rows", options={"partitions": 4}, rows_expected=(300, 250))
    join.arrive(0, batches[0])
    join.end(0)
    join.arrive(1, batches[1])
    table: Any = join.operator.table  # type: ignore[attr-defined]
    assert table.in_memory.sum() == table.memory.limit.rows
    join.close()


@pytest.mark.parametrize("one_side", [None, "left"])
@pytest.mark.parametrize("sizes", [(600, 200), (900, 600)])
def test_the_least_to_load_comes_first(sizes: tuple[int, int], one_side: str | None, tmp_path: Path) -> None:
    left = np.random.default_rng(1).permutation(sizes[0]).tolist()
    arrivals = interleaved(left, random_keys(sizes[1], 2 * sizes[0], seed=2))
    options = {"partitions": 8, "one_side": one_side}
    join = Join("xjoin", SCHEMA, SCHEMA, tmp_path, memory="200rows", options=options)
    for side, key in arrivals:
        join.arrive(side, pa.RecordBatch.from_pydict({"k": [key], "id": [0]}, schema=SCHEMA))
    operator: Any = join.operator
    loads = [
        operator.table.on_disk[operator.state.loaded_side(p), p] for p in operator.policy.cleanup().save()["order"]
    ]
    assert loads == sorted(loads)
    assert loads[0] < loads[-1]
    join.close()


def test_pages_are_counted_as_in_the_papers(tmp_path: Path) -> None:
    arrivals = interleaved(range(400), range(400))
    run = Run("dhj", tmp_path, arrivals, memory="200rows", options={"partitions": 5, "page_rows": 20})
    counters = run.join.counters
    assert counters.tuples_written == counters.tuples_read
    # Every run, flushed or spooled, ends in one page that is not full: at most two runs a side and partition.
    assert counters.tuples_written / 20 <= counters.pages_written <= counters.tuples_written / 20 + 20
    assert counters.pages_read == counters.pages_written


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_state_saved_with_other_partitions(algorithm: str, tmp_path: Path) -> None:
    """A resumed query may have more memory, or know other sizes: the saved state's partitions count."""
    keys = random_keys(60, 20, seed=3)
    batches = [pa.RecordBatch.from_arrays([pa.array(keys), pa.array(range(60))], schema=SCHEMA) for _ in range(2)]
    first = Join(algorithm, SCHEMA, SCHEMA, tmp_path, memory="40rows", options={"partitions": 3, "build_side": "right"})
    rows = first.arrive(0, batches[0]) + first.arrive(1, batches[1].slice(0, 30))
    saved = first.operator.snapshot()
    second = Join(algorithm, SCHEMA, SCHEMA, tmp_path, memory="50rows")
    second.context.ticks.next_tick = first.context.ticks.next_tick
    second.operator.restore(saved)
    first.close()
    rows += second.arrive(1, batches[1].slice(30)) + second.end(0) + second.end(1) + second.finish()
    second.close()
    expected = [(i, j) for i, k in enumerate(keys) for j, m in enumerate(keys) if k == m]
    assert sorted((row["id"], row["id_right"]) for row in rows) == expected


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_row_that_is_too_large(algorithm: str, tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("pad", pa.string()))
    join = Join(algorithm, schema, schema, tmp_path, memory="64KiB", output_rows=8)
    columns: list[Any] = [pa.array([1]), pa.array([1]), pa.array(["x" * 100_000])]
    with pytest.raises(BudgetExceeded, match="give more memory"):
        join.arrive(0, pa.RecordBatch.from_arrays(columns, schema=schema))
    join.close()


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "hmj", "rpj"])
def test_a_saved_state_keeps_its_roles(algorithm: str, tmp_path: Path) -> None:
    """Reading strategies and predictions ask the operator for R and for the one-side."""
    first = Join(algorithm, SCHEMA, SCHEMA, tmp_path, memory="60rows", options={"one_side": "right", "partitions": 3})
    assert (first.operator.build_side, first.operator.one_side) == (1, 1)
    second = Join(algorithm, SCHEMA, SCHEMA, tmp_path, memory="60rows", options={"partitions": 5})
    assert (second.operator.build_side, second.operator.one_side) == (0, None)
    second.operator.restore(first.operator.snapshot())
    assert (second.operator.build_side, second.operator.table.partitions) == (1, 3)  # type: ignore[attr-defined]
    for join in (first, second):
        join.close()
