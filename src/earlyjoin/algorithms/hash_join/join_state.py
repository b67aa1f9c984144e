"""What a join on the partitioned table has while it runs: intake, flushes, tasks and clean-up work on it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from earlyjoin.algorithms.hash_join.settings import HashSettings, automatic_partitions, side_number
from earlyjoin.algorithms.hash_join.table.table import PartitionedTable
from earlyjoin.algorithms.matching.settlement import Settlement
from earlyjoin.algorithms.protocol import Context, Matches, Plan, Step
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Bool, Int64
from earlyjoin.state.budget import Account
from earlyjoin.state.rows.sizes import likely_row_nbytes
from earlyjoin.state.rows.store import Rows

if TYPE_CHECKING:
    from earlyjoin.algorithms.hash_join.arriving import Arriving
    from earlyjoin.algorithms.hash_join.rules import DuplicateRule
    from earlyjoin.algorithms.hash_join.tasks import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """In what an algorithm differs, as far as it is a matter of yes or no."""

    freezes: bool = False
    """Is a flushed partition frozen (DHJ, EHJ), or does it take rows again (XJoin, HMJ, RPJ)?"""
    striped: bool = False
    """Do flushed runs have stripes, in which the clean-up can take a partition that does not fit?"""
    build_first: bool = False
    """Is R alone kept in memory, and looked into only once all of it is there (DHJ)?"""


@dataclass(slots=True, eq=False, kw_only=True)
class JoinState:
    """The table, what is known of the inputs, and the work in hand."""

    plan: Plan
    context: Context
    settings: HashSettings
    traits: Traits
    key: BoundPredicate
    settle: Settlement
    one_side: int | None
    """The side whose keys occur once, if there is one."""
    build_side: int
    """R of the papers."""
    expendable: tuple[bool, bool]
    """For each side: is a row of no use once it has matched? One of the one-side may reveal a repeated key."""
    pairs: Int64
    """Where a probe writes the numbers of the rows that it finds."""
    pairs_account: Account
    table: PartitionedTable
    rule: DuplicateRule
    """Which pairs that are found on disk were joined before."""
    ended: list[bool] = field(default_factory=lambda: [False, False])
    arriving: Arriving | None = None
    """The batch in hand."""
    task: Task | None = None
    """Reactive work that was begun and is not done."""

    @property
    def probe_side(self) -> int:
        """S of the papers."""
        return 1 - self.build_side

    def complete(self, side: int) -> Bool:
        """For each partition: has the side ended, with nothing on disk? Rows of the other have met all of it then."""
        on_disk = (self.table.on_disk[side] > 0) | self.table.frozen[side]
        return ~on_disk if self.ended[side] else np.zeros_like(on_disk)

    def keeps_all(self, side: int) -> bool:
        """Are rows kept that have met all that they could meet? Those of the one-side may reveal a repeated key."""
        return self.one_side == side

    def probes(self, side: int) -> bool:
        """Do arriving rows of this side look for partners?"""
        return not self.traits.build_first or (side != self.build_side and self.ended[self.build_side])

    def loaded_side(self, partition: int) -> int:
        """Which side of a partition the clean-up loads: the one-side, an empty one, R, or that with less on disk."""
        if self.one_side is not None:
            return self.one_side
        on_disk = self.table.on_disk[:, partition]
        rows = on_disk + self.table.in_memory[:, partition]
        if not rows.all():
            return int(np.argmin(rows))
        return self.build_side if self.traits.freezes else int(np.argmin(on_disk))

    def settle_pairs(
        self, side: int, mine: Rows, i: Int64, flags: Bool | None, theirs: Rows, j: Int64, their_flags: Bool | None
    ) -> Matches | None:
        """Settle candidate pairs of rows ``i`` of ``side`` and rows ``j`` of the other side."""
        if side == 0:
            return self.settle((mine, theirs), i, j, (flags, their_flags))
        return self.settle((theirs, mine), j, i, (their_flags, flags))

    def guard(self, side: int, partition: int) -> AbstractContextManager[Any]:
        """Keep the thread of a task away from a memory part."""
        return self.task.guard(side, partition) if self.task is not None else nullcontext()

    def task_step(self) -> Step:
        """A piece of the task in work."""
        assert self.task is not None
        step = self.task.step()
        if self.task.done:
            self.task = None
        return step

    def close(self) -> None:
        """Give memory back and remove files. Idempotent."""
        if self.task is not None:
            self.task.close()
        self.task = self.arriving = None
        self.table.close()
        self.pairs_account.clear()
        self.pairs = np.empty((2, 0), dtype=np.int64)


def build_side_of(settings: HashSettings, context: Context) -> int:
    """R of the papers: as set, the one-side of a 1:N join, the smaller input, or the left one."""
    for name in (settings.build_side, settings.one_side):
        side = side_number(name)
        if side is not None:
            return side
    left, right = context.rows_expected or (None, None)
    return 1 if left is not None and right is not None and right < left else 0


def partitions_of(settings: HashSettings, plan: Plan, context: Context) -> int:
    """As set, or from the memory and the size of the smaller input."""
    limit, rows = context.budget.limit, context.rows_expected or (None, None)
    sizes = list(rows)
    if limit.rows is None:
        # Of compressed files the size is too small, of texts the guess at a row may be: the larger one counts.
        guesses = (likely_row_nbytes(schema) for schema in plan.schemas)
        both = zip(context.bytes_expected or (None, None), rows, guesses, strict=True)
        sizes = [max(size or 0, (count or 0) * guess) or None for size, count, guess in both]
    known = [size for size in sizes if size is not None]
    return settings.partitions or automatic_partitions(limit, min(known) if known else None)
