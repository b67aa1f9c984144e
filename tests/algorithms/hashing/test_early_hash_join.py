"""EHJ and its relatives: biased flushing, frozen partitions, discards, 1:N joins, the background process."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from algorithms.harness import Join, batch
from algorithms.hashing.driving import SCHEMA, Run, interleaved, naive, random_keys
from earlyjoin.algorithms.protocol import Slice
from earlyjoin.state.counters import Phase


def test_s_leaves_before_r_and_the_largest_first(tmp_path: Path) -> None:
    arrivals = interleaved(random_keys(300, 500, seed=1), random_keys(300, 500, seed=2), 4, 4)
    run = Run("ehj", tmp_path, arrivals, memory="200rows", options={"partitions": 5})
    frozen_at = run.operator.table.frozen_at
    assert run.pairs == naive(arrivals)
    assert (frozen_at[1] < frozen_at[0]).all()
    assert run.frozen_at_end[1].all()
    assert not run.frozen_at_end[0].all()
    assert run.in_memory_at_end[1].sum() == 0


def test_in_memory_phase_gives_what_the_formula_says(tmp_path: Path) -> None:
    """Section 3.1.1: before memory is full everything read has met; nothing is written."""
    arrivals = interleaved(random_keys(100, 50, seed=3), random_keys(100, 50, seed=4))
    run = Run("ehj", tmp_path, arrivals, memory="400rows")
    assert run.join.counters.flushes == run.join.counters.pages_written == 0
    assert len(run.before_cleanup) == len(run.rows) == sum(naive(arrivals).values())


def test_dynamic_hash_join_gives_nothing_before_r_has_ended(tmp_path: Path) -> None:
    left, right = random_keys(200, 60, seed=5), random_keys(300, 60, seed=6)
    first = Run("dhj", tmp_path, [*[(0, k) for k in left], *[(1, k) for k in right]], memory="150rows")
    assert first.pairs == naive([*[(0, k) for k in left], *[(1, k) for k in right]])
    assert first.join.counters.results[Phase.ARRIVING] > 0
    # Rows of S whose R partition is in memory are never written, all others once.
    kept = first.join.counters.inserts_avoided
    assert first.join.counters.tuples_written == 200 - first.in_memory_at_end[0].sum() + 300 - kept
    mixed = Run("dhj", tmp_path, interleaved(left, right), memory="150rows")
    assert mixed.pairs == naive(interleaved(left, right))


def test_reading_r_first_makes_ehj_a_dynamic_hash_join(tmp_path: Path) -> None:
    """EHJ section 4.2: with all of R before S, the same rows are written and read."""
    arrivals = [*[(0, k) for k in random_keys(300, 90, seed=7)], *[(1, k) for k in random_keys(500, 90, seed=8)]]
    ehj, dhj = (Run(name, tmp_path, arrivals, memory="200rows", options={"partitions": 6}) for name in ("ehj", "dhj"))
    assert ehj.pairs == dhj.pairs == naive(arrivals)
    assert ehj.join.counters.results[Phase.ARRIVING] > 0
    ratio = ehj.join.counters.tuples_written / dhj.join.counters.tuples_written
    assert 0.8 < ratio < 1.25  # the victims differ: the smallest of R, or the largest


def test_rows_of_s_are_dropped_only_when_their_r_partition_is_whole(tmp_path: Path) -> None:
    left, right = random_keys(100, 40, seed=9), random_keys(400, 40, seed=10)
    arrivals = interleaved(left, right)
    run = Run("ehj", tmp_path, arrivals, memory="80rows", options={"partitions": 4})
    assert run.pairs == naive(arrivals)
    in_memory = np.flatnonzero(~run.frozen_at_end[0])
    assert len(in_memory)
    assert 0 < run.join.counters.inserts_avoided <= 300


def test_one_to_many_writes_less_and_gives_the_same(tmp_path: Path) -> None:
    """Section 3.3: a matched row of the many-side is of no further use."""
    left = np.random.default_rng(11).permutation(200).tolist()
    arrivals = interleaved(left, random_keys(600, 200, seed=12), 5, 5)
    for algorithm in ("ehj", "xjoin", "dhj"):
        plain = Run(algorithm, tmp_path, arrivals, memory="120rows")
        told = Run(algorithm, tmp_path, arrivals, memory="120rows", options={"one_side": "left"})
        assert plain.pairs == told.pairs == naive(arrivals)
        assert told.join.counters.tuples_written <= plain.join.counters.tuples_written
        if algorithm != "dhj":
            assert told.join.counters.discards > 0
            assert told.join.counters.inserts_avoided > plain.join.counters.inserts_avoided


def test_the_background_process_finds_results_and_repeats_none(tmp_path: Path) -> None:
    arrivals = interleaved(random_keys(150, 30, seed=15), random_keys(150, 30, seed=16))
    for react in (1, 4, 50):
        run = Run("ehj", tmp_path, arrivals, memory="100rows", react=react)
        assert run.pairs == naive(arrivals)
        assert run.join.counters.results[Phase.REACTIVE] > 0


@pytest.mark.parametrize("how", ["inner", "full", "semi"])
def test_the_background_process_as_a_thread(how: str, tmp_path: Path) -> None:
    """Rows arrive while it runs; nothing gets lost, nothing comes twice, and the thread is gone at the end."""
    arrivals = interleaved(random_keys(200, 30, seed=15), random_keys(200, 30, seed=16), 5, 5)
    steps = Run("ehj", tmp_path, arrivals, memory="100rows", react=6, how=how)
    thread = Run("ehj", tmp_path, arrivals, memory="100rows", react=6, how=how, concurrent=True, output_rows=16)
    assert _sorted(thread.rows) == _sorted(steps.rows)
    assert thread.join.counters.results[Phase.REACTIVE] > 0
    assert not [one for one in threading.enumerate() if one.name == "earlyjoin-background"]


def test_a_state_saved_while_the_thread_runs(tmp_path: Path) -> None:
    keys = random_keys(160, 25, seed=19)
    pieces = [batch(keys, id=range(160)).slice(start, 20) for start in range(0, 160, 20)]
    joins = [Join("ehj", SCHEMA, SCHEMA, tmp_path, memory="80rows", output_rows=8)]
    rows: list[dict[str, Any]] = []
    for piece in pieces:
        join = joins[-1]
        join.context.concurrent = True
        for side in (0, 1):
            rows += join.arrive(side, piece)
            rows += join.take(join.operator.react(Slice(3)))
        joins.append(Join("ehj", SCHEMA, SCHEMA, tmp_path, memory="80rows", output_rows=8))
        joins[-1].context.ticks.next_tick = join.context.ticks.next_tick
        joins[-1].operator.restore(join.operator.snapshot())
        join.close()
    rows += [row for side in (0, 1) for row in joins[-1].end(side)] + joins[-1].finish()
    joins[-1].close()
    expected = [(i, j) for i, k in enumerate(keys) for j, m in enumerate(keys) if k == m]
    assert sorted((row["id"], row["id_right"]) for row in rows) == expected


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def test_files_that_have_met_all_of_r_are_removed(tmp_path: Path) -> None:
    """Section 4.5: when R has ended, a file of S that has probed its whole partition is not needed any more."""
    arrivals = [*interleaved(random_keys(40, 20, seed=17), random_keys(60, 20, seed=18)), *[(1, k) for k in range(20)]]
    run = Run("ehj", tmp_path, arrivals, memory="60rows", react=200)
    assert run.pairs == naive(arrivals)
    assert run.join.counters.results[Phase.CLEANUP] < run.join.counters.results[Phase.REACTIVE]


def test_null_keys_of_outer_joins_go_out_at_once(tmp_path: Path) -> None:
    join = Join("ehj", SCHEMA, SCHEMA, tmp_path, how="full")
    rows = join.arrive(0, batch([None, 1, None], id=[0, 1, 2]))
    assert [row["id"] for row in rows] == [0, 2]
    join.close()
