"""Blocks as an operator tells them: sums against naive ones, growing prefixes, rows that cannot match."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.algorithms.estimation import Aggregate, BetweenBlocks, TwoSided
from earlyjoin.algorithms.estimation.joined_blocks import JoinedBlocks, LoadEstimate
from earlyjoin.algorithms.estimation.tally import EVERY_MATCH, Measure, RowMoments, RowSums, Totals
from earlyjoin.algorithms.protocol import Matches
from earlyjoin.state.rows.store import BatchRows

TOTAL = (1000, 1200)
_ROWS = BatchRows(pa.record_batch({"k": pa.array(range(300))}))


def a_step(i: np.ndarray, j: np.ndarray) -> Matches:
    return Matches((_ROWS, _ROWS), (i.astype(np.int64), j.astype(np.int64)))


def told(blocks: JoinedBlocks, listener: LoadEstimate, pairs: list[np.ndarray], random: np.random.Generator) -> None:
    """Tell blocks given as matrices of matches, each in two stages and in steps of any size."""
    for matches in pairs:
        left, right = matches.shape
        half = (left // 2, right // 2)
        for before, (rows, columns) in (((0, 0), half), (half, (left, right))):
            for side, (old, new) in enumerate(zip(before, (rows, columns), strict=True)):
                blocks.take(side, new - old, new - old)
            i, j = np.nonzero(matches[:rows, :columns])
            fresh = (i >= before[0]) | (j >= before[1])
            order = random.permutation(np.flatnonzero(fresh))
            for piece in np.array_split(order, 3):
                blocks.found(a_step(i[piece], j[piece]) if len(piece) else None)
            blocks.met()
        blocks.leave()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 5))
def test_sums_are_those_of_whole_blocks(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    pairs = [random.random((random.integers(1, 40), random.integers(1, 40))) < 0.2 for _ in range(count)]
    listener = LoadEstimate([Aggregate.COUNT], lambda _: [EVERY_MATCH], 64)
    blocks = JoinedBlocks()
    blocks.listener = listener
    told(blocks, listener, pairs, random)
    naive, between = TwoSided(TOTAL), BetweenBlocks(TOTAL)
    for matches in pairs:
        naive.update_block(matches.shape, matches.sum(axis=1), matches.sum(axis=0))
        between.update(matches.shape, int(matches.sum()))
    assert listener.joined(0, TOTAL).to_values() == naive.to_values()
    unfollowed = LoadEstimate([Aggregate.COUNT], lambda _: [EVERY_MATCH], 0)
    again = JoinedBlocks()
    again.listener = unfollowed
    told(again, unfollowed, pairs, random)
    assert unfollowed.estimator(0, TOTAL).to_values() == between.to_values()


def test_the_open_block_counts_as_far_as_it_has_met() -> None:
    listener, blocks = LoadEstimate([Aggregate.COUNT], lambda _: [EVERY_MATCH], 64), JoinedBlocks()
    blocks.listener = listener
    blocks.take(0, 4, 4)
    blocks.take(1, 5, 5)
    blocks.found(a_step(np.array([0, 1]), np.array([2, 2])))
    assert listener.joined(0, TOTAL).joined_pairs == 0
    blocks.met()
    assert listener.joined(0, TOTAL).joined_pairs == 20
    blocks.take(0, 4, 4)
    blocks.found(a_step(np.array([5]), np.array([2])))
    joined = listener.joined(0, TOTAL)
    assert (joined.joined_pairs, joined.matches) == (20, 2)
    blocks.met()
    joined = listener.joined(0, TOTAL)
    assert (joined.joined_pairs, joined.matches) == (40, 3)
    assert joined.rows == [8, 5]
    blocks.leave()
    assert listener.joined(0, TOTAL).to_values()["sums"] == [3.0, 0.0]


def test_a_block_of_one_side_alone_is_no_sample() -> None:
    listener, blocks = LoadEstimate([Aggregate.COUNT], lambda _: [EVERY_MATCH], 64), JoinedBlocks()
    blocks.listener = listener
    blocks.take(0, 10, 10)
    blocks.leave()
    assert listener.joined(0, TOTAL).joined_pairs == 0


def test_what_was_paused_goes_on_with_the_next_block() -> None:
    random = np.random.default_rng(1)
    pairs = [random.random((20, 20)) < 0.1 for _ in range(4)]
    listener, blocks = LoadEstimate([Aggregate.COUNT], lambda _: [EVERY_MATCH], 64), JoinedBlocks()
    blocks.listener = listener
    told(blocks, listener, pairs[:2], random)
    saved = json.loads(json.dumps([blocks.to_values(), listener.to_values()]))
    resumed, again = JoinedBlocks(), LoadEstimate([Aggregate.COUNT], lambda _: [EVERY_MATCH], 64)
    resumed.listener = again
    resumed.go_on(saved[0])
    again.go_on(saved[1])
    assert again.joined(0, TOTAL).to_values() == listener.joined(0, TOTAL).to_values()
    resumed.found(a_step(np.array([0]), np.array([0])))  # of the block in hand, part of which nobody counted
    resumed.met()
    resumed.leave()
    assert again.joined(0, TOTAL).matches == pairs[0].sum() + pairs[1].sum()
    told(resumed, again, pairs[2:], random)
    assert again.joined(0, TOTAL).matches == sum(int(one.sum()) for one in pairs)


def test_the_first_rows_stand_for_all() -> None:
    """Following a part of the rows gives the same variance on average, since rows are in random order."""
    random = np.random.default_rng(2)
    weights = random.gamma(0.5, 1.0, 400)
    followed, every = [], []
    for _ in range(150):
        matches = random.random((200, 200)) < 0.1 * weights[random.permutation(400)[:200], None]
        sums = RowSums(20, with_values=False)
        sums.add(np.nonzero(matches)[0], EVERY_MATCH)
        part, whole = sums.moments(200, 200), RowMoments.of(200, matches.sum(axis=1))
        followed.append(part.same[0] / part.rows)
        every.append(whole.same[0] / whole.rows)
    assert np.mean(followed) == pytest.approx(np.mean(every), rel=0.15)


def test_rows_that_cannot_match_count_as_rows() -> None:
    sums = RowSums(10, with_values=True)
    measure = Measure(np.array([True, True, False]), np.array([2.0, 4.0, 100.0]))
    sums.add(np.array([0, 1, 1]), measure)
    moments = sums.moments(rows=40, kept=20)
    assert moments.rows == 20  # 10 of the 20 that could match are followed: they stand for half of the 40
    assert moments.same == (0.0, 0.0, 0.0)
    assert Totals.of(3, measure) == Totals(2, 6.0, 20.0, 0)


def test_same_order_of_both_inputs_is_seen() -> None:
    random = np.random.default_rng(3)
    for depend in (True, False):
        listener, blocks = LoadEstimate([Aggregate.COUNT], lambda _: [EVERY_MATCH], 512), JoinedBlocks()
        blocks.listener = listener
        for _ in range(6):
            n, before = 256, 0
            partner = np.arange(n) if depend else random.permutation(n)
            for size in (32, 64, 128, 256):
                blocks.take(0, size - before, size - before)
                blocks.take(1, size - before, size - before)
                i = np.flatnonzero((partner < size) & (np.arange(n) < size))
                i = i[(i >= before) | (partner[i] >= before)]
                blocks.found(a_step(i, partner[i]) if len(i) else None)
                blocks.met()
                before = size
            blocks.leave()
        assert listener.orders_depend() is depend
