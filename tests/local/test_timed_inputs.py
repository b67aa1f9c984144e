"""Rows that arrive one by one on a virtual clock: silences, windows, what waits while work is done."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from earlyjoin.local.timed_inputs import Schedule, TimedInputs
from earlyjoin.state.clock import VirtualClock
from earlyjoin.state.cost_clock import CostClock, Costs
from earlyjoin.state.counters import Counters

SILENCE_S = 1.0


def _inputs(
    times_s: list[float], sides: list[int], clock: VirtualClock | None = None, **options: int | bool
) -> tuple[TimedInputs, VirtualClock]:
    tables = [pa.record_batch({"n": np.flatnonzero(np.array(sides) == side)}) for side in range(2)]
    clock = clock if clock is not None else VirtualClock()
    schedule = Schedule(np.array(times_s), np.array(sides, dtype=np.int64))
    return TimedInputs(tables, schedule, clock, silence_s=SILENCE_S, **options), clock


def _taken(inputs: TimedInputs, wait_s: float | None = SILENCE_S) -> tuple[int, list[int]] | None:
    arrival = inputs.take(None, wait_s)
    if arrival is None:
        return None
    return arrival.side, arrival.batch.column(0).to_pylist() if arrival.batch is not None else []


def test_rows_come_together_until_the_next_silence() -> None:
    inputs, clock = _inputs([0, 0.5, 1.0, 5.0, 5.5], [0, 1, 0, 1, 1])
    assert _taken(inputs) == (0, [0, 2])
    assert clock.now() == 1.0
    assert _taken(inputs) == (1, [1])
    assert _taken(inputs) is None  # silent
    assert clock.now() == 2.0
    assert not inputs.waiting(None)
    assert _taken(inputs, None) == (1, [3, 4])
    assert [_taken(inputs), _taken(inputs)] == [(0, []), (1, [])]  # both end


def test_windows_are_bounded() -> None:
    inputs, _ = _inputs([0.0] * 5, [0] * 5, window_rows=2)
    assert [_taken(inputs) for _ in range(3)] == [(0, [0, 1]), (0, [2, 3]), (0, [4])]


def test_work_makes_rows_wait_and_a_silence_in_the_past_is_none() -> None:
    counters, clock = Counters(rows_in=[0, 0]), CostClock(Costs(page_read_s=1))
    clock.watch(counters)
    inputs, _ = _inputs([0, 2, 4, 9], [0, 0, 0, 0], clock)
    assert _taken(inputs) == (0, [0])
    assert _taken(inputs) is None
    counters.pages_read += 4
    assert inputs.waiting(None)
    assert inputs.backlog == 2
    assert _taken(inputs, 0.0) == (0, [1, 2])
    assert inputs.peak_waiting == 2


def test_work_beyond_a_silence_is_taken_from_the_next_ones() -> None:
    counters, clock = Counters(rows_in=[0, 0]), CostClock(Costs(page_read_s=1))
    clock.watch(counters)
    inputs, _ = _inputs([0, 3, 6, 9, 20], [0] * 5, clock, silent_time_only=True)
    assert _taken(inputs) == (0, [0])
    assert _taken(inputs) is None  # silent at 1
    counters.pages_read += 4  # until 5: 2 s more than the silence had
    assert _taken(inputs, 0.0) == (0, [1])
    assert _taken(inputs) == (0, [2])  # the silence from 6 to 9 begins at 7 and has 2 s: they are owed
    assert clock.now() == 6
    assert _taken(inputs) == (0, [3])
    assert _taken(inputs) is None
    assert clock.now() == 10
    assert _taken(inputs, None) == (0, [4])
