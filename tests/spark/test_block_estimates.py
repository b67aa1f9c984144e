"""The size estimated from random blocks: how often the interval holds, whatever files have to do with each other."""

from __future__ import annotations

import numpy as np
import pytest

from earlyjoin.spark.estimating import BlockEstimate, estimate_of

FILES, SLOTS = 30, 8


def universe(kind: str) -> np.ndarray:
    """Matches of every pair of blocks of a left side of 240 and a right side of 240 blocks."""
    rng = np.random.default_rng(7)
    left_rows, right_rows, keys = 6000, 9000, 1500
    left, right = rng.integers(0, keys, left_rows), rng.integers(0, keys, right_rows)
    if kind == "correlated":  # part i of one side matches part i of the other alone
        left, right = np.sort(left), np.sort(right)
    elif kind == "skewed":
        left = np.minimum(rng.zipf(1.6, left_rows), keys) - 1
        right = np.minimum(rng.zipf(1.6, right_rows), keys) - 1
    blocks = []
    for rows in (left, right):
        file = np.arange(len(rows)) * FILES // len(rows)
        blocks.append(file * SLOTS + rng.integers(0, SLOTS, len(rows)))
    counts = []
    for rows, block in zip((left, right), blocks, strict=True):
        table = np.zeros((FILES * SLOTS, keys), dtype=np.int64)
        np.add.at(table, (block, rows), 1)
        counts.append(table)
    return counts[0] @ counts[1].T


@pytest.mark.parametrize("kind", ["uniform", "correlated", "skewed"])
def test_interval_covers_the_truth_after_a_tenth_of_the_blocks(kind: str) -> None:
    cells = universe(kind)
    truth = cells.sum()
    drawn = len(cells) // 10
    covered = 0
    for seed in range(100):
        rows, columns = (np.random.default_rng([seed, side]).permutation(len(cells))[:drawn] for side in (0, 1))
        estimate, _ = estimate_of(cells[np.ix_(rows, columns)], cells.shape)
        covered += estimate is not None and estimate.low <= truth <= estimate.high
    assert covered >= 93


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
