"""The size estimated from random blocks: how often the interval holds, whatever files have to do with each other."""

from __future__ import annotations

import numpy as np
import pytest

from earlyjoin.spark.estimating import BlockEstimate, estimate_of

MANY, FEW = (30, 8), (12, 5)
"""Files of a side, and blocks of a file."""
SEEDS = 200
KINDS = ["uniform", "correlated", "half correlated", "skewed"]


def universe(kind: str, layout: tuple[int, int] = MANY) -> np.ndarray:
    """Matches of every pair of blocks of two sides that are laid out the same way."""
    files, slots = layout
    rng = np.random.default_rng(7)
    left_rows, right_rows, keys = 6000, 9000, 1500
    left, right = rng.integers(0, keys, left_rows), rng.integers(0, keys, right_rows)
    if kind == "correlated":  # part i of one side matches part i of the other alone
        left, right = np.sort(left), np.sort(right)
    elif kind == "half correlated":
        left = np.where(rng.random(left_rows) < 0.5, np.sort(left), left)
        right = np.where(rng.random(right_rows) < 0.5, np.sort(right), right)
    elif kind == "skewed":
        left = np.minimum(rng.zipf(1.6, left_rows), keys) - 1
        right = np.minimum(rng.zipf(1.6, right_rows), keys) - 1
    blocks = []
    for rows in (left, right):
        file = np.arange(len(rows)) * files // len(rows)
        blocks.append(file * slots + rng.integers(0, slots, len(rows)))
    counts = []
    for rows, block in zip((left, right), blocks, strict=True):
        table = np.zeros((files * slots, keys), dtype=np.int64)
        np.add.at(table, (block, rows), 1)
        counts.append(table)
    return counts[0] @ counts[1].T


@pytest.mark.parametrize("layout", [MANY, FEW])
@pytest.mark.parametrize("kind", KINDS)
def test_interval_covers_the_truth_after_a_tenth_of_the_blocks(kind: str, layout: tuple[int, int]) -> None:
    """No interval counts as one that misses."""
    cells = universe(kind, layout)
    truth = cells.sum()
    drawn = len(cells) // 10
    covered = 0
    for seed in range(SEEDS):
        rows, columns = (np.random.default_rng([seed, side]).permutation(len(cells))[:drawn] for side in (0, 1))
        estimate, _ = estimate_of(cells[np.ix_(rows, columns)], cells.shape)
        covered += estimate is not None and estimate.low <= truth <= estimate.high
    assert covered >= 0.93 * SEEDS


def test_many_blocks_that_all_match_are_not_widened_for_the_few_that_do_not() -> None:
    cells = universe("uniform")
    estimate, _ = estimate_of(cells[:24, :24], cells.shape)
    assert estimate is not None
    assert (estimate.high - estimate.low) / cells.sum() < 0.45


def test_one_block_with_matches_gives_a_wide_interval() -> None:
    cells = np.zeros((6, 6), dtype=np.int64)
    cells[2, 3] = 40
    estimate, _ = estimate_of(cells, (60, 60))
    assert estimate is not None
    assert estimate.low < 40 * 10
    assert estimate.high > 3 * estimate.rows


def test_estimate_is_exact_when_all_blocks_were_joined() -> None:
    cells = universe("uniform")
    estimate = BlockEstimate(cells.shape)
    assert estimate.get(0) is None
    estimate.update(cells)
    total = int(cells.sum())
    assert estimate.get(0) == {"rows": total, "low": total, "high": total, "confidence": 1.0}
    assert estimate.reason is None


def test_a_side_read_completely_adds_no_doubt() -> None:
    cells = universe("correlated")
    whole = cells.sum(axis=1, keepdims=True)
    both, _ = estimate_of(cells[:20, :20], cells.shape)
    one, _ = estimate_of(whole[:20], (len(cells), 1))
    assert both is not None
    assert one is not None
    assert one.high - one.low < both.high - both.low


def test_no_match_and_too_few_blocks_give_a_reason() -> None:
    assert estimate_of(np.zeros((4, 4), dtype=np.int64), (240, 240))[1] == "no match was found in 4 x 4 random blocks"
    estimate, reason = estimate_of(np.array([[3, 4], [2, 1]]), (240, 240))
    assert estimate is None
    assert reason is not None
    assert "3" in reason
