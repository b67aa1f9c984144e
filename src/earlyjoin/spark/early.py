"""The early phase: what is joined in this process before Spark's own join begins.

::

    look ──▶ random blocks ──▶ bulk
    first rows   the size of the whole, with an interval, and more rows

The look stops once it has found the rows that are wanted. Random blocks are drawn for inner joins alone, whose size can
be told from them, and only for whoever takes all rows: somebody who asked for a few is not kept waiting for a number.
What either has given out is marked in the tags of the rows (see :mod:`earlyjoin.spark.exclusion`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.join_types import JoinType
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.predicates.base import Capability
from earlyjoin.spark.aiming import Room, side_to_send
from earlyjoin.spark.blocks import Blocks, tag_column
from earlyjoin.spark.drawing import Draws
from earlyjoin.spark.jobs import Jobs
from earlyjoin.spark.looking import Look
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.pairing import Pairing
from earlyjoin.spark.scans import Files, Small
from earlyjoin.spark.stretches import Stretches
from earlyjoin.spark.unchanged import Unchanged
from earlyjoin.state.budget import Budget
from earlyjoin.state.clock import Clock
from earlyjoin.state.sizes import likely_row_nbytes, wide_row_nbytes

LEAST_ROWS, MOST_ROWS = 30_000, 150_000
"""Of a side, for the first step of the look."""
DENSE_ROWS = 3_000
"""The same without an equality: such conditions hold for many pairs more often than for few."""
_EXPANSION = 4
"""How much larger rows are in memory than in their files, about."""
_MEMORY_SHARE = 1 / 5
"""Of the early phase's memory: for the rows of a side in the first step."""


class Early:
    """The look and the random blocks; ``frames`` are both sides with their columns named by position."""

    def __init__(
        self,
        plan: Plan,
        frames: Sequence[Any],
        below: Sequence[Files | Small],
        pairing: Pairing,
        jobs: Jobs,
        budget: Budget,
        unchanged: Unchanged,
        clock: Clock,
        options: SparkOptions,
        stopping: Callable[[], bool],
    ) -> None:
        self._frames, self._how, self._stopping = frames, plan.how, stopping
        sides = _stretches(plan, below, options.seed)
        self.blocks = [Blocks(one, options.seed, side) for side, one in enumerate(below)]
        account = budget.account("rows of the first look")
        self.look = Look(plan, frames, sides, pairing, jobs, account, unchanged, _room(plan, budget), stopping)
        self.draws: Draws | None = None
        if plan.how is JoinType.INNER:
            blocks_account = budget.account("blocks joined early")
            self.draws = Draws(
                plan, frames, self.blocks, sides, pairing, jobs, blocks_account, unchanged, clock, options.early_share
            )

    @property
    def rows_read(self) -> list[int]:
        """Rows of each side that were read."""
        drawn = self.draws.rows_read if self.draws is not None else [0, 0]
        return [one + other for one, other in zip(self.look.rows_read, drawn, strict=True)]

    def side_to_send(self) -> int | None:
        """The side that turned out to be small, if Spark's own join can send it to every task."""
        return side_to_send(self.look.sides, self._how)

    def drawn_rows(self) -> Iterator[pa.RecordBatch]:
        """Rows of random blocks; the look is over then."""
        self.look.close()
        if self.draws is not None:
            yield from self.draws.rows(self._stopping)

    # Tags

    @property
    def took(self) -> bool:
        """Was anything given out that the bulk must leave out?"""
        return bool(self.look.sides[0].taken) or self._drew

    @property
    def _drew(self) -> bool:
        return self.draws is not None and bool(self.draws.chosen[0])

    def tag(self, side: int) -> Any:
        """The tag of a row of a side, a Column."""
        drawn = self.draws.chosen[side] if self.draws is not None else []
        return tag_column(self._looked(side), self.blocks[side].contains(drawn) if drawn else None)

    def tagged_rows(self, side: int) -> Any:
        """The rows of a side that have a tag, for joins without random blocks; only their files are read."""
        return self._frames[side].where(self.look.sides[side].taken_rows())

    def _looked(self, side: int) -> Any | None:
        stretches = self.look.sides[side]
        return stretches.taken_rows() if stretches.taken else None


def _stretches(plan: Plan, below: Sequence[Files | Small], seed: int) -> list[Stretches]:
    place = float(np.random.default_rng([seed, 2]).random())
    return [
        Stretches(one, place, max(4.0, likely_row_nbytes(schema) / _EXPANSION))
        for schema, one in zip(plan.schemas, below, strict=True)
    ]


def _room(plan: Plan, budget: Budget) -> Room:
    """Rows of each side that the first step of a look may read."""
    dense = plan.condition.driver(Capability.HASHABLE) is None
    most = []
    for schema in plan.schemas:
        rows = DENSE_ROWS if dense else MOST_ROWS
        if budget.limit.bytes is not None:
            rows = min(rows, int(_MEMORY_SHARE * budget.limit.bytes / wide_row_nbytes(schema)))
        elif budget.limit.rows is not None:
            rows = min(rows, budget.limit.rows // 3)
        most.append(max(1, rows))
    return Room(min(LEAST_ROWS, *most), (most[0], most[1]), dense)
