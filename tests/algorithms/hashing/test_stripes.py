"""Striped runs: a partition that does not fit is cleaned up stripe by stripe, and every page is read once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from algorithms.harness import Join
from algorithms.hashing.driving import SCHEMA, Run, interleaved, naive, random_keys
from earlyjoin.algorithms.hash_join.table.partitioning import STRIPES, Partitioner
from earlyjoin.errors import InputError
from earlyjoin.predicates.encoding.keys import Keys
from earlyjoin.state.counters import Phase

SMALL_PAGES = {"partitions": 1, "page_rows": 1}
"""Runs of few rows have no stripes if pages are large."""
OUTER = ["inner", "left", "right", "full", "semi", "anti"]


def _expected(arrivals: list[tuple[int, int]], how: str) -> Counter[Any]:
    """Rows of the result by row numbers, from nested loops."""
    pairs = naive(arrivals)
    sizes = [sum(side == s for side, _ in arrivals) for s in range(2)]
    met = [{pair[s] for pair in pairs} for s in range(2)]
    alone = [[row for row in range(sizes[s]) if row not in met[s]] for s in range(2)]
    if how in ("semi", "anti"):
        return Counter(met[0] if how == "semi" else alone[0])
    result: Counter[Any] = Counter(pairs)
    if how in ("left", "full"):
        result.update((row, None) for row in alone[0])
    if how in ("right", "full"):
        result.update((None, row) for row in alone[1])
    return result


def _got(rows: list[dict[str, Any]], how: str) -> Counter[Any]:
    return Counter(row["id"] if how in ("semi", "anti") else (row["id"], row["id_right"]) for row in rows)


def test_stripes_are_even_and_independent_of_partitions() -> None:
    partitioner = Partitioner(40)
    keys = Keys(np.arange(100_000, dtype=np.int64).reshape(-1, 1))
    cells = np.zeros((40, STRIPES), dtype=np.int64)
    np.add.at(cells, (partitioner.numbers(keys), partitioner.stripes(keys)), 1)
    assert cells.min() > 100
    assert cells.max() < 220


@pytest.mark.parametrize(("memory", "rows", "batch"), [("400rows", 3000, 50), ("512KiB", 15_000, 500)])
@pytest.mark.parametrize("how", OUTER)
def test_a_partition_of_many_times_the_memory(memory: str, rows: int, batch: int, how: str, tmp_path: Path) -> None:
    """Rows are read once, not once for each fill of the memory."""
    keys = [random_keys(rows, rows, seed=seed) for seed in (1, 2)]
    arrivals = interleaved(*keys, batch, batch)
    run = Run("xjoin", tmp_path, arrivals, memory=memory, how=how, options=SMALL_PAGES, batch_rows=batch)
    assert _got(run.rows, how) == _expected(arrivals, how)
    counters = run.join.counters
    assert counters.results[Phase.CLEANUP] > 0
    assert counters.tuples_written >= rows
    assert counters.tuples_read <= 1.2 * counters.tuples_written


def test_others_make_room_for_a_stripe_at_most(tmp_path: Path) -> None:
    """Memory is full at the end; what leaves then is less than a partition of one side has on disk."""
    arrivals = interleaved(random_keys(6000, 2000, seed=1), random_keys(6000, 2000, seed=2), 50, 50)
    options = SMALL_PAGES | {"partitions": 8}
    run = Run(
        "xjoin", tmp_path, arrivals, memory="2000rows", batch_rows=50, options=options, rows_expected=(6000, 6000)
    )
    assert run.pairs == naive(arrivals)
    made_room = run.join.counters.tuples_written - run.on_disk_at_end.sum()
    assert 0 < made_room < run.on_disk_at_end.min() / 4
    assert run.join.counters.tuples_read == run.join.counters.tuples_written


@pytest.mark.parametrize("how", ["inner", "full"])
def test_a_hot_key_among_many(how: str, tmp_path: Path) -> None:
    """Its stripe is block nested, the others are read once; what is in memory meets no page twice."""
    left = random_keys(600, 900, seed=1) + [7] * 300
    right = random_keys(600, 900, seed=2) + [7] * 200
    rng = np.random.default_rng(3)
    arrivals = interleaved(rng.permutation(left).tolist(), rng.permutation(right).tolist(), 20, 20)
    for partitions in (1, 3):
        options = SMALL_PAGES | {"partitions": partitions}
        run = Run("xjoin", tmp_path, arrivals, memory="100rows", how=how, options=options, react=1, batch_rows=20)
        assert _got(run.rows, how) == _expected(arrivals, how)


@pytest.mark.parametrize("memory", ["300rows", "512KiB"])
def test_the_one_side_is_checked_stripe_by_stripe(memory: str, tmp_path: Path) -> None:
    left = np.random.default_rng(1).permutation(2000).tolist()
    right = random_keys(3000, 2500, seed=2)
    options = SMALL_PAGES | {"one_side": "left"}
    arrivals = interleaved(left, right, 50, 50)
    run = Run("xjoin", tmp_path, arrivals, memory=memory, options=options, batch_rows=50)
    assert run.pairs == naive(arrivals)
    with pytest.raises(InputError, match="occurs more than once"):
        Run(
            "xjoin",
            tmp_path,
            interleaved([*left, left[0]], right, 50, 50),
            memory=memory,
            options=options,
            batch_rows=50,
        )


@pytest.mark.parametrize("how", ["inner", "full"])
@pytest.mark.parametrize(("memory", "rows", "every"), [("400rows", 900, 211), ("512KiB", 15_000, 29)])
def test_a_state_saved_at_any_step_of_the_clean_up(
    memory: str, rows: int, every: int, how: str, tmp_path: Path
) -> None:
    """Also between two stripes, with rows of later ones still in memory; and a state can be restored again."""
    arrivals = interleaved(random_keys(rows, rows, seed=1), random_keys(rows, rows, seed=2))
    given: dict[str, Any] = {
        "memory": memory,
        "how": how,
        "options": SMALL_PAGES,
        "output_rows": 64,
    }
    batches = [
        pa.RecordBatch.from_pydict({"k": keys, "id": list(range(len(keys)))}, schema=SCHEMA)
        for keys in ([key for side, key in arrivals if side == s] for s in range(2))
    ]
    join = Join("xjoin", SCHEMA, SCHEMA, tmp_path, **given)
    found, expected = [], _expected(arrivals, how)
    for start in range(0, rows, rows // 20):
        for side in range(2):
            found += join.arrive(side, batches[side].slice(start, rows // 20))
    for side in range(2):
        found += join.end(side)
    seen = set()
    for number, step in enumerate(join.operator.finish()):
        found += join.take([step])
        if number % every == every - 1:
            seen.add(tuple(join.operator.cleanup.save()["stripes"]))  # type: ignore[attr-defined]
            saved = join.operator.snapshot()
            for _ in range(2):
                other, more = Join("xjoin", SCHEMA, SCHEMA, tmp_path, **given), list(found)
                other.context.ticks.next_tick = join.context.ticks.next_tick
                other.operator.restore(saved)
                more += other.take(other.operator.resume())
                other.close()
                assert _got(more, how) == expected
    assert len(seen) > 2
    assert _got(found, how) == expected
    join.close()
