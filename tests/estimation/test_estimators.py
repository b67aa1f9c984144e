"""The estimators: worked examples, merging, saving, ends, and what must hold for any input."""

from __future__ import annotations

import json
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.algorithms.estimation import Aggregate, BetweenBlocks, Estimator, IndependentPairs, TwoSided
from earlyjoin.algorithms.estimation.quantiles import chi_square_as_normal, positive_interval, t_quantile

Z = NormalDist().inv_cdf(0.975)


def joined(
    matrix: np.ndarray, cuts: list[tuple[int, int]], values: np.ndarray | None = None, **options: object
) -> TwoSided:
    """The estimator after the arrivals (side, rows) of a join whose pairs match where the matrix is not 0."""
    estimator = TwoSided(matrix.shape, **options)  # type: ignore[arg-type]
    at = [0, 0]
    for side, rows in cuts:
        stop = min(at[side] + rows, matrix.shape[side])
        mine = np.arange(at[side], stop)
        seen = np.arange(at[1 - side])
        part = np.ix_(mine, seen) if side == 0 else np.ix_(seen, mine)
        counts = matrix[part].sum(axis=1 - side)
        if values is None:
            estimator.update(side, len(mine), counts)
        else:
            kept = values[part] * matrix[part]
            estimator.update(side, len(mine), counts, kept.sum(axis=1 - side), float((kept**2).sum()))
        at[side] = stop
    return estimator


def test_quantiles_are_those_of_the_tables() -> None:
    assert t_quantile(0.975, 1) == pytest.approx(12.706, abs=1e-2)
    assert t_quantile(0.975, 2) == pytest.approx(4.303, abs=1e-3)
    for degrees, value in ((3, 3.182), (4, 2.776), (9, 2.262), (29, 2.045)):
        assert t_quantile(0.975, degrees) == pytest.approx(value, rel=0.01)
    assert t_quantile(0.975, math.inf) == pytest.approx(Z)
    assert chi_square_as_normal(18.307, 10) == pytest.approx(1.645, abs=0.01)
    low, high = positive_interval(10, 10, Z)  # the exact Poisson interval of 10 is 4.795 to 18.39
    assert (low, high) == (pytest.approx(4.795, rel=0.01), pytest.approx(18.39, rel=0.01))


def test_paper_by_hand() -> None:
    """8 of 100 pairs of 10,000: V² = 100/99 * 0.08 * 0.92, variance of the mean 0.99 V²/100."""
    estimator = IndependentPairs((100, 100))
    estimator.update((5, 10), 3)
    estimator.update((5, 10), 5)
    half = Z * math.sqrt(0.99 * (8 - 100 * 0.08**2) / 99 / 100) * 10_000
    found = estimator.get()
    assert found is not None
    assert found.rows == pytest.approx(800)
    assert (found.low, found.high) == (pytest.approx(800 - half), pytest.approx(800 + half))


def test_between_blocks_by_hand() -> None:
    """Blocks of 100 pairs with 3, 5, 4 matches: residuals -1, 1, 0; variance of the mean 2 * 3/2 / 300²."""
    estimator = BetweenBlocks((100, 100))
    for matches in (3, 5, 4):
        estimator.update((10, 10), matches)
    found = estimator.get()
    assert found is not None
    assert found.rows == pytest.approx(400)
    # As exact as independent draws at most: 12 matches in 300 pairs.
    variance = 0.97 * max(3 / 300**2, 0.04 / 300) * 1e8
    assert (found.low, found.high) == pytest.approx(positive_interval(400, variance, t_quantile(0.975, 2)))


def test_two_sided_finds_the_variances_of_rows() -> None:
    """Left rows 0..4 of 10 match everything, the others nothing: S_L² = 1/4, S_R² = 0, nothing between them."""
    matrix = np.zeros((10_000, 4_000), dtype=np.int64)
    matrix[np.random.default_rng(3).permutation(10_000)[:5_000]] = 1
    estimator = joined(matrix, [(1, 100), (0, 1000), (1, 100)])
    (left, right), rest = estimator.unit_variances()
    assert left == pytest.approx(0.25, abs=0.01)
    assert right == pytest.approx(0, abs=1e-3)
    assert rest == pytest.approx(0, abs=1e-3)
    found = estimator.get()
    assert found is not None
    half = 1.1 * Z * math.sqrt(0.9 * left / 1000) * 4e7
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.02)
    paper = IndependentPairs((10_000, 4_000))
    paper.update((1000, 200), int(estimator.matches))
    narrow = paper.get()
    assert narrow is not None
    assert (narrow.high - narrow.low) * 5 < found.high - found.low


def test_one_side_read_completely_leaves_the_variance_of_the_other() -> None:
    random = np.random.default_rng(5)
    matrix = (random.random((50, 2000)) < 0.2).astype(np.int64)
    estimator = joined(matrix, [(0, 50), (1, 400)])
    found = estimator.get()
    assert found is not None
    counts = matrix[:, :400].sum(axis=0)
    variance = (1 - 0.2) * counts.var(ddof=1) / 400 * 2000**2
    assert (found.high - found.low) / 2 == pytest.approx(1.1 * Z * math.sqrt(variance), rel=0.03)


@pytest.mark.parametrize("aggregate", list(Aggregate))
def test_exact_when_everything_is_joined(aggregate: Aggregate) -> None:
    random = np.random.default_rng(1)
    matrix = (random.random((30, 40)) < 0.1).astype(np.int64)
    values = random.normal(size=matrix.shape)
    found = joined(matrix, [(0, 10), (1, 40), (0, 20)], values, aggregate=aggregate).get()
    total = float((matrix * values).sum())
    exact = {"count": matrix.sum(), "sum": total, "avg": total / matrix.sum()}[aggregate]
    assert found is not None
    assert found.rows == found.low == found.high == pytest.approx(exact)
    assert found.confidence == 1.0


def test_no_match_yet_gives_the_rule_of_three() -> None:
    found = joined(np.zeros((1000, 500), dtype=np.int64), [(0, 100), (1, 60)]).get()
    assert found is not None
    assert (found.rows, found.low) == (0, 0)
    assert found.high == pytest.approx(-math.log(0.05) / 60 * (1000 * 500 - 100 * 60))
    for aggregate in (Aggregate.SUM, Aggregate.AVG):
        empty = joined(np.zeros((1000, 500), dtype=np.int64), [(0, 100), (1, 60)], aggregate=aggregate)
        assert empty.get() is None
        assert "no match" in str(empty.reason)


def test_reasons() -> None:
    unknown = TwoSided((None, 100))
    assert unknown.get() is None
    assert unknown.reason == "the number of rows of the left input is unknown, so there is no total to estimate"
    assert "not arrived" in str(TwoSided((10, 10)).reason)
    more = TwoSided((2, 10))
    more.update(0, 3)
    assert "more rows" in str(more.reason)
    few = BetweenBlocks((100, 100))
    few.update((10, 10), 1)
    assert "only 1 blocks" in str(few.reason)
    assert "fewer than two pairs" in str(IndependentPairs((10, 10)).reason)


def test_avg_needs_no_totals() -> None:
    random = np.random.default_rng(2)
    values = random.normal(5, 1, (200, 300))
    estimator = TwoSided((None, None), aggregate="avg")
    estimator.update(0, 100)
    for part in (values[:100, :150],):
        estimator.update(1, 150, np.full(150, 100), part.sum(axis=0), float((part**2).sum()))
    part = values[100:, :150]
    estimator.update(0, 100, np.full(100, 150), part.sum(axis=1), float((part**2).sum()))
    found = estimator.get()
    assert found is not None
    assert found.low < 5 < found.high
    assert found.high - found.low < 0.2


def test_sums_cover() -> None:
    """SUM and AVG of a value that depends on the left row: 95 % intervals over 100 seeds."""
    covered = {Aggregate.SUM: 0, Aggregate.AVG: 0}
    for seed in range(100):
        random = np.random.default_rng(seed)
        left, right = random.integers(0, 20, 400), random.integers(0, 20, 300)
        matrix = (left[:, None] == right[None, :]).astype(np.int64)
        values = np.repeat(random.lognormal(0, 1, 400)[:, None], 300, axis=1)
        total = float((matrix * values).sum())
        for aggregate in covered:
            found = joined(matrix, [(0, 40), (1, 40)] * 3, values, aggregate=aggregate).get()
            truth = total if aggregate is Aggregate.SUM else total / matrix.sum()
            assert found is not None
            covered[aggregate] += found.low <= truth <= found.high
    assert min(covered.values()) >= 0.91 * 100, covered


def _fed(kind: type[Estimator], blocks: list[tuple[int, int, float]], seed: int) -> Estimator:
    estimator = kind((10_000, 10_000))
    random = np.random.default_rng(seed)
    for left, right, share in blocks:
        pairs = random.random((left, right)) < share
        if isinstance(estimator, TwoSided):
            estimator.update_block((left, right), pairs.sum(axis=1), pairs.sum(axis=0))
        elif isinstance(estimator, BetweenBlocks | IndependentPairs):
            estimator.update((left, right), int(pairs.sum()))
    return estimator


BLOCKS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.floats(0, 1)), max_size=6)


@pytest.mark.parametrize("kind", [IndependentPairs, BetweenBlocks, TwoSided])
@given(one=BLOCKS, other=BLOCKS, seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_merged_is_as_together(
    kind: type[Estimator], one: list[tuple[int, int, float]], other: list[tuple[int, int, float]], seed: int
) -> None:
    random = np.random.default_rng(seed)
    together = kind((10_000, 10_000))
    apart = [kind((10_000, 10_000)), kind((10_000, 10_000))]
    for part, blocks in zip(apart, (one, other), strict=True):
        for left, right, share in blocks:
            pairs = random.random((left, right)) < share
            for estimator in (part, together):
                if isinstance(estimator, TwoSided):
                    estimator.update_block((left, right), pairs.sum(axis=1), pairs.sum(axis=0))
                else:
                    estimator.update((left, right), int(pairs.sum()))  # type: ignore[attr-defined]
    merged = apart[0] + apart[1]
    assert merged.to_values() == together.to_values()
    assert merged.get() == together.get()


def test_only_like_things_merge() -> None:
    with pytest.raises(ValueError, match="different things"):
        TwoSided((1, 1)) + TwoSided((1, 1), aggregate="sum")
    with pytest.raises(ValueError, match="rows cannot be merged"):
        TwoSided((1, 1)) + TwoSided((1, 2))
    assert (TwoSided((None, 5)) + TwoSided((4, 5))).total_rows == (4, 5)


@pytest.mark.parametrize("kind", [IndependentPairs, BetweenBlocks, TwoSided])
def test_saved_and_restored_goes_on_alike(kind: type[Estimator]) -> None:
    estimator = _fed(kind, [(10, 12, 0.3), (9, 9, 0.1), (8, 10, 0.2)], 1)
    if isinstance(estimator, TwoSided):
        estimator.update(0, 5)
    again = kind.from_values(json.loads(json.dumps(estimator.to_values())))
    if isinstance(estimator, TwoSided) and isinstance(again, TwoSided):
        for one in (estimator, again):
            one.update(1, 4, np.array([1, 2, 0, 3]))
    assert again.get() == estimator.get()
    assert estimator.get() is not None


def test_blocks_that_arrive_in_parts_are_one_unit() -> None:
    whole, parts = TwoSided((1000, 1000)), TwoSided((1000, 1000))
    for estimator in (whole, parts):
        estimator.update(1, 50)
    whole.update(0, 90, np.array([30, 60]), sizes=np.array([40, 50]))
    parts.update(0, 10, np.array([5]), sizes=np.array([10]))
    parts.update(0, 55, np.array([25, 31]), sizes=np.array([30, 25]), goes_on=True)
    parts.update(0, 25, np.array([29]), sizes=np.array([25]), goes_on=True)
    assert parts.to_values() == whole.to_values()


@given(
    data=st.data(),
    left=st.integers(1, 40),
    right=st.integers(1, 40),
    density=st.sampled_from([0.0, 0.01, 0.2, 1.0]),
    aggregate=st.sampled_from(list(Aggregate)),
    seed=st.integers(0, 99),
)
@settings(max_examples=200, deadline=None)
def test_estimates_are_finite_and_ordered(
    data: st.DataObject, left: int, right: int, density: float, aggregate: Aggregate, seed: int
) -> None:
    random = np.random.default_rng(seed)
    matrix = (random.random((left, right)) < density).astype(np.int64)
    values = random.normal(0, 10, matrix.shape) * random.integers(0, 2)
    cuts = data.draw(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 15)), max_size=8))
    estimator = joined(matrix, cuts, values, aggregate=aggregate)
    found = estimator.get()
    assert (found is None) == (estimator.reason is not None)
    if found is not None:
        assert all(math.isfinite(x) for x in (found.rows, found.low, found.high))
        assert found.low <= found.rows <= found.high
        if aggregate is Aggregate.COUNT:
            assert 0 <= estimator.matches <= found.rows * (1 + 1e-9)
            assert found.high <= left * right


@pytest.mark.parametrize("kind", [IndependentPairs, BetweenBlocks])
@given(blocks=BLOCKS, seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_estimates_from_blocks_are_finite_and_ordered(
    kind: type[Estimator], blocks: list[tuple[int, int, float]], seed: int
) -> None:
    estimator = _fed(kind, blocks, seed)
    found = estimator.get()
    assert (found is None) == (estimator.reason is not None)
    if found is not None:
        assert 0 <= found.low <= found.rows <= found.high < math.inf
