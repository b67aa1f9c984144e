"""An operator with a plan and a context, driven by hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

import earlyjoin as ej
from earlyjoin.algorithms import registry
from earlyjoin.algorithms.options import GivenOptions
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.algorithms.protocol import Context, Operator, Step
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.predicates.encoding.carried import carried_batch
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.disk.spill import SpillDirectory


class Join:
    """Runs an operator step by step and keeps what it gives."""

    def __init__(
        self,
        algorithm: str,
        left: pa.Schema,
        right: pa.Schema,
        directory: Path,
        *,
        on: Condition | None = None,
        how: str = "inner",
        memory: str | int = "4MB",
        output_rows: int = 64,
        options: GivenOptions = None,
        rows_expected: tuple[int | None, ...] | None = None,
    ) -> None:
        self.plan = make_plan(on if on is not None else ej.equal("k", "k"), left, right, how=how)
        self.context = Context(
            budget=Budget(MemoryLimit.parse(memory)),
            spill=SpillDirectory(directory),
            output_rows=output_rows,
            rows_expected=rows_expected,
            options=registry.options_of(algorithm, options),
        )
        self.operator: Operator = registry.create(algorithm, self.plan, self.context)
        self.sizes: list[int] = []
        limit = self.context.budget.limit
        self.largest = limit.bytes or limit.rows or 0

    @property
    def counters(self) -> Any:
        return self.context.counters

    @property
    def used(self) -> int:
        return self.context.budget.used_bytes

    def take(self, steps: Iterable[Step]) -> list[dict[str, Any]]:
        """All rows of a call."""
        rows: list[dict[str, Any]] = []
        for step in steps:
            if step is not None:
                assert 0 < len(step) <= self.context.output_rows
                self.sizes.append(len(step))
                batch = self.plan.output.build(step.rows, step.index)
                assert batch.num_rows == len(step)
                assert batch.schema == self.plan.output.schema
                rows += batch.to_pylist()
            self.check()
        return rows

    def arrive(self, side: int, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        return self.take(self.operator.arrive(side, carried_batch(batch)))

    def end(self, side: int) -> list[dict[str, Any]]:
        return self.take(self.operator.end(side))

    def finish(self) -> list[dict[str, Any]]:
        return self.take(self.operator.finish())

    def check(self) -> None:
        budget, limit = self.context.budget, self.context.budget.limit
        self.largest = max(self.largest, limit.bytes or limit.rows or 0)  # a memory may change
        assert limit.bytes is None or (budget.used_bytes <= limit.bytes and budget.peak_bytes <= self.largest)
        assert limit.rows is None or (budget.used_rows <= limit.rows and budget.peak_rows <= self.largest)

    def close(self) -> None:
        self.operator.close()
        self.context.spill.close()
        assert (self.context.budget.used_bytes, self.context.budget.used_rows) == (0, 0)


def batch(k: Iterable[int | None], **more: Iterable[Any]) -> pa.RecordBatch:
    """Rows with an integer key."""
    columns = {"k": pa.array(list(k), pa.int64())} | {name: pa.array(list(values)) for name, values in more.items()}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
