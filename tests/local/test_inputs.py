"""The input buffer: order, shares, back-pressure, failures, and an end that nobody else trips over."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from earlyjoin.errors import BudgetExceeded, SourceError
from earlyjoin.local.inputs import Arrival, ThreadedInputs
from earlyjoin.local.sources.base import BatchSizes, Source
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.clock import RealClock

SCHEMA = pa.schema([("k", pa.int64())])


class ListedSource(Source):
    """Gives batches as they are listed; an exception among them is raised."""

    def __init__(self, name: str, *batches: Sequence[object] | BaseException) -> None:
        self.name, self.schema = name, SCHEMA
        self._batches = batches

    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        for values in self._batches:
            if isinstance(values, BaseException):
                raise values
            yield pa.record_batch({"k": pa.array(values)})


@pytest.fixture
def opened() -> Iterator[object]:
    made: list[ThreadedInputs] = []

    def inputs(*sources: Source, memory: MemoryLimit | None = None) -> ThreadedInputs:
        one = ThreadedInputs(sources, RealClock(), [BatchSizes()] * len(sources), [0] * len(sources))
        made.append(one)
        one.open(Budget(memory if memory is not None else MemoryLimit(rows=100)))
        return one

    yield inputs
    for one in made:
        one.close()


def taken(inputs: ThreadedInputs, side: int | None) -> list[int] | None:
    arrival = inputs.take(side, None)
    assert arrival is not None
    inputs.release(arrival)
    return None if arrival.batch is None else arrival.batch.column(0).to_pylist()


def test_each_side_keeps_its_order_and_its_end_comes_last(opened) -> None:  # type: ignore[no-untyped-def]
    inputs = opened(ListedSource("left", [1, 2], [3]), ListedSource("right", [9]))
    assert [taken(inputs, 0) for _ in range(3)] == [[1, 2], [3], None]
    assert [taken(inputs, 1) for _ in range(2)] == [[9], None]


def test_what_came_first_is_taken_first(opened) -> None:  # type: ignore[no-untyped-def]
    inputs = opened(ListedSource("left"), ListedSource("right"))
    while not (inputs.waiting(0) and inputs.waiting(1)):
        threading.Event().wait(0.001)
    orders = [inputs.take(None, None).order for _ in range(2)]
    assert orders == [1, 2]


def test_a_full_share_makes_its_source_wait_and_no_other(opened) -> None:  # type: ignore[no-untyped-def]
    inputs = opened(
        ListedSource("left", [1, 2], [3, 4], [5, 6]), ListedSource("right", [9]), memory=MemoryLimit(rows=8)
    )
    assert [taken(inputs, 1) for _ in range(2)] == [[9], None]
    held = [inputs.take(0, None) for _ in range(2)]
    assert inputs.take(0, 0.2) is None, "both batches that fit are still at work"
    inputs.release(held[0])
    assert taken(inputs, 0) == [5, 6]


def test_a_batch_is_cut_until_two_of_it_fit(opened) -> None:  # type: ignore[no-untyped-def]
    inputs = opened(ListedSource("left", list(range(10))), ListedSource("right"), memory=MemoryLimit(rows=8))
    assert [taken(inputs, 0) for _ in range(6)] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], None]


def test_a_row_that_does_not_fit_is_an_error_that_says_so(opened) -> None:  # type: ignore[no-untyped-def]
    wide = ListedSource("left", ["x" * 40_000])
    inputs = opened(wide, ListedSource("right"), memory=MemoryLimit(bytes=65_536))
    with pytest.raises(BudgetExceeded, match="'left'"):
        inputs.take(0, None)


@pytest.mark.parametrize("error", [OSError("unplugged"), SystemExit("out")])
def test_a_failure_comes_behind_all_that_came_before(opened, error: BaseException) -> None:  # type: ignore[no-untyped-def]
    inputs = opened(ListedSource("left", [1], error), ListedSource("right"))
    assert taken(inputs, 0) == [1]
    with pytest.raises(SourceError, match=rf"'left' failed: {type(error).__name__}: {error}"):
        inputs.take(0, None)


def test_silence_ends_a_wait(opened) -> None:  # type: ignore[no-untyped-def]
    inputs = opened(ListedSource("left"), ListedSource("right"))
    assert taken(inputs, 0) is None
    assert inputs.take(0, 0.01) is None


def test_queues_are_cleared_under_the_condition_that_guards_them(opened) -> None:  # type: ignore[no-untyped-def]
    """Else one who takes finds a queue filled, and it is empty when he reaches for its first batch."""
    inputs = opened(ListedSource("left", [1]), ListedSource("right", [2]))
    while not (inputs.waiting(0) and inputs.waiting(1)):
        threading.Event().wait(0.001)
    guarded: list[bool] = []

    class Queue(deque[Arrival]):
        def clear(self) -> None:
            guarded.append(inputs._changed._is_owned())  # type: ignore[attr-defined]
            super().clear()

    inputs._queues = [Queue(queue) for queue in inputs._queues]
    inputs.close()
    assert guarded == [True, True]


def test_nothing_comes_in_after_the_end(opened) -> None:  # type: ignore[no-untyped-def]
    inputs = opened(ListedSource("left", *([row] for row in range(100))), ListedSource("right"))
    assert taken(inputs, 0) == [0]
    inputs.close()
    inputs.close()
    assert not inputs.waiting(None)
    assert not any(thread.is_alive() for thread in inputs._threads)
