"""RPJ's arrival statistics, expected output and choice of tasks against counting by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.algorithms.hash_join.rpj.arrival_statistics import ArrivalStatistics
from earlyjoin.algorithms.hash_join.rpj.expected_output import ExpectedOutput
from earlyjoin.algorithms.hash_join.rpj.formulas import PageCosts, dd_cost, md_cost, merged_pages
from earlyjoin.algorithms.hash_join.rpj.task_choice import ChosenTask, best_task

few = settings(max_examples=15, deadline=None)


def test_recent_arrivals_decay_unit_by_unit() -> None:
    statistics = ArrivalStatistics(1, unit_rows=10, decay=0.25)
    statistics.arrived(0, np.array([4]))
    np.testing.assert_allclose(statistics.recent, [4, 0]), "before the first unit is over"
    statistics.arrived(1, np.array([6]))
    np.testing.assert_allclose(statistics.recent, [4, 6]), "alpha(0)"
    statistics.arrived(1, np.array([13]))
    np.testing.assert_allclose(statistics.recent, [0.25 * 4, 0.25 * 6 + 0.75 * 10])


def test_batches_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    sides, partitions = rng.integers(0, 2, 500), rng.integers(0, 4, 500)
    one_by_one, in_pieces = ArrivalStatistics(4, unit_rows=70), ArrivalStatistics(4, unit_rows=70)
    for side, partition in zip(sides, partitions, strict=True):
        one_by_one.arrived(int(side), np.bincount([partition], minlength=4))
    start = 0
    for stop in [*(np.flatnonzero(np.diff(sides)) + 1).tolist(), 500]:
        in_pieces.arrived(int(sides[start]), np.bincount(partitions[start:stop], minlength=4))
        start = stop
    np.testing.assert_allclose(one_by_one.probability(), in_pieces.probability())
    copy = ArrivalStatistics(4, unit_rows=70)
    copy.load(json.loads(json.dumps(one_by_one.save())))
    np.testing.assert_array_equal(copy.probability(), one_by_one.probability())


def test_a_side_that_has_ended_will_not_arrive() -> None:
    statistics = ArrivalStatistics(2)
    assert statistics.probability().sum() == 0
    statistics.arrived(0, np.array([1, 3]))
    statistics.arrived(1, np.array([4, 0]))
    np.testing.assert_allclose(statistics.probability(), [[0.125, 0.375], [0.5, 0.0]])
    statistics.end(1)
    np.testing.assert_allclose(statistics.probability(), [[0.25, 0.75], [0.0, 0.0]])
    statistics.end(0)
    assert statistics.probability().sum() == 0


class ByHand:
    """Er by remembering every row and every pair."""

    def __init__(self, partitions: int) -> None:
        self.rows: list[tuple[int, int, int]] = []
        self.on_disk: set[int] = set()
        self.met: set[tuple[int, int]] = set()
        self.partitions = partitions

    def arrive(self, side: int, partition: int, moment: int) -> None:
        for number, (other, where, _) in enumerate(self.rows):
            if other != side and where == partition and number not in self.on_disk:
                self.met.add((number, len(self.rows)))
        self.rows.append((side, partition, moment))

    def oldest(self, side: int, partition: int, count: int) -> list[int]:
        mine = [n for n, row in enumerate(self.rows) if row[:2] == (side, partition) and n not in self.on_disk]
        return mine[:count]

    def pairs(self, partition: int, memory_side: int | None) -> set[tuple[int, int]]:
        """Pairs that have not met: memory of one side with disk of the other, or disk with disk."""
        here = [n for n, row in enumerate(self.rows) if row[1] == partition]
        found = set()
        for a in here:
            for b in here:
                if a >= b or self.rows[a][0] == self.rows[b][0] or (a, b) in self.met:
                    continue
                in_memory = [self.rows[n][0] for n in (a, b) if n not in self.on_disk]
                if in_memory == ([] if memory_side is None else [memory_side]):
                    found.add((a, b))
        return found


@given(
    events=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 1), st.integers(1, 3)), max_size=60)
)
@few
def test_expected_output_counts_the_pairs_that_have_not_met(events: list[tuple[int, int, int, int]]) -> None:
    """Exactly: Er of md-tasks always; Er of dd-tasks too, because a dd-task joins all that is on disk."""
    expected, naive, moment = ExpectedOutput(2), ByHand(2), 0
    for kind, side, partition, count in events:
        if kind <= 1:
            for _ in range(count):
                moment += 1
                expected.arrived(side, np.bincount([partition], minlength=2))
                naive.arrive(side, partition, moment)
        elif kind == 2:
            leaving = naive.oldest(side, partition, count)
            moment += 1
            if leaving:
                arrivals = np.array([naive.rows[n][2] for n in leaving])
                expected.flushed(side, partition, arrivals, moment)
                naive.on_disk |= set(leaving)
                for kept in (0, 1):
                    waiting = naive.oldest(1 - kept, partition, 1)
                    expected.forget_flushes(kept, partition, naive.rows[waiting[0]][2] if waiting else moment + 1)
        elif kind == 3:
            moment += 1
            expected.probed(side, partition, moment)
            naive.met |= naive.pairs(partition, side)
        else:
            moment += 1
            expected.merged(partition)
            naive.met |= naive.pairs(partition, None)
        for where in (0, 1):
            assert expected.disk[where] == len(naive.pairs(where, None))
            for memory_side in (0, 1):
                assert expected.memory[memory_side, where] == len(naive.pairs(where, memory_side))
    copy = ExpectedOutput(2)
    copy.load(json.loads(json.dumps(expected.save())))
    np.testing.assert_array_equal(copy.memory, expected.memory)
    assert copy.on_disk(0, 1) == expected.on_disk(0, 1)


COSTS = PageCosts(random=8, sequential=1)


def test_costs() -> None:
    assert float(md_cost(np.array(3), np.array(10), COSTS)) == 3 * 8 + 7
    assert [merged_pages([1] * runs, 2) for runs in range(6)] == [0, 1, 2, 5, 8, 12]
    assert merged_pages([50, 1, 1, 1], 2) == 2 + 3 + 53  # the long run is read once
    assert float(dd_cost(np.array([15]), COSTS)[0]) == 2 * 8 * 15


def choose(memory: list[list[int]], disk: list[int], **kinds: Any) -> ChosenTask | None:
    runs, pages = np.array([[1, 1], [1, 1]]), np.array([[10, 10], [10, 10]])
    return best_task(np.array(memory), np.array(disk), runs, pages, pages.sum(axis=0), costs=COSTS, **kinds)


def test_the_task_of_the_highest_rate_is_chosen() -> None:
    md, dd = float(md_cost(np.array(1), np.array(10), COSTS)), 2 * 8 * 20
    assert choose([[0, 0], [0, 0]], [0, 0]) is None
    assert choose([[5, 6], [4, 0]], [0, 0]) == ChosenTask(0, 1)
    assert choose([[0, 0], [1, 0]], [0, 0]) == ChosenTask(1, 0)
    even = round(dd / md * 10)
    assert choose([[10, 0], [0, 0]], [0, even + 9]) == ChosenTask(None, 1)
    assert choose([[10, 0], [0, 0]], [0, even - 9]) == ChosenTask(0, 0)
    assert choose([[10, 0], [0, 0]], [0, 10**6], dd=False) == ChosenTask(0, 0)
    assert choose([[10**6, 0], [0, 0]], [0, 1], md=False) == ChosenTask(None, 1)
    assert choose([[10**6, 0], [0, 0]], [0, 0], md=False) is None


def test_where_every_task_waits_for_a_silence_the_one_that_finds_most_is_worth_more() -> None:
    assert choose([[10, 0], [0, 0]], [0, 20]) == ChosenTask(0, 0)
    assert choose([[10, 0], [0, 0]], [0, 20], wait=1000.0) == ChosenTask(None, 1)


def test_disk_partitions_are_worth_more_the_fewer_runs_they_have() -> None:
    runs, pages = np.array([[1, 1], [9, 1]]), np.array([[10, 10], [10, 10]])
    none = np.zeros(2, dtype=np.int64)
    chosen = best_task(np.array([[5, 5], [0, 0]]), none, runs, pages, none, costs=COSTS)
    assert chosen == ChosenTask(0, 1)
    assert pytest.approx(float(md_cost(runs[1], pages[1], COSTS)[0])) == 9 * 8 + 1
