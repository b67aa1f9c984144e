"""Clocks and counters."""

from __future__ import annotations

import json
import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from earlyjoin.state.clock import LogicalClock, RealClock, VirtualClock
from earlyjoin.state.counters import Counters, Phase


def test_the_real_clock_moves_and_sleeps() -> None:
    clock, start = RealClock(), time.monotonic()
    before = clock.now()
    clock.sleep(0.01)
    clock.sleep(0)
    clock.sleep(-5)
    assert 0.01 <= clock.now() - before < 2
    assert time.monotonic() - start < 2


def test_the_virtual_clock_moves_only_when_told_and_never_back() -> None:
    clock = VirtualClock(5)
    assert clock.now() == 5
    clock.sleep(1.5)
    clock.sleep(-3)
    clock.advance_to(2)
    assert clock.now() == 6.5
    clock.advance_to(10)
    assert clock.now() == 10


@given(st.lists(st.integers(0, 9) | st.none()))
def test_ticks_strictly_increase(steps: list[int | None]) -> None:
    clock, seen = LogicalClock(), [0]
    for step in steps:
        if step is None:
            seen.append(clock.tick())
        else:
            coming = clock.upcoming(step)
            assert coming.dtype == np.int64
            assert np.array_equal(coming, clock.upcoming(step)), "they pass only with pass_by"
            clock.pass_by(step)
            seen += coming.tolist()
    assert seen == sorted(set(seen))
    assert seen[-1] < clock.next_tick < LogicalClock.NEVER
    assert LogicalClock(clock.next_tick).tick() > seen[-1]


def test_counters_survive_json() -> None:
    counters = Counters(rows_in=[3, 4], comparisons=5, bytes_written=2**40, flushes=2)
    counters.results[Phase.REACTIVE] = 7
    counters.results[Phase.CLEANUP] = 1
    again = Counters.from_dict(json.loads(json.dumps(counters.to_dict())))
    assert again == counters
    assert again.rows_out == 8
    assert counters.to_dict()["results"] == {"arriving": 0, "reactive": 7, "cleanup": 1}
    again.results[Phase.ARRIVING] += 1
    again.rows_in[0] += 1
    assert counters.rows_out == 8
    assert counters.rows_in == [3, 4]
    assert Counters() == Counters.from_dict(Counters().to_dict())
