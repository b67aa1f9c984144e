"""What only the symmetric hash join does: what it keeps, when unmatched rows go out, how it runs out of memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import earlyjoin as ej
from algorithms.harness import Join, batch
from earlyjoin.errors import BudgetExceeded
from earlyjoin.state.counters import Phase
from earlyjoin.state.snapshot import Snapshot

LEFT = pa.schema([("k", pa.int64()), ("l", pa.int64())])
RIGHT = pa.schema([("k", pa.int64()), ("r", pa.int64())])


def left(*keys: int | None) -> pa.RecordBatch:
    return batch(keys, l=range(len(keys)))


def right(*keys: int | None) -> pa.RecordBatch:
    return batch(keys, r=range(len(keys)))


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_rows_that_come_after_the_other_side_has_ended_are_not_kept(how: str, tmp_path: Path) -> None:
    join = Join("shj", LEFT, RIGHT, tmp_path, how=how)
    nothing = join.used
    join.arrive(0, left(*range(5000)))
    with_left = join.used
    assert with_left > nothing + 5000 * 16
    join.arrive(1, right(*range(2500)))
    with_both = join.used
    join.end(1)
    assert join.used < with_both - 5000 * 16, "nobody will probe the left rows any more"
    kept = join.used
    for _ in range(5):
        join.arrive(0, left(*range(1000, 3000)))
        assert join.used == kept, "rows that only probe are not kept"
    join.end(0)
    join.finish()
    assert join.used == nothing, "nothing is left to be probed"
    join.close()


def test_the_other_way_round(tmp_path: Path) -> None:
    join = Join("shj", LEFT, RIGHT, tmp_path)
    nothing = join.used
    join.arrive(1, right(*range(5000)))
    join.end(0)
    assert join.used == nothing
    assert join.arrive(1, right(1, 2, 3)) == []
    assert join.used == nothing
    join.close()


def test_unmatched_rows_go_out_as_soon_as_the_other_side_has_ended(tmp_path: Path) -> None:
    join = Join("shj", LEFT, RIGHT, tmp_path, how="full")
    join.arrive(0, left(1, 2, None, 3))
    assert [row["r"] for row in join.arrive(1, right(2, 9))] == [0]
    gone = join.end(1)
    assert sorted((row["k"] or 0, row["l"], row["r"]) for row in gone) == [(0, 2, None), (1, 0, None), (3, 3, None)]
    late = join.arrive(0, left(9, 8, None))
    assert sorted((row["l"], row["r"]) for row in late if row["r"] is not None) == [(0, 1)]
    assert sorted(row["l"] for row in late if row["r"] is None) == [1, 2]
    assert join.end(0) == [], "9 has been matched meanwhile"
    assert join.finish() == []
    assert join.counters.results[Phase.CLEANUP] == 0
    join.close()


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_semi_and_anti_as_soon_as_they_are_certain(how: str, tmp_path: Path) -> None:
    join = Join("shj", LEFT, RIGHT, tmp_path, how=how)
    join.arrive(1, right(1))
    first = join.arrive(0, left(1, 2, 3, None))
    second = join.arrive(1, right(3, 3, 1))
    ended = join.end(1)
    late = join.arrive(0, left(3, 7, None))
    rest = join.end(0) + join.finish()
    found = [[row["l"] for row in rows] for rows in (first, second, ended, late, rest)]
    assert found == ([[0], [2], [], [0], []] if how == "semi" else [[], [], [1, 3], [1, 2], []])
    join.close()


def test_running_out_of_memory_names_those_that_can_spill_and_stays_inside(tmp_path: Path) -> None:
    join = Join("shj", LEFT, RIGHT, tmp_path, memory="256KiB")

    def arrive_until_full() -> None:
        for start in range(0, 100_000, 500):
            join.arrive(start // 500 % 2, [left, right][start // 500 % 2](*range(start, start + 500)))

    with pytest.raises(BudgetExceeded) as caught:
        arrive_until_full()
    message = str(caught.value)
    assert "memory of 262.1 kB is full after" in message
    assert "rows of the left and" in message
    assert (
        "shj (symmetric hash join) cannot spill; give more memory, or choose an algorithm that can spill: " in message
    )
    assert "nested" in message.rsplit(":", 1)[1]
    assert "shj" not in message.rsplit(":", 1)[1]
    assert 200_000 < join.context.budget.peak_bytes <= 2**18
    assert list(tmp_path.iterdir()) == []
    join.close()


def test_running_out_of_rows(tmp_path: Path) -> None:
    join = Join("shj", LEFT, RIGHT, tmp_path, memory="10rows")
    join.arrive(0, left(1, 2, 3, 4, 5, 6))
    message = "memory of 10 rows is full after 6 rows of the left and 5 rows of the right input"
    with pytest.raises(BudgetExceeded, match=message):
        join.arrive(1, right(1, 2, 3, 4, 5))
    assert join.context.budget.peak_rows <= 10
    join.close()


def test_hot_keys_go_out_in_bounded_batches(tmp_path: Path) -> None:
    join = Join("shj", LEFT, RIGHT, tmp_path, output_rows=4096, how="full")
    join.arrive(0, left(*[7] * 1000))
    used = join.used
    pairs = np.zeros((1000, 1000), dtype=np.int64)
    steps = 0
    for step in join.operator.arrive(1, right(*[7] * 1000)):
        steps += 1
        if step is not None:
            assert len(step) <= 4096
            i, j = step.index
            assert i is not None
            assert j is not None
            np.add.at(pairs, (i, j), 1)
        assert join.used < used + 200_000, "output does not pile up"
    assert (pairs == 1).all()
    assert steps <= 1_000_000 // 4096 + 3
    assert join.counters.comparisons == 1_000_000
    assert join.end(0) + join.end(1) + join.finish() == []
    join.close()


@pytest.mark.parametrize("how", ["semi", "anti"])
@pytest.mark.parametrize("first", [0, 1])
def test_semi_and_anti_with_hot_keys_stay_near_linear(how: str, first: int, tmp_path: Path) -> None:
    join = Join("shj", LEFT, RIGHT, tmp_path, how=how, output_rows=256)
    rows = []
    for start in range(0, 1000, 100):
        for side in (first, 1 - first):
            keys = [7] * 99 + [1000 + start + side]
            rows += join.arrive(side, [left, right][side](*keys))
    for side in (first, 1 - first):
        rows += join.end(side)
    rows += join.finish()
    assert len(rows) == (990 if how == "semi" else 10)
    # Quadratic would be 990,000.
    assert join.counters.comparisons < 10 * 2000
    join.close()


def test_a_filter_sees_every_candidate_of_a_semi_join(tmp_path: Path) -> None:
    """One match is enough, but it must pass the filter: the first candidate may not."""
    condition = ej.equal("k", "k") & ej.where(pc.field("r") == 3)
    join = Join("shj", LEFT, RIGHT, tmp_path, how="semi", on=condition)
    join.arrive(1, right(1, 1, 1, 1, 1))
    assert [row["l"] for row in join.arrive(0, left(1, 2))] == [0]
    join.close()


def test_a_snapshot_between_any_two_steps_goes_on_the_same(tmp_path: Path) -> None:
    """The cursor of a probe in hand points into chains that a restored index must have, too."""
    rng = np.random.default_rng(2)
    lefts = [left(*rng.integers(0, 6, 40).tolist()) for _ in range(3)]
    probe = right(*rng.integers(0, 6, 30).tolist())

    def started() -> Join:
        join = Join("shj", LEFT, RIGHT, tmp_path, output_rows=16)
        for rows in lefts:
            join.arrive(0, rows)
        return join

    whole = started()
    expected = whole.arrive(1, probe)
    whole.close()
    for stop in (0, 1, 5, len(expected) // 16):
        join = started()
        going, rows = join.operator.arrive(1, probe), []
        for _ in range(stop):
            rows += join.take([next(going)])
        join.operator.snapshot().save(tmp_path / f"saved-{stop}")
        join.close()
        other = Join("shj", LEFT, RIGHT, tmp_path, output_rows=16)
        other.operator.restore(Snapshot.load(tmp_path / f"saved-{stop}"))
        rows += other.take(other.operator.resume())
        assert rows == expected, "the same rows in the same order"
        other.close()


def test_empty_batches_and_null_keys(tmp_path: Path) -> None:
    join = Join("shj", LEFT, RIGHT, tmp_path)
    assert join.arrive(0, left()) == []
    assert join.arrive(1, right(None, None)) == []
    rows = join.used
    join.arrive(0, left(*[None] * 5000))
    assert join.used == rows, "rows that can neither match nor go out are not kept"
    assert join.counters.rows_in == [5000, 2]
    assert join.end(0) + join.end(1) + join.finish() == []
    join.close()
