"""The exactly-once rules against simulations that watch every tick."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.state.clock import LogicalClock
from earlyjoin.state.joined import ProbeHistory, RunPairs, resided_together, same_run

NEVER = LogicalClock.NEVER
END = 60


@st.composite
def residences(draw: st.DrawFn, rows: int) -> list[tuple[int, int]]:
    """Arrival and departure of some rows; all moments differ, as those of one logical clock do."""
    moments = draw(st.permutations(range(1, END)))[: 2 * rows]
    found = []
    for first, second in zip(moments[:rows], moments[rows:], strict=True):
        departure = max(first, second) if draw(st.booleans()) else NEVER
        found.append((min(first, second), departure))
    return found


@given(data=st.data(), inputs=st.integers(2, 5))
@settings(deadline=None, max_examples=150)
def test_resided_together_is_a_moment_in_common(data: st.DataObject, inputs: int) -> None:
    intervals = data.draw(residences(inputs))
    in_common = [t for t in range(END + 1) if all(arrival <= t < departure for arrival, departure in intervals)]
    assert bool(resided_together(*intervals)) == bool(in_common)
    # In arrays, with scalars that broadcast, and in any order of the inputs.
    arrays = [(np.array([a, a]), np.array([d, d])) for a, d in intervals]
    mixed = [arrays[0], *intervals[1:]]
    for form in (arrays, mixed, mixed[::-1]):
        assert resided_together(*form).tolist() == [bool(in_common)] * 2


@given(data=st.data(), inputs=st.integers(2, 4))
@settings(deadline=None, max_examples=60)
def test_rows_that_resided_together_were_joined_when_the_last_arrived(data: st.DataObject, inputs: int) -> None:
    """An n-way symmetric join, tick by tick: a row that arrives meets the combinations that are in memory."""
    sides = [data.draw(residences(3), label=f"side {side}") for side in range(inputs)]
    # One clock for all: spread the sides so that no two events are simultaneous.
    sides = [[(a * inputs + s, d if d == NEVER else d * inputs + s) for a, d in rows] for s, rows in enumerate(sides)]
    joined: set[tuple[int, ...]] = set()
    for tick in range((END + 1) * inputs):
        present = [{n for n, (a, d) in enumerate(rows) if a <= tick < d} for rows in sides]
        arriving = [(s, n) for s, rows in enumerate(sides) for n, (a, _) in enumerate(rows) if a == tick]
        for side, number in arriving:
            choices = [sorted(p) if s != side else [number] for s, p in enumerate(present)]
            new = {tuple(c) for c in np.stack(np.meshgrid(*choices), -1).reshape(-1, inputs).tolist()}
            assert not new & joined
            joined |= new
    every = np.stack(np.meshgrid(*[range(3)] * inputs), -1).reshape(-1, inputs)
    columns = [np.array(rows, dtype=np.int64)[every[:, s]] for s, rows in enumerate(sides)]
    answers = resided_together(*((c[:, 0], c[:, 1]) for c in columns))
    assert {tuple(c) for c, yes in zip(every.tolist(), answers, strict=True) if yes} == joined


def test_touching_intervals_did_not_reside_together() -> None:
    assert not resided_together((0, 5), (5, 9))
    assert resided_together((0, 6), (5, 9))
    assert resided_together((0, NEVER), (10**18, NEVER))


@given(
    data=st.data(),
    probes=st.lists(st.integers(1, END), unique=True, max_size=6).map(sorted),
)
@settings(deadline=None, max_examples=150)
def test_probe_history_is_a_probe_that_saw_both(data: st.DataObject, probes: list[int]) -> None:
    free = [t for t in range(1, END) if t not in probes]
    moments = data.draw(st.permutations(free))
    history = ProbeHistory()
    for moment in probes:
        history.record(moment)
    memory = [tuple(sorted(moments[2 * n : 2 * n + 2])) for n in range(5)]
    memory = [(a, d if data.draw(st.booleans()) else NEVER) for a, d in memory]
    disk = [moments[10 + n] if data.draw(st.booleans()) else NEVER for n in range(5)]
    expected = [[any(a < t < d and gone < t for t in probes) for gone in disk] for a, d in memory]
    arrivals, departures = np.array(memory, dtype=np.int64)[:, :1], np.array(memory, dtype=np.int64)[:, 1:]
    assert history.covered(arrivals, departures, np.array(disk, dtype=np.int64)).tolist() == expected
    for (a, d), row in zip(memory, expected, strict=True):
        assert [bool(history.covered(a, d, gone)) for gone in disk] == row
    again = ProbeHistory(history.moments.tolist())
    assert again.moments.tolist() == probes


def test_probe_moments_must_increase() -> None:
    history = ProbeHistory([3, 7])
    for moment in (7, 6):
        with pytest.raises(ValueError, match=f"must increase: {moment} after 7"):
            history.record(moment)


@given(
    st.lists(
        st.tuples(st.sampled_from(["mark", "left", "right", "join"]), st.integers(0, 5), st.integers(0, 6)), max_size=25
    )
)
@settings(deadline=None, max_examples=150)
def test_run_pairs_against_a_set_of_pairs(steps: list[tuple[str, int, int]]) -> None:
    runs, done, lefts, rights = RunPairs(), set(), 0, 0
    for name, left, right in steps:
        if name == "left":
            lefts += 1
        elif name == "right":
            rights += 1
        elif name == "mark":
            runs.mark(left, right)
            done |= {(left, r) for r in range(right)}
        elif (pair := runs.first_open(lefts, rights)) is not None:
            runs.mark(pair[0], pair[1] + 1)
            assert pair not in done
            done.add(pair)
        grid = np.indices((8, 8)).reshape(2, -1)
        covered = runs.covered(grid[0], grid[1])
        assert {(int(a), int(b)) for a, b, yes in zip(*grid, covered, strict=True) if yes} == {
            p for p in done if max(p) < 8
        }
        assert bool(runs.covered(left, right)) == ((left, right) in done)
        open_pairs = {(a, b) for a in range(lefts) for b in range(rights)} - done
        found = runs.first_open(lefts, rights)
        assert (found is None) == (not open_pairs)
        assert found is None or found in open_pairs
        assert RunPairs(runs.met).met.tolist() == runs.met.tolist()


def test_joining_all_open_pairs_ends_and_joins_each_once() -> None:
    runs, seen = RunPairs(), []
    while (pair := runs.first_open(4, 3)) is not None:
        seen.append(pair)
        runs.mark(pair[0], pair[1] + 1)
    assert sorted(seen) == [(a, b) for a in range(4) for b in range(3)]
    assert len(set(seen)) == 12


def test_same_run() -> None:
    assert same_run(np.array([1, 2, 3]), np.array([1, 3, 3])).tolist() == [True, False, True]
    assert same_run(np.array([1, 2]), 2).tolist() == [False, True]
