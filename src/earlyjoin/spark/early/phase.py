"""The early phase: what is joined in this process before Spark's own join begins.

::

    look ──▶ random blocks ──▶ bulk
    first rows   the size of the whole, with an interval, and more rows

The look stops once it has found the rows that are wanted. Random blocks are drawn for inner joins alone, whose size can
be told from them, and only for whoever takes all rows: somebody who asked for a few is not kept waiting for a number.
What either has given out is marked in the tags of the rows (see :mod:`earlyjoin.spark.early.exclusion`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.predicates.base import Capability
from earlyjoin.spark.early.aiming import Room, side_to_send
from earlyjoin.spark.early.blocks import Blocks, tag_column
from earlyjoin.spark.early.drawing import Draws
from earlyjoin.spark.early.looking import Look
from earlyjoin.spark.early.pairing import Pairing
from earlyjoin.spark.early.stretches import Stretches
from earlyjoin.spark.inspecting.plain_files import files_here, has_one_meaning
from earlyjoin.spark.inspecting.scans import Files, Groups, Small
from earlyjoin.spark.inspecting.unchanged import Unchanged
from earlyjoin.spark.jobs import Jobs
from earlyjoin.spark.options import SparkOptions
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.clock import Clock
from earlyjoin.state.rows.sizes import likely_row_nbytes, wide_row_nbytes

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
        below: Sequence[Files | Small | Groups],
        pairing: Pairing,
        jobs: Jobs,
        budget: Budget,
        unchanged: Unchanged,
        clock: Clock,
        options: SparkOptions,
        stopping: Callable[[], bool],
    ) -> None:
        self._frames, self._how, self._stopping = frames, plan.how, stopping
        # Behind Spark Connect files are those of the server, wherever it is.
        plain = [not jobs.connect and _is_plain(*one) for one in zip(frames, below, plan.schemas, strict=True)]
        sides = _stretches(plan, below, options.seed)
        for side, here in zip(sides, plain, strict=True):
            if here:
                side.count_rows()
        self.blocks = [Blocks(one, options.seed, at) for at, one in enumerate(below) if not isinstance(one, Groups)]
        """Of both sides; there are none to be drawn where one of them has none."""
        account = budget.account("rows of the first look")
        self.look = Look(
            plan,
            frames,
            sides,
            pairing,
            jobs,
            account,
            unchanged,
            _room(plan, budget, [here and not side.filtered for here, side in zip(plain, sides, strict=True)]),
            stopping,
            plain,
        )
        self.draws: Draws | None = None
        if plan.how is JoinType.INNER and len(self.blocks) == len(below):
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


def _is_plain(frame: Any, below: Files | Small | Groups, schema: pa.Schema) -> bool:
    """Can the rows of a side be read without Spark?"""
    if not isinstance(below, Files) or not below.plain or not has_one_meaning(schema):
        return False
    return files_here(frame, below.paths) is not None


def _stretches(plan: Plan, below: Sequence[Files | Small | Groups], seed: int) -> list[Stretches]:
    place = float(np.random.default_rng([seed, 2]).random())
    return [
        Stretches(one, place, max(4.0, likely_row_nbytes(schema) / _EXPANSION))
        for schema, one in zip(plan.schemas, below, strict=True)
    ]


def _room(plan: Plan, budget: Budget, plain: Sequence[bool]) -> Room:
    """Rows of each side that the first step of a look may read.

    What Spark sends has to be expected before any row was seen; what is read here is measured on the way.
    """
    dense = plan.condition.driver(Capability.HASHABLE) is None
    most, most_here = [], []
    for schema, here in zip(plan.schemas, plain, strict=True):
        most_here.append(_most_rows(budget.limit, likely_row_nbytes(schema), dense=dense))
        most.append(most_here[-1] if here else _most_rows(budget.limit, wide_row_nbytes(schema), dense=dense))
    return Room(min(LEAST_ROWS, *most), (most[0], most[1]), (most_here[0], most_here[1]), dense, all(plain))


def _most_rows(limit: MemoryLimit, row_nbytes: int, *, dense: bool) -> int:
    rows = DENSE_ROWS if dense else MOST_ROWS
    if limit.bytes is not None:
        rows = min(rows, int(_MEMORY_SHARE * limit.bytes / row_nbytes))
    elif limit.rows is not None:
        rows = min(rows, limit.rows // 3)
    return max(1, rows)
