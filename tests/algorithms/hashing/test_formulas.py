"""The formulas against the numbers of the paper and against brute-force simulation of small cases."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from earlyjoin.algorithms.hash_join.prediction import formulas as f
from earlyjoin.algorithms.hash_join.prediction import one_to_many_formulas as one
from earlyjoin.errors import InputError

PARTSUPP = f.JoinSize(r=800_000, s=800_000, selectivity=3_200_000 / 800_000**2)
CUSTOMER_ORDERS = f.JoinSize(r=150_000, s=1_500_000, selectivity=1 / 150_000)
SWITCHING = {"EHJA": (0.5, 0.5), "EHJ1": (0.5, 5 / 6), "EHJ2": (2 / 3, 10 / 11), "DHJ": (1.0, 1.0)}


def test_phase_1_of_figure_2() -> None:
    assert f.results_in_memory(300_000, f.share(1, 1), PARTSUPP) == pytest.approx(112_500)
    assert f.results_in_memory(300_000, f.share(2, 1), PARTSUPP) == pytest.approx(100_000)
    assert f.results_in_memory(300_000, 1.0, PARTSUPP) == 0


def test_the_example_of_section_3_1_2() -> None:
    size = f.JoinSize(r=500_000, s=500_000, selectivity=0.00001)
    assert size.results == pytest.approx(2_500_000)
    assert f.results_in_memory(300_000, 0.5, size) == pytest.approx(225_000)
    assert f.rate_in_full_memory(0.5, 300_000, size) == pytest.approx(1.5)
    assert f.results_before_cleanup(0.5, 300_000, size) == pytest.approx(1_275_000)
    assert f.results_in_full_memory(1_000_000, 0.5, 300_000, size) == pytest.approx(1_275_000)


def test_the_example_of_section_3_2() -> None:
    assert f.rows_of_s_left(0.5, 0.5, 75_000, CUSTOMER_ORDERS) == pytest.approx(1_350_000)
    assert f.rows_of_s_left(1, 1, 75_000, CUSTOMER_ORDERS) == pytest.approx(1_500_000)
    saved = f.avoided_tuple_ios(0.5, 0.5, 75_000, CUSTOMER_ORDERS) / 2 - 75_000
    assert saved == pytest.approx(675_000)


def test_the_default_configuration_of_section_4_3() -> None:
    r, s, memory = 800_000, 800_000, 300_000
    kept = memory / r
    by_hand = 2 * (r + s - kept * r - kept * (s - 0.4 * memory - r / 5))
    assert f.expected_tuple_ios(0.5, 5 / 6, memory, PARTSUPP) == pytest.approx(by_hand)
    hybrid = 2 * (r + s) * (1 - kept)
    assert f.expected_tuple_ios(1, 1, memory, PARTSUPP) == pytest.approx(hybrid)


@pytest.mark.parametrize(("name", "pages"), [("EHJA", 130_613), ("EHJ1", 111_704), ("EHJ2", 107_296), ("DHJ", 101_836)])
def test_page_ios_of_figure_2(name: str, pages: int) -> None:
    assert f.expected_tuple_ios(*SWITCHING[name], 300_000, PARTSUPP) / 20 == pytest.approx(pages, rel=0.02)
    with_partitions = f.expected_tuple_ios(*SWITCHING[name], 300_000, PARTSUPP, partitions=11) / 20
    assert with_partitions == pytest.approx(pages, rel=0.004)


@pytest.mark.parametrize(
    ("name", "never_written", "ios"),
    [("EHJ1", 675_783 + 9_594, 1_800_931), ("EHJ2", 681_825 + 5_049, 1_793_390), ("DHJ", 682_321, 1_798_998)],
)
def test_figure_6(name: str, never_written: int, ios: int) -> None:
    asked = (*SWITCHING[name], 75_000, CUSTOMER_ORDERS)
    assert one.rows_never_written(*asked, partitions=11) == pytest.approx(never_written, rel=0.02)
    assert one.expected_tuple_ios_one_to_many(*asked, partitions=11) == pytest.approx(ios, rel=0.01)


def test_losses_of_other_ratios_are_those_of_formula_1() -> None:
    for a, b in ((2, 1), (3, 1), (3, 2), (10, 1)):
        even = f.results_in_memory(1000, 0.5, PARTSUPP)
        assert f.results_in_memory(1000, f.share(a, b), PARTSUPP) == pytest.approx(
            even * (1 - f.lost_against_alternating(a, b))
        )


def test_an_input_that_has_ended_gives_no_more_rows() -> None:
    size = f.JoinSize(r=10, s=100, selectivity=0.5)
    assert f.rows_read(60, 0.5, size) == (10, 50)
    assert f.rows_read(60, 0.0, size) == (0, 60)
    assert f.rows_read(105, 0.0, size) == (5, 100)
    assert f.rows_read(1000, 0.5, size) == (10, 100)
    assert f.results_in_memory(1000, 0.9, size) == size.results
    assert f.results_before_cleanup(0.5, 110, size) == size.results
    assert f.expected_tuple_ios(0.5, 0.5, 110, size) == 0


def _reads(a: int, b: int, r: int, s: int) -> Iterator[int]:
    """Sides in the order in which an A:B strategy reads them."""
    read = [0, 0]
    while read != [r, s]:
        for side, times in enumerate((a, b)):
            for _ in range(min(times, (r, s)[side] - read[side])):
                read[side] += 1
                yield side


def _mean(runs: int, simulate: object) -> float:
    return float(np.mean([simulate(np.random.default_rng(seed)) for seed in range(runs)]))  # type: ignore[operator]


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 1), (5, 1)])
def test_formula_1_against_simulation(a: int, b: int) -> None:
    rows, keys, k = 300, 60, 180

    def simulate(rng: np.random.Generator) -> int:
        inputs = [rng.permutation(np.arange(rows) % keys) for _ in range(2)]
        held = [np.zeros(keys, dtype=int), np.zeros(keys, dtype=int)]
        read, found = [0, 0], 0
        for side, _ in zip(_reads(a, b, rows, rows), range(k), strict=False):
            key = inputs[side][read[side]]
            read[side] += 1
            found += held[1 - side][key]
            held[side][key] += 1
        return found

    size = f.JoinSize(r=rows, s=rows, selectivity=1 / keys)
    assert _mean(60, simulate) == pytest.approx(f.results_in_memory(k, f.share(a, b), size), rel=0.05)


@pytest.mark.parametrize("skewed", [False, True])
def test_formula_2_against_simulation(skewed: bool) -> None:
    ones = 50
    many_per_one = np.arange(1, ones + 1) if skewed else np.full(ones, 10)
    many = int(many_per_one.sum())
    r, s = 20, many // 3

    def simulate(rng: np.random.Generator) -> int:
        keys = rng.permutation(np.repeat(np.arange(ones), many_per_one))
        return int((keys[:s] < r).sum())

    expected = f.results_of_ones(r, s, many_per_one.tolist())
    assert _mean(100, simulate) == pytest.approx(expected, rel=0.05)
    if not skewed:
        assert f.results_of_uniform_ones(r, s, ones) == pytest.approx(expected)
    assert f.results_of_ones(r, s, many_per_one.tolist(), matching=0.5) == pytest.approx(expected / 2)
    assert f.results_of_ones(1, 1, []) == f.results_of_uniform_ones(1, 1, 0) == 0


def test_formula_3_against_simulation() -> None:
    """Memory held at the reading ratio by dropping the oldest row of the side that is over its share."""
    rows, keys, memory, k, a, b = 600, 100, 200, 700, 2, 1
    q = f.share(a, b)

    def simulate(rng: np.random.Generator) -> int:
        inputs = [rng.permutation(np.arange(rows) % keys) for _ in range(2)]
        held: list[list[int]] = [[], []]
        read, found = [0, 0], 0
        for side, _ in zip(_reads(a, b, rows, rows), range(k), strict=False):
            key = int(inputs[side][read[side]])
            read[side] += 1
            found += held[1 - side].count(key)
            held[side].append(key)
            if sum(map(len, held)) > memory:
                held[0 if len(held[0]) > q * memory else 1].pop(0)
        return found

    size = f.JoinSize(r=rows, s=rows, selectivity=1 / keys)
    assert _mean(20, simulate) == pytest.approx(f.results_in_full_memory(k, q, memory, size), rel=0.05)


def test_the_flushing_phase_against_simulation() -> None:
    """A row of S leaves for each row that comes, until memory holds R alone; rows of S are then not kept."""
    rows, keys, memory, q1, later = 2000, 100, 400, 0.5, 350
    a, b = 5, 1

    def simulate(rng: np.random.Generator) -> int:
        inputs = [rng.integers(0, keys, rows) for _ in range(2)]
        held = [list(inputs[0][: memory // 2]), list(inputs[1][: memory // 2])]
        read, found = [memory // 2] * 2, 0
        for side, _ in zip(_reads(a, b, rows, rows), range(later), strict=False):
            key = inputs[side][read[side]]
            read[side] += 1
            found += held[1 - side].count(key)
            if side == 0:
                held[0].append(key)
                held[1 if held[1] else 0].pop(0)
        return found

    size = f.JoinSize(r=rows, s=rows, selectivity=1 / keys)
    expected = f.results_while_flushing(later, q1, f.share(a, b), memory, size)
    assert _mean(20, simulate) == pytest.approx(expected, rel=0.05)
    assert f.transition_rows(q1, 5 / 6, memory) == pytest.approx(240)
    end = f.rate_while_flushing(10_000, q1, 5 / 6, memory, size)
    assert end == pytest.approx(size.selectivity * memory / 6)
    assert f.transition_rows(q1, 0.0, memory) == math.inf


@pytest.mark.parametrize("freed", [True, False])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 1)])
def test_when_memory_is_full_in_a_one_to_many_join(a: int, b: int, freed: bool) -> None:
    ones, many, memory = 400, 4000, 300

    def simulate(rng: np.random.Generator) -> int:
        inputs = [rng.permutation(ones), rng.permutation(np.arange(many) % ones)]
        seen: set[int] = set()
        waiting = np.zeros(ones, dtype=int)
        read = [0, 0]
        for side in _reads(a, b, ones, many):
            key = int(inputs[side][read[side]])
            read[side] += 1
            if side == 0:
                seen.add(key)
                waiting[key] *= not freed
            elif key not in seen:
                waiting[key] += 1
            if len(seen) + waiting.sum() >= memory:
                break
        return sum(read)

    size = f.JoinSize(r=ones, s=many, selectivity=1 / ones)
    expected = one.rows_until_full(f.share(a, b), memory, size, freed=freed)
    assert _mean(20, simulate) == pytest.approx(expected, rel=0.03)
    assert one.rows_until_full(1.0, memory, size) == memory
    assert one.rows_until_full(0.5, 10_000, size, freed=freed) == math.inf


def test_impossible_sizes_and_strategies_are_refused() -> None:
    with pytest.raises(InputError, match="0 or more"):
        f.JoinSize(r=-1, s=1, selectivity=0.5)
    with pytest.raises(InputError, match="0:0"):
        f.share(0, 0)
