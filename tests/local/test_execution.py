"""One run of a join: what is made together, in which order it works, and that all of it is given back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.algorithms.protocol import Matches, Step
from earlyjoin.algorithms.resizing import Resizing
from earlyjoin.local.building import OutputBuilder

LEFT = pa.table({"k": [row % 50 for row in range(2_000)], "a": range(2_000)})
RIGHT = pa.table({"k": [row % 50 for row in range(200)], "b": range(200)})


def query(**options: Any) -> ej.Query:
    return ej.join(LEFT, RIGHT, on="k", **options)


def test_memory_is_given_back_after_the_rows_of_a_step_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches are numbers of rows in memory: rows that left before they were built would be others, or none."""
    events: list[str] = []
    running = query(algorithm="ehj", memory="400rows", batch_rows=500)
    operator = running._execution.operator
    build, enforce, arrive, finish = OutputBuilder.build, Resizing.enforce, operator.arrive, operator.finish

    def noted(steps: Iterator[Step]) -> Iterator[Step]:
        for step in steps:
            if step is not None:
                events.append("found")
            yield step

    def built(self: OutputBuilder, matches: Matches) -> Iterator[pa.RecordBatch]:
        yield from build(self, matches)
        events.append("built")

    def enforced(self: Resizing) -> None:
        if events and events[-1] != "enforce":
            events.append("enforce")
        enforce(self)

    monkeypatch.setattr(OutputBuilder, "build", built)
    monkeypatch.setattr(Resizing, "enforce", enforced)
    operator.arrive = lambda side, batch: noted(arrive(side, batch))  # type: ignore[method-assign]
    operator.finish = lambda: noted(finish())  # type: ignore[method-assign]
    rows = sum(batch.num_rows for batch in running)
    assert rows == len(LEFT) * len(RIGHT) // 50
    assert len(events) > 10
    assert events == ["found", "built", "enforce"] * (len(events) // 3)


def test_two_batches_of_each_side_fit_into_the_input_buffer() -> None:
    execution = query(memory="100rows")._execution
    assert execution._input_budget.limit.rows is not None
    for source in execution.sources:
        assert 4 * execution._batch_rows(source).most <= execution._input_budget.limit.rows


def test_everything_is_given_back_when_it_is_closed(tmp_path: Path) -> None:
    running = query(algorithm="xjoin", memory="300rows", spill_directory=tmp_path)
    execution = running._execution
    next(iter(running))
    assert execution.budget.used_rows > 0
    running.close()
    assert execution.budget.used_rows == 0
    assert list(tmp_path.iterdir()) == []
    execution.close()


def test_one_part_that_cannot_be_closed_does_not_keep_the_others_open(tmp_path: Path) -> None:
    running = query(algorithm="xjoin", memory="300rows", spill_directory=tmp_path)
    execution = running._execution
    next(iter(running))

    def broken() -> None:
        raise RuntimeError("cannot be closed")

    execution.operator.close = broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="cannot be closed"):
        execution.close()
    assert list(tmp_path.iterdir()) == []
    assert execution.inputs is not None
    assert execution.inputs._stopped  # type: ignore[attr-defined]
    del execution.operator.close  # the query closes it once more when it is dropped


def test_reading_is_of_those_who_may_choose() -> None:
    assert query()._execution.reading is not None
    assert query(driving="push")._execution.reading is None
