"""When the driver calls what: arrivals, silence, ends, failures, stops, and what it does between two steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from threading import Event

import numpy as np
import pyarrow as pa
import pytest

from earlyjoin.algorithms.protocol import Matches, Slice, Step
from earlyjoin.algorithms.reading import Ratio
from earlyjoin.errors import SourceError
from earlyjoin.local.driver import REACT_STEPS, Driver
from earlyjoin.local.inputs import Arrival

BATCH = pa.record_batch({"k": [1, 2, 3]})
PAIR = Matches((None, None), (np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)))


class NotedOperator:
    """Writes down how it is called; every call gives the steps that are set for it."""

    def __init__(self, **steps: list[Step]) -> None:
        self.calls: list[str] = []
        self.steps = steps
        self.reactive = False
        self.slices: list[Slice] = []

    def _noted(self, call: str, kind: str) -> Iterator[Step]:
        self.calls.append(call)
        yield from self.steps.get(kind, [])

    def arrive(self, side: int, batch: pa.RecordBatch) -> Iterator[Step]:
        return self._noted(f"arrive {side}: {batch.num_rows}", "arrive")

    def end(self, side: int) -> Iterator[Step]:
        return self._noted(f"end {side}", "end")

    def react(self, work: Slice) -> Iterator[Step]:
        self.slices.append(work)
        return self._noted("react", "react")

    def finish(self) -> Iterator[Step]:
        return self._noted("finish", "finish")

    def resume(self) -> Iterator[Step]:
        return self._noted("resume", "resume")

    def has_reactive_work(self) -> bool:
        return self.reactive


class ListedInputs:
    """Gives arrivals as they are listed: None is a silence, an error is raised."""

    def __init__(self, *arrivals: Arrival | Exception | None) -> None:
        self.arrivals = deque(arrivals)
        self.asked: list[tuple[int | None, float | None]] = []
        self.released: list[Arrival] = []

    def take(self, side: int | None, wait_s: float | None) -> Arrival | None:
        self.asked.append((side, wait_s))
        arrival = self.arrivals.popleft()
        if isinstance(arrival, Exception):
            raise arrival
        return arrival

    def waiting(self, side: int | None) -> bool:
        return bool(self.arrivals) and self.arrivals[0] is not None

    def release(self, arrival: Arrival) -> None:
        self.released.append(arrival)

    def close(self) -> None:
        pass


def driver(operator: NotedOperator, inputs: ListedInputs, **more: object) -> Driver:
    given = {"reading": None, "wait_s": 0.5, "rows_taken": [0, 0], "ended": [False, False]} | more
    return Driver(operator=operator, inputs=inputs, **given)  # type: ignore[arg-type]


def ends() -> tuple[Arrival, Arrival]:
    return Arrival(0, None), Arrival(1, None)


def test_arrivals_are_handed_on_counted_and_released() -> None:
    operator, inputs = NotedOperator(), ListedInputs(Arrival(1, BATCH), Arrival(0, BATCH), *ends())
    run = driver(operator, inputs)
    assert list(run.run()) == []
    assert operator.calls == ["resume", "arrive 1: 3", "arrive 0: 3", "end 0", "end 1", "finish"]
    assert run.rows_taken == [3, 3]
    assert run.ended == [True, True]
    assert [arrival.side for arrival in inputs.released] == [1, 0]


def test_a_batch_is_released_only_when_its_last_step_is_done() -> None:
    operator, inputs = NotedOperator(arrive=[PAIR, PAIR]), ListedInputs(Arrival(0, BATCH), *ends())
    matches = driver(operator, inputs).run()
    assert next(matches) is PAIR
    assert next(matches) is PAIR
    assert inputs.released == []
    assert list(matches) == []
    assert len(inputs.released) == 1


def test_a_side_that_ended_before_is_not_ended_again() -> None:
    operator, inputs = NotedOperator(), ListedInputs(*ends())
    assert list(driver(operator, inputs, ended=[True, False]).run()) == []
    assert operator.calls == ["resume", "end 1", "finish"]


def test_silence_starts_slices_that_end_as_soon_as_input_waits() -> None:
    operator = NotedOperator(react=[PAIR])
    operator.reactive = True
    inputs = ListedInputs(None, None, Arrival(0, BATCH), *ends())
    assert list(driver(operator, inputs).run()) == [PAIR, PAIR]
    assert operator.calls == ["resume", "react", "react", "arrive 0: 3", "end 0", "end 1", "finish"]
    assert [work.steps for work in operator.slices] == [REACT_STEPS] * 2
    # Silence is waited for once; while it lasts, each slice is followed by a look.
    assert [wait for _, wait in inputs.asked] == [0.5, 0.0, 0.0, 0.5, 0.5]
    inputs.arrivals.append(Arrival(0, BATCH))
    assert operator.slices[0].over
    inputs.arrivals.clear()
    assert not operator.slices[0].over


def test_without_work_on_disk_there_is_nothing_but_waiting() -> None:
    inputs = ListedInputs(Arrival(0, BATCH), *ends())
    list(driver(NotedOperator(), inputs).run())
    assert [wait for _, wait in inputs.asked] == [None] * 3


def test_pulling_asks_for_the_side_that_the_ratio_names() -> None:
    inputs = ListedInputs(Arrival(1, BATCH), *ends())
    list(driver(NotedOperator(), inputs, reading=Ratio((1, 2)), rows_taken=[3, 0]).run())
    assert inputs.asked[0][0] == 1
    assert inputs.asked[2][0] == 1, "the other side has ended"


def test_rows_that_came_before_a_failure_are_joined() -> None:
    operator = NotedOperator(react=[PAIR])
    matches = driver(operator, ListedInputs(Arrival(0, BATCH), SourceError("gone"))).run()
    assert next(matches) is PAIR
    with pytest.raises(SourceError, match="gone"):
        next(matches)
    assert operator.calls == ["resume", "arrive 0: 3", "react"]


def test_a_stop_is_seen_after_every_step() -> None:
    operator = NotedOperator(arrive=[None, PAIR, PAIR])
    asked = Event()
    matches = driver(operator, ListedInputs(Arrival(0, BATCH)), stopping=asked.is_set).run()
    assert next(matches) is PAIR
    asked.set()
    assert list(matches) == []
    assert "finish" not in operator.calls


def test_what_must_wait_for_the_rows_of_a_step_comes_after_they_are_built() -> None:
    events: list[str] = []
    run = driver(
        NotedOperator(arrive=[None, PAIR]),
        ListedInputs(Arrival(0, BATCH), *ends()),
        watching=lambda: events.append("watching"),
        between_steps=lambda: events.append("between"),
    )
    events.extend("built" for _ in run.run())
    assert events == ["watching", "between", "watching", "built", "between"]


def test_arguments_are_named() -> None:
    with pytest.raises(TypeError, match="positional"):
        Driver(NotedOperator(), ListedInputs(), None, 0.5, [0, 0], [False, False])  # type: ignore[misc, arg-type]


def test_none_says_that_input_will_be_waited_for_while_rows_are_held_back() -> None:
    held = [True]
    inputs = ListedInputs(Arrival(0, BATCH), None, *ends())
    inputs.arrivals.appendleft(Arrival(1, BATCH))
    given = []
    for matches in driver(NotedOperator(arrive=[PAIR]), inputs, holding=lambda: held[0]).run():
        given.append((matches, len(inputs.arrivals)))
        held[0] = matches is not None
    assert given == [(PAIR, 4), (PAIR, 3), (None, 3)]
