"""Every kind of sweep area against the conditions of section 3.2: complete, each pair once, nothing needed gone."""

from __future__ import annotations

from contextlib import ExitStack
from unittest.mock import patch

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from earlyjoin.algorithms.sweep_areas import intervals, make_sweep, plane, sweep_join
from sweep.kinds import KINDS
from sweep.sweeping import Sweep, filled, query_all, whole_run

QUICK = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


def tiny_pieces(yes: bool) -> ExitStack:
    """Sizes at which areas reorganise, made so small that a few rows reach them."""
    stack = ExitStack()
    if yes:
        stack.enter_context(patch.object(plane, "PIECE", 4))
        stack.enter_context(patch.object(plane, "_FEW", 0))
        stack.enter_context(patch.object(intervals, "_FEW", 0))
    return stack


@pytest.mark.parametrize("kind", KINDS)
def test_a_sweep_finds_each_matching_pair_once_and_keeps_what_is_needed(kind: str) -> None:
    @QUICK
    @given(KINDS[kind], st.integers(0, 2**32), st.sampled_from([1, 2, 7, 1000]), st.booleans())
    def check(case, seed, room, tiny) -> None:
        with tiny_pieces(tiny):
            assert Sweep(case, seed, room).run() == case.pairs()

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_frontier_removes_whatever_an_earlier_one_does(kind: str) -> None:
    @settings(QUICK, max_examples=15)
    @given(KINDS[kind], st.integers(0, 1), st.data())
    def check(case, side, data) -> None:
        order, make_area = make_sweep(case.bound)
        words = np.concatenate([whole_run(order, each, case.keys[each]).words for each in (side, 1 - side)])
        if not len(words):
            return
        early, late = sorted(data.draw(st.sampled_from(words.tolist())) for _ in range(2))
        held = []
        for frontier in (early, late):
            area = filled(make_area, order, side, case.keys[side])
            area.expire(frontier)
            held.append(set(area.handles.tolist()))
        assert held[1] <= held[0]

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_queries_in_any_order_and_whole_joins(kind: str) -> None:
    @settings(QUICK, max_examples=15)
    @given(KINDS[kind], st.integers(1, 20))
    def check(case, block_rows) -> None:
        order, make_area = make_sweep(case.bound)
        area = filled(make_area, order, 0, case.keys[0])
        order.words(1, case.keys[1])
        assert sorted(query_all(area, case.keys[1], 3)) == case.pairs()
        blocks = [np.stack(pairs, axis=1) for pairs in sweep_join(case.bound, *case.keys, block_rows=block_rows)]
        found = np.concatenate(blocks).tolist() if blocks else []
        assert sorted(map(tuple, found)) == case.pairs()

    check()
