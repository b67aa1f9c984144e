"""The chained hash index's kernels on bare arrays."""

from __future__ import annotations

import numpy as np
import pytest

from earlyjoin.kernels import hash_index as kernels

NONE8, NONE64, NOFLAGS = np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_)


def chain(heads: np.ndarray, nexts: np.ndarray, bucket: int) -> list[int]:
    found, row = [], int(heads[bucket])
    while row >= 0:
        found.append(row)
        row = int(nexts[row])
    return found


def bucket_of(hash_: int, mask: int, split: int) -> int:
    low = hash_ & mask
    return hash_ & (2 * mask + 1) if low < split else low


@pytest.mark.parametrize("splits", [0, 1, 5, 15, 16, 17, 40, 200])
def test_splitting_puts_every_row_where_a_probe_looks_and_keeps_the_order(splits: int) -> None:
    rng = np.random.default_rng(splits)
    words = rng.integers(0, 300, (200, 1))
    heads, nexts = np.full(16 + splits, -1, dtype=np.int32), np.full(200, -9, dtype=np.int32)
    kernels.insert(heads, nexts, words, NOFLAGS, 0, 200, 15, 0)
    mask, split = kernels.split_buckets(heads, nexts, words, 15, 0, splits)
    assert mask + 1 + split == 16 + splits
    assert split <= mask
    hashes = kernels.hash_rows(words)
    expected: dict[int, list[int]] = {b: [] for b in range(16 + splits)}
    for row in range(200):
        expected[bucket_of(int(hashes[row]), mask, split)].insert(0, row)
    assert {b: chain(heads, nexts, b) for b in expected} == expected
    # One by one is the same as all at once.
    again_heads, again_nexts, state = (
        np.full(16 + splits, -1, dtype=np.int32),
        np.full(200, -9, dtype=np.int32),
        (15, 0),
    )
    kernels.insert(again_heads, again_nexts, words, NOFLAGS, 0, 200, 15, 0)
    for _ in range(splits):
        state = kernels.split_buckets(again_heads, again_nexts, words, *state, 1)
    assert state == (mask, split)
    assert np.array_equal(heads, again_heads)
    assert np.array_equal(nexts, again_nexts)


def test_rows_that_cannot_match_are_linked_nowhere() -> None:
    words = np.array([[1], [1], [1], [2]])
    heads, nexts = np.full(16, -1, dtype=np.int32), np.full(4, -9, dtype=np.int32)
    kernels.insert(heads, nexts, words, np.array([True, False, True, False]), 0, 4, 15, 0)
    assert sorted(row for b in range(16) for row in chain(heads, nexts, b)) == [0, 2]
    assert nexts.tolist() == [-1, -1, 0, -1]


def test_probe_stops_when_full_and_goes_on_at_the_same_place() -> None:
    words = np.array([[5], [5], [6], [5]])
    heads, nexts = np.full(16, -1, dtype=np.int32), np.full(4, -1, dtype=np.int32)
    kernels.insert(heads, nexts, words, NOFLAGS, 0, 4, 15, 0)
    probing, row, node, pairs, compared = np.array([[6], [5], [9], [5]]), 0, kernels.NOT_STARTED, [], 0
    out = np.empty((2, 1), dtype=np.int64)
    calls = 0
    while row < len(probing):
        found, row, node, comparisons = kernels.probe(
            heads,
            nexts,
            words,
            NONE64,
            NONE8,
            15,
            0,
            NOFLAGS,
            probing,
            NONE64,
            NONE8,
            NOFLAGS,
            row,
            node,
            False,
            2,
            out[0],
            out[1],
        )
        pairs += out[:, :found].T.tolist()
        compared, calls = compared + comparisons, calls + 1
    assert pairs == [[0, 2], [1, 3], [1, 1], [1, 0], [3, 3], [3, 1], [3, 0]]
    assert calls <= len(pairs) + compared + 1
    everything = np.empty((2, 50), dtype=np.int64)
    at_once = kernels.probe(
        heads, nexts, words, NONE64, NONE8, 15, 0, NOFLAGS, probing, NONE64, NONE8, NOFLAGS,
        0, kernels.NOT_STARTED, False, 1000, everything[0], everything[1],
    )  # fmt: skip
    assert at_once == (7, 4, kernels.NOT_STARTED, compared), "comparisons do not depend on the room"
    assert everything[:, :7].T.tolist() == pairs


def test_hashes_use_every_column() -> None:
    rng = np.random.default_rng(0)
    for width in (1, 2, 4):
        words = rng.integers(-(2**63), 2**63 - 1, (1, width)).repeat(64 * width + 1, axis=0)
        for column in range(width):
            for bit in range(64):
                words[1 + 64 * column + bit, column] ^= np.int64(-(2**63)) if bit == 63 else np.int64(1 << bit)
        assert len(np.unique(kernels.hash_rows(words))) == len(words)
