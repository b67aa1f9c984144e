"""Joining a cell: one operator, fed with the packed rows of both sides as they come, inside a budget, with spill files.

::

    packed rows ──▶ unpack ──▶ operator.arrive ──┐                  ┌──▶ less what the early phase gave out ──▶ rows
                               operator.finish ──┴─ index pairs ────┘

In a semi join, left rows that the early phase may have given out wait: an anti join of them with the tagged rows of the
other side tells which of them it did not, and only these take part (see :mod:`earlyjoin.spark.early.exclusion`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.output import OutputColumn, OutputSchema
from earlyjoin.algorithms.protocol import Context, Matches, Operator, Plan, Step
from earlyjoin.predicates.base import BoundPredicate, Capability
from earlyjoin.predicates.conjunction import BoundConjunction
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.spark.bulk.base import column_names, tag_name
from earlyjoin.spark.early.exclusion import Tags, fresh_pairs
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.disk.spill import SpillDirectory

TASK_NBYTES = 256 * 2**20
"""Memory of a task's operator."""
_OUTPUT_NBYTES = 8 * 2**20
_UNMATCHED_SHARE = 1 / 4
"""Part of the memory for the anti join that a semi join makes of tagged rows."""


@dataclass(frozen=True, slots=True)
class DrivenCondition(BoundConjunction):
    """A condition whose driving part was chosen by sizes, not by rank."""

    first: int = 0

    def driver(self, capability: Capability) -> tuple[BoundPredicate, tuple[BoundPredicate, ...]] | None:
        """The chosen part, where it can drive."""
        chosen = self.parts[self.first]
        if chosen.capabilities & capability != capability:
            return BoundConjunction.driver(self, capability)
        return chosen, tuple(part for part in self.parts if part is not chosen)


class TagsMeet(BoundPredicate):
    """The early phase has joined the blocks of both rows."""

    capabilities = Capability.NONE
    columns = ((tag_name(0),), (tag_name(1),))
    text = "joined early"
    rank = 9

    def encode(self, side: int, batch: pa.RecordBatch) -> Keys:
        tags = batch.column(batch.schema.get_field_index(tag_name(side))).to_numpy(zero_copy_only=False)
        return Keys(tags.astype(np.int64).reshape(-1, 1))

    def holds(self, left: Keys, i: Int64, right: Keys, j: Int64) -> Bool:
        return ~fresh_pairs(left.words[i, 0], right.words[j, 0])


def cell_plan(plan: Plan, how: JoinType | None = None, first: int | None = None) -> Plan:
    """The plan of a cell: tags are one more column of each side, and columns go out by position.

    ``how`` may differ from the plan's where a join takes several passes; ``first`` is the part of the condition that
    drives, when it is not the usual one.
    """
    schemas = tuple(
        pa.schema([*schema, pa.field(tag_name(side), pa.int8(), nullable=False)])
        for side, schema in enumerate(plan.schemas)
    )
    sides = (0, 1) if plan.how.gives_pairs else (0,)
    columns = [
        OutputColumn(pa.field(name, field.type), (position, None) if side == 0 else (None, position))
        for side in sides
        for position, (name, field) in enumerate(zip(column_names(plan, side), plan.schemas[side], strict=True))
    ]
    condition = plan.condition
    if first is not None:
        condition = DrivenCondition(condition.parts, condition.filters, condition.text, condition.shared, first)
    return replace(plan, schemas=schemas, condition=condition, output=OutputSchema(columns), how=how or plan.how)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellJoiner:
    """What Spark calls with the packed rows of one or several cells, cell by cell: packed rows in, joined rows out."""

    plan: Plan
    """See :func:`cell_plan`."""
    tagged: bool
    """Has any row a tag?"""
    pairs: bool = True
    """Give out pairs, or unmatched rows alone?"""
    memory_nbytes: int = TASK_NBYTES

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cell, running = None, None
        try:
            for batch in batches:
                cells, sides, packed = (batch.column(position) for position in range(3))
                for number, side, rows in zip(cells.to_pylist(), sides.to_pylist(), packed, strict=True):
                    if number != cell and running is not None:
                        yield from running.finish()
                        running.close()
                        running = None
                    if running is None:
                        cell, running = number, _Cell(self)
                    yield from running.arrive(side, self._unpack(side, rows))
            if running is not None:
                yield from running.finish()
        finally:
            if running is not None:
                running.close()

    def _unpack(self, side: int, packed: pa.Scalar) -> pa.RecordBatch:
        return pa.ipc.read_record_batch(pa.ipc.read_message(packed.as_buffer()), self.plan.schemas[side])


class _Cell:
    """One cell being joined."""

    def __init__(self, joiner: CellJoiner) -> None:
        self._joiner, self._plan = joiner, joiner.plan
        self._spill = SpillDirectory(spill_root())
        budget = Budget(MemoryLimit(bytes=joiner.memory_nbytes))
        self._waiting: Operator | None = None
        if joiner.tagged and self._plan.how is JoinType.SEMI:
            share, budget = budget.split(_UNMATCHED_SHARE)
            self._waiting = self._operator(_not_given_early(self._plan), share)
        self._operators = [self._operator(self._plan, budget)]

    def _operator(self, plan: Plan, budget: Budget) -> Operator:
        able = registry.names_that_can(plan, spills=True)
        name = "pmj" if "pmj" in able else "nested"
        return registry.create(name, plan, Context(budget=budget, spill=self._spill))

    def arrive(self, side: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        operator = self._operators[0]
        if self._waiting is None:
            yield from self._build(operator.arrive(side, rows))
            return
        tags = rows.column(rows.num_columns - 1).to_numpy(zero_copy_only=False)
        tagged = rows.filter(pa.array(tags != 0))
        if tagged.num_rows:
            for _ in self._waiting.arrive(side, tagged):
                pass
        if side == 0:
            rows = rows.filter(pa.array(tags == 0))
        if rows.num_rows:
            yield from self._build(operator.arrive(side, rows))

    def finish(self) -> Iterator[pa.RecordBatch]:
        operator = self._operators[0]
        if self._waiting is not None:
            for step in self._finished(self._waiting):
                if step is not None:
                    late = self._waiting.plan.output.build(step.rows, step.index)
                    yield from self._build(operator.arrive(0, late))
        yield from self._build(self._finished(operator))

    @staticmethod
    def _finished(operator: Operator) -> Iterator[Step]:
        for side in range(operator.plan.sides):
            yield from operator.end(side)
        yield from operator.finish()

    def _build(self, steps: Iterator[Step]) -> Iterator[pa.RecordBatch]:
        for step in steps:
            matches = self._fresh(step) if step is not None else None
            if matches is not None:
                yield from _batches(self._plan.output, matches)

    def _fresh(self, matches: Matches) -> Matches | None:
        """What of the matches goes out."""
        (left, right), (i, j) = matches.rows, matches.index
        if left is None or right is None or i is None or j is None:
            return matches
        if not self._joiner.pairs:
            return None
        if not self._joiner.tagged:
            return matches
        tags: list[Tags] = [
            rows.take(index, [len(schema) - 1])[0].to_numpy(zero_copy_only=False)
            for rows, index, schema in ((left, i, self._plan.schemas[0]), (right, j, self._plan.schemas[1]))
        ]
        fresh = fresh_pairs(*tags)
        if fresh.all():
            return matches
        return Matches(matches.rows, (i[fresh], j[fresh])) if fresh.any() else None

    def close(self) -> None:
        with ExitStack() as last_first:
            last_first.callback(self._spill.close)
            for operator in (*self._operators, self._waiting):
                if operator is not None:
                    last_first.callback(operator.close)


def _not_given_early(plan: Plan) -> Plan:
    """Left rows without a partner of a common tag, with their tags."""
    parts = (*plan.condition.parts, TagsMeet())
    condition = BoundConjunction(parts, plan.condition.filters, plan.condition.text, plan.condition.shared)
    columns = [OutputColumn(field, (position, None)) for position, field in enumerate(plan.schemas[0])]
    return replace(plan, how=JoinType.ANTI, condition=condition, output=OutputSchema(columns))


def _batches(output: OutputSchema, matches: Matches) -> Iterator[pa.RecordBatch]:
    start = 0
    while start < len(matches):
        index = tuple(None if numbers is None else numbers[start:] for numbers in matches.index)
        count = output.fitting(matches.rows, index, _OUTPUT_NBYTES)
        yield output.build(matches.rows, tuple(None if numbers is None else numbers[:count] for numbers in index))
        start += count


def spill_root() -> str | None:
    """Where a task may write: a local directory of Spark's, which goes with the executor; None for the system's."""
    directories = [path for path in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if os.path.isdir(path)]
    return directories[os.getpid() % len(directories)] if directories else None
