"""Progressive merge join: worked examples of the paper, deep merge trees, hot keys, and what it counts."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import earlyjoin as ej
from algorithms.harness import Join, batch
from earlyjoin.algorithms import registry
from earlyjoin.algorithms.choice import choose
from earlyjoin.algorithms.merge_join.blocks import RunSequence
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.algorithms.protocol import Slice
from earlyjoin.errors import BudgetExceeded
from earlyjoin.state import joined
from earlyjoin.state.budget import MemoryLimit

SCHEMA = batch([]).schema


def rows(k: list[int | None]) -> pa.RecordBatch:
    """Keys, and the place of each row as its name."""
    return batch(k, id=np.arange(len(k)))


def run(tmp_path: Path, left: list[int | None], right: list[int | None], *, memory: str, **more: Any) -> list[Any]:
    """Join two lists of keys, in batches of five by turns; pairs of places."""
    sides = (rows(left), rows(right))
    join = Join("pmj", sides[0].schema, sides[1].schema, tmp_path, memory=memory, **more)
    found = []
    for start in range(0, max(len(left), len(right)), 5):
        for side, whole in enumerate(sides):
            if start < whole.num_rows:
                found += join.arrive(side, whole.slice(start, 5))
    found += join.end(0) + join.end(1) + join.finish()
    join.close()
    return [(row["id"], row.get("id_right")) for row in found]


def nested(left: list[int | None], right: list[int | None]) -> Counter[Any]:
    pairs = ((i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a is not None and a == b)
    return Counter(pairs)


BINARY = {"fan_in": 2}
"""Merge trees as deep as they get."""


def test_join_during_run_creation_and_during_merge(tmp_path: Path) -> None:
    """Figure 2: pairs within one memory load come while rows arrive, the others in the merge."""
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory="8rows")
    assert join.arrive(0, batch([3, 1, 2, 8])) == []
    assert join.arrive(1, batch([2, 5, 1, 9])) == []
    first = join.arrive(0, batch([5, 2]))
    assert sorted(row["k"] for row in first) == [1, 2], "the first pair of runs was joined before it was written"
    assert (join.counters.flushes, join.counters.tuples_written) == (1, 8)
    join.arrive(1, batch([3, 5]))
    rest = join.finish()
    assert sorted(row["k"] for row in rest) == [2, 3, 5, 5]
    assert join.counters.tuples_read == join.counters.tuples_written == 12
    join.close()


def test_pairs_of_one_run_are_given_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 3.3: without the rule, the merge would give the pairs of the initial runs again."""
    keys: list[int | None] = [k % 4 for k in range(30)]
    assert Counter(run(tmp_path, keys, keys, memory="16rows")) == nested(keys, keys)
    monkeypatch.setattr(joined, "same_run", lambda left, right: False)
    assert Counter(run(tmp_path, keys, keys, memory="16rows")) != nested(keys, keys)


@pytest.mark.parametrize("memory", ["8rows", "9rows", "20rows", "64KiB"])
@pytest.mark.parametrize("kind", ["spread", "equal", "few", "left only", "right only", "none"])
def test_deep_merge_trees(tmp_path: Path, memory: str, kind: str) -> None:
    rng = random.Random(5)
    make = {"spread": lambda: rng.randrange(40), "equal": lambda: 7, "few": lambda: rng.choice([1, 1, 1, 2, None])}
    key = make.get(kind, make["spread"])
    left: list[int | None] = [key() for _ in range(0 if kind in ("right only", "none") else 40)]
    right: list[int | None] = [key() for _ in range(0 if kind in ("left only", "none") else 40)]
    assert Counter(run(tmp_path, left, right, memory=memory, options=BINARY)) == nested(left, right)


@pytest.mark.parametrize("how", ["left", "right", "full", "semi", "anti"])
def test_join_types_with_deep_merge_trees(tmp_path: Path, how: str) -> None:
    rng = random.Random(6)
    left: list[int | None] = [rng.choice([None, *range(30)]) for _ in range(70)]
    right: list[int | None] = [rng.choice([None, *range(15, 45)]) for _ in range(50)]
    pairs = nested(left, right)
    unmatched = [
        {(i, None) for i in range(len(left))} - {(i, None) for i, _ in pairs},
        {(None, j) for j in range(len(right))} - {(None, j) for _, j in pairs},
    ]
    expected = {
        "left": pairs + Counter(unmatched[0]),
        "right": pairs + Counter(unmatched[1]),
        "full": pairs + Counter(unmatched[0]) + Counter(unmatched[1]),
        "semi": Counter({(i, None) for i, _ in pairs}),
        "anti": Counter(unmatched[0]),
    }
    assert Counter(run(tmp_path, left, right, memory="8rows", how=how, options=BINARY)) == expected[how]


def test_semi_joins_do_not_write_rows_that_have_matched(tmp_path: Path) -> None:
    """Section 3.6."""
    written = {}
    for how in ("inner", "semi", "anti"):
        join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory="160rows", how=how)
        for start in range(0, 400, 20):
            for side in (0, 1):
                join.arrive(side, batch([k % 10 for k in range(start, start + 20)]))
        join.finish()
        written[how] = join.counters.tuples_written
        join.close()
    assert written["inner"] == 800
    assert written["semi"] == written["anti"] <= 400 + 70, "all rows of the right, and left rows that came alone"


def keys_of_both(count: int) -> list[list[int | None]]:
    return [[k * 7 % 50 for k in range(count)], [k * 3 % 90 for k in range(count)]]


@pytest.mark.parametrize(("split", "parts"), [(0.25, (10, 30)), (0.5, (20, 20)), (0.9, (36, 4))])
def test_an_uneven_split_is_kept(tmp_path: Path, split: float, parts: tuple[int, int]) -> None:
    """Section 3.6: rows come in the ratio 1:1, but no run gets more than its side's part of the memory."""
    keys = keys_of_both(200)
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory="40rows", options={"split": split}, output_rows=4096)
    found = 0
    for start in range(0, 200, 20):
        for side in (0, 1):
            found += len(join.arrive(side, batch(keys[side][start : start + 20])))
    pairs = join.operator._pairs  # type: ignore[attr-defined]
    smaller = int(parts[1] < parts[0])
    for pair in pairs:
        assert all(run.rows <= part for run, part in zip(pair.runs, parts, strict=True))
        assert pair.runs[smaller].rows == parts[smaller], "a pair is written when the smaller part is full"
    found += len(join.end(0)) + len(join.end(1)) + len(join.finish())
    assert found == sum(Counter(keys[1])[k] for k in keys[0])
    join.close()


def test_a_row_larger_than_its_part_ends_the_split(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.int64()), ("pad", pa.string())])
    join = Join("pmj", schema, schema, tmp_path, memory="128KB", options={"split": 0.1})
    rows = [{"k": n, "pad": "p" * 12_000} for n in range(8)]
    found = join.arrive(0, pa.RecordBatch.from_pylist(rows, schema=schema))
    found += join.arrive(1, pa.RecordBatch.from_pylist(rows, schema=schema)) + join.finish()
    assert len(found) == 8
    join.close()


@pytest.mark.parametrize("split", [0.2, 0.8])
def test_rows_that_come_in_the_ratio_of_the_split_fill_the_memory(tmp_path: Path, split: float) -> None:
    ratio = (round(10 * split), round(10 * (1 - split)))
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory="40rows", options={"split": split})
    for start in range(30):
        for side in (0, 1):
            join.arrive(side, batch(range(start, start + ratio[side])))
    pairs = join.operator._pairs  # type: ignore[attr-defined]
    assert {tuple(run.rows for run in pair.runs) for pair in pairs} == {(4 * ratio[0], 4 * ratio[1])}
    join.close()


def test_the_part_of_a_side_that_has_ended_goes_to_the_other(tmp_path: Path) -> None:
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory="40rows", options={"split": 0.75})
    join.arrive(1, batch(range(10)))
    join.end(0)
    join.arrive(1, batch(range(30)))
    assert join.counters.flushes == 0
    join.arrive(1, batch(range(1)))
    assert join.counters.flushes == 1
    join.close()


def test_ten_percent_of_memory_and_a_fan_in_of_ten_make_two_levels(tmp_path: Path) -> None:
    """Section 4: initial runs, and one merge that takes all of them."""
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory="400rows", output_rows=4096)
    for start in range(0, 2000, 50):
        for side in (0, 1):
            join.arrive(side, batch([(k * 7919 + side) % 5000 for k in range(start, start + 50)]))
    join.finish()
    assert join.counters.flushes == 10
    assert join.counters.tuples_written == join.counters.tuples_read == 4000, "every row is written and read once"
    join.close()


def test_idle_time_merges_runs(tmp_path: Path) -> None:
    keys: list[int | None] = [k * 7 % 50 for k in range(100)]
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory="24rows")
    found = join.arrive(0, batch(keys)) + join.arrive(1, batch(keys))
    assert found == [], "the sides never were in memory together"
    assert join.operator.has_reactive_work()
    while join.operator.has_reactive_work():
        before = join.counters.pages_read
        found += join.take(join.operator.react(Slice(3)))
        assert join.counters.pages_read - before <= 9, "a slice is bounded; of parked pages it reads those that fit"
    assert len(found) > 150
    found += join.finish()
    assert len(found) == 200
    join.close()


def test_the_first_join_does_not_wait_for_memory_to_fill(tmp_path: Path) -> None:
    """Section 3.6: start small and double."""
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory="100MB")
    assert len(join.arrive(0, batch(range(32))) + join.arrive(1, batch(range(32)))) == 32
    assert join.arrive(0, batch(range(32))) == []
    assert len(join.arrive(1, batch(range(32)))) == 32 * 4 - 32
    assert join.counters.pages_written == 0
    join.close()


def test_a_row_that_is_too_large_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.int64()), ("pad", pa.string())])
    join = Join("pmj", schema, schema, tmp_path, memory="64KiB")
    with pytest.raises(BudgetExceeded, match=r"a row of about 100\.0 kB is too large for what the memory of 65\.5 kB"):
        join.arrive(0, batch([1], pad=["x" * 100_000]))
    join.close()


@pytest.mark.parametrize("on", [ej.band("k", eps=10**6), ej.not_equal("k")], ids=str)
def test_sweep_areas_that_do_not_fit(tmp_path: Path, on: Any) -> None:
    """Section 3.4: everything matches, so no area ever gets smaller; pages are parked and joined block by block."""
    keys: list[int | None] = list(range(500))
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory="64KiB", on=on, output_rows=4096)
    count = len(join.arrive(0, batch(keys))) + len(join.arrive(1, batch(keys))) + len(join.finish())
    assert count == 500 * 500 - (500 if "eps" not in repr(on) else 0)
    join.close()


@pytest.mark.parametrize("algorithm", ["smj-semi", "smj"])
@pytest.mark.parametrize("broken", [False, True])
def test_a_parked_page_that_comes_by_once_more_shares_its_flags(
    tmp_path: Path, algorithm: str, broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: it gave its rows twice.

    Zeros fill the memory and never expire. So 3 is parked when 5 comes, and 5 when 7 comes. When both are paid for, the
    page of 5 is in memory twice: as the parked page that meets 7, and as the page that comes by and meets 3.
    """
    if broken:
        monkeypatch.setattr(RunSequence, "refresh", lambda *_: None)
    join = Join(algorithm, SCHEMA, SCHEMA, tmp_path, memory="8rows", on=ej.not_equal("k"), how="semi")
    found = join.arrive(0, batch([0] * 10 + [5])) + join.arrive(1, batch([3, 7])) + join.finish()
    assert sorted(row["k"] for row in found) == [0] * 10 + [5] * (2 if broken else 1)
    join.close()


@pytest.mark.parametrize("algorithm", ["pmj", "smj-semi", "smj"])
@pytest.mark.parametrize("how", ["semi", "anti", "full"])
def test_parked_pages_of_both_sides(tmp_path: Path, algorithm: str, how: str) -> None:
    rng = random.Random(8)
    for _ in range(6):
        keys: list[list[int]] = [[rng.choice([0, 0, 0, 1]) for _ in range(24)] for _ in range(2)]
        join = Join(algorithm, SCHEMA, SCHEMA, tmp_path, memory="9rows", on=ej.not_equal("k"), how=how)
        found = join.arrive(0, batch(keys[0])) + join.arrive(1, batch(keys[1])) + join.finish()
        pairs = sum(a != b for a in keys[0] for b in keys[1])
        matching = [sum(any(a != b for b in keys[1 - side]) for a in keys[side]) for side in (0, 1)]
        expected = {"semi": matching[0], "anti": 24 - matching[0], "full": pairs + 48 - sum(matching)}
        assert len(found) == expected[how]
        join.close()


@pytest.mark.parametrize(
    ("condition", "bytes_", "name"),
    [
        (ej.band("k", eps=1), 1000, "pmj"),
        (ej.band("k", eps=1), 10**9, "pmj"),
        (ej.less("k"), None, "pmj"),
        (ej.where(ej.predicates.filters.pc.field("k") > 1), None, "nested"),
    ],
    ids=str,
)
def test_auto_prefers_it_to_the_nested_loop(condition: Any, bytes_: int | None, name: str) -> None:
    plan = make_plan(condition, SCHEMA, SCHEMA)
    assert choose(plan, MemoryLimit(bytes=10**6), bytes_, None).name == name


def test_auto_takes_it_for_equality_when_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    some = {name: registry.get(name) for name in ("nested", "shj", "smj", "smj-semi", "pmj")}
    monkeypatch.setattr(registry, "_registered", some)
    plan = make_plan(ej.equal("k"), SCHEMA, SCHEMA)
    assert choose(plan, MemoryLimit(bytes=10**6), 10**9, None).name == "pmj"
    assert choose(plan, MemoryLimit(bytes=10**6), 1000, None).name == "shj"


def wide_rows(count: int, seed: int, width: int = 1640) -> pa.RecordBatch:
    """Rows of so many bytes, as those of many columns travel."""
    rng = np.random.default_rng(seed)
    values = pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(rng.bytes(count * width))])
    return pa.RecordBatch.from_arrays([pa.array(rng.permutation(count)), values], names=["k", "wide"])


@pytest.mark.parametrize("algorithm", ["pmj", "smj"])
def test_idle_merges_of_wide_rows_fit_beside_the_rows_in_memory(tmp_path: Path, algorithm: str) -> None:
    """A page of one or two rows is written by way of a buffer of as many, also when many runs are merged at once."""
    sides = [wide_rows(1000, side) for side in (0, 1)]
    join = Join(algorithm, sides[0].schema, sides[1].schema, tmp_path, memory=600_000, output_rows=19)
    found = []
    for start in range(0, 1000, 20):
        for side in (0, 1):
            found += join.arrive(side, sides[side].slice(start, 20))
    found += join.take(join.operator.react(Slice(10**6)))
    found += join.end(0) + join.end(1) + join.finish()
    assert sorted(row["k"] for row in found) == list(range(1000))
    join.close()
