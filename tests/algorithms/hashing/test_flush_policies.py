"""Flush policies against the papers' examples and against trying everything."""

from __future__ import annotations

import doctest
import itertools
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from earlyjoin.algorithms.hash_join import flush_policies
from earlyjoin.algorithms.hash_join.flush_policies import (
    HASH_MERGE_POLICIES,
    Victim,
    adaptive,
    biased,
    concurrent,
    flush_largest,
    incremental_left,
    incremental_left_side,
    optimal_flush,
)
from earlyjoin.algorithms.hash_join.rpj import arrival_statistics
from earlyjoin.algorithms.hash_join.rpj import formulas as rpj_formulas
from earlyjoin.algorithms.hash_join.rpj.formulas import expected_results
from earlyjoin.predicates.encoding.keys import Int64

few = settings(max_examples=15, deadline=None)
small_sizes = arrays.arrays(np.int64, (2, 3), elements=st.integers(0, 3))
weights = arrays.arrays(np.int64, (2, 3), elements=st.integers(0, 5))


@pytest.mark.parametrize("module", [flush_policies, arrival_statistics, rpj_formulas])
def test_examples_in_docstrings(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


def left_after(sizes: Int64, victims: list[Victim]) -> Int64:
    left = sizes.copy()
    for victim in victims:
        left[victim.side, victim.partition] -= victim.rows
    return left


def test_the_example_of_rpj_section_4_1() -> None:
    arrival = np.array([[0.35, 0.25], [0.10, 0.30]])
    sizes = np.full((2, 2), 10)
    victims = optimal_flush(sizes, arrival, 15)
    assert victims == [Victim(0, 0, 10), Victim(1, 1, 5)]
    np.testing.assert_array_equal(left_after(sizes, victims), [[0, 10], [10, 5]])


@given(sizes=small_sizes, weight=weights, count=st.integers(0, 12))
@few
def test_no_flush_of_as_many_rows_leaves_more_to_expect(sizes: Int64, weight: Int64, count: int) -> None:
    """Lemma 1 of RPJ, against every way to flush as many rows."""
    count = min(count, int(sizes.sum()))
    arrival = weight / max(1, weight.sum())
    victims = optimal_flush(sizes, arrival, count)
    assert sum(victim.rows for victim in victims) == count
    assert len({victim[:2] for victim in victims}) == len(victims)
    ours = expected_results(left_after(sizes, victims), arrival, count)
    best = 0.0
    for kept in itertools.product(*(range(size + 1) for size in sizes.reshape(-1).tolist())):
        if sum(kept) == sizes.sum() - count:
            best = max(best, expected_results(np.reshape(kept, (2, 3)), arrival, count))
    assert ours == pytest.approx(best)


@given(sizes=small_sizes, name=st.sampled_from(sorted(HASH_MERGE_POLICIES)))
@few
def test_pairs_leave_whole_and_something_leaves(sizes: Int64, name: str) -> None:
    victims = concurrent(sizes, HASH_MERGE_POLICIES[name](sizes))
    assert bool(victims) == bool(sizes.sum())
    assert all(victim.rows == sizes[victim.side, victim.partition] > 0 for victim in victims)
    left = left_after(sizes, victims)
    for partition in {victim.partition for victim in victims}:
        assert not left[:, partition].any()


def test_adaptive_prefers_large_pairs_of_small_difference() -> None:
    balanced = np.array([[9, 5, 2], [5, 9, 2]])
    assert {victim.partition for victim in adaptive(balanced)} == {0}, "of equal imbalance the first"
    fair = np.array([[9, 5, 7], [5, 9, 7]])
    assert {victim.partition for victim in adaptive(fair)} == {2}, "large, and both sides stay equal"
    small = np.array([[9, 5, 1], [5, 9, 1]])
    assert {victim.partition for victim in adaptive(small)} != {2}, "equal, but too small to be worth a flush"


def test_adaptive_restores_the_balance() -> None:
    sizes = np.array([[8, 6, 8], [1, 6, 2]])
    left = left_after(sizes, adaptive(sizes))
    best = min(abs(int(np.subtract(*np.delete(sizes, j, axis=1).sum(axis=1)))) for j in range(3))
    assert abs(int(np.subtract(*left.sum(axis=1)))) == best


def mean_matches(policy: str, arrival: np.ndarray, seed: int) -> float:
    """Pairs that meet in memory when HMJ's policy (or the optimal one) makes room, rows drawn from ``arrival``."""
    rng, sizes, found = np.random.default_rng(seed), np.zeros((2, arrival.shape[1]), dtype=np.int64), 0
    places = rng.choice(arrival.size, 6000, p=arrival.reshape(-1))
    for side, partition in zip(*np.unravel_index(places, arrival.shape), strict=True):
        if sizes.sum() >= 400:
            if policy == "optimal":
                victims = optimal_flush(sizes, arrival, 20)
            else:
                victims = concurrent(sizes, HASH_MERGE_POLICIES[policy](sizes))
            sizes = left_after(sizes, victims)
        found += int(sizes[1 - side, partition])
        sizes[side, partition] += 1
    return float(found)


@pytest.mark.parametrize("pattern", ["harmony", "reverse"])
def test_the_order_of_the_policies_of_rpj_section_4_3(pattern: str) -> None:
    """Optimal is best and all is worst for both patterns; adaptive stands its ground in both."""
    share = 0.01 + 0.08 / 19 * np.arange(20)
    arrival = np.stack([share, share if pattern == "harmony" else share[::-1]]) / 2
    found = {policy: mean_matches(policy, arrival, seed=1) for policy in ("optimal", *HASH_MERGE_POLICIES)}
    assert max(found, key=found.__getitem__) == "optimal"
    assert min(found, key=found.__getitem__) == "all"
    assert found["adaptive"] > 1.2 * found["all"]


def test_biased_takes_s_before_r() -> None:
    sizes, frozen = np.array([[4, 2, 3], [1, 7, 3]]), np.zeros((2, 3), dtype=np.bool_)
    order = []
    while victims := biased(sizes, frozen):
        order.append(victims[0][:2])
        frozen[victims[0][:2]] = True
    assert order == [(1, 1), (1, 2), (1, 0), (0, 1), (0, 2), (0, 0)], "S by size, then R by smallness"
    assert biased(sizes, np.zeros((2, 3), dtype=np.bool_), small=1) == [Victim(0, 0, 4)]


def test_incremental_left_empties_the_left_side_first() -> None:
    sizes, frozen = np.array([[4, 0, 3], [1, 7, 3]]), np.zeros((2, 3), dtype=np.bool_)
    order = []
    while victims := incremental_left(sizes, frozen):
        order.append(victims[0][:2])
        frozen[victims[0][:2]] = True
    assert order == [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert incremental_left_side(False, (False, False)) is None
    assert incremental_left_side(True, (False, False)) == 1
    assert incremental_left_side(True, (False, True)) == 0


def test_largest_takes_the_first_of_equals() -> None:
    assert flush_largest(np.array([[1, 4], [4, 0]])) == [Victim(0, 1, 4)]
    assert flush_largest(np.zeros((2, 2), dtype=np.int64)) == []
