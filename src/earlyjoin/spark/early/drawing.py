"""Random blocks of both sides, joined in this process: they tell the size of the whole result, and give rows as well.

::

    round 1 ──▶ round 2 (twice as many new blocks) ──▶ … ──▶ bulk
    4 blocks a side; all blocks drawn so far are joined with each other

Blocks are collected as Arrow and joined by the core's operators: no shuffle, no task that waits for another. A round is
started only while all rounds together take a small part of the time that the bulk will take, which is told from how
long a part of the files took to read. Spark runs jobs in the order in which they come, so rounds beside a running bulk
would only wait for it: they come before it. Where files are so few that a block costs as much as a table, only the keys
of random blocks are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.protocol import Plan
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.spark.bulk.base import PREFIXES, column_names, tag_name
from earlyjoin.spark.columns.arrow_forms import collected
from earlyjoin.spark.early.blocks import LOOK_BIT, Blocks
from earlyjoin.spark.early.estimating import BlockEstimate
from earlyjoin.spark.early.exclusion import Tags, fresh_pairs
from earlyjoin.spark.early.joined_rows import joined_rows
from earlyjoin.spark.early.key_evidence import KeyEvidence, equal_places
from earlyjoin.spark.early.pairing import Pairing
from earlyjoin.spark.early.stretches import Stretches
from earlyjoin.spark.inspecting.unchanged import Unchanged
from earlyjoin.spark.jobs import Jobs
from earlyjoin.spark.session import functions
from earlyjoin.state.budget import Account
from earlyjoin.state.clock import Clock
from earlyjoin.state.rows.sizes import likely_row_nbytes, wide_row_nbytes

FIRST_BLOCKS = 4
GROWTH = 2
COUNTED_BLOCKS = 24
"""Blocks of a side of which only keys are read."""
MOST_COUNTED = 50_000_000
"""Pairs of keys that are counted: more take longer than an estimate is worth."""
JOIN_PER_READ = 4.0
"""How much longer than reading its inputs a join with a shuffle takes, at least."""
MOST_SHARE = 0.4
"""A first round that has to read more of the files than this costs too much, unless they are small."""
SMALL_BYTES = 32 * 2**20
_BLOCK = "\0block"
_LIMIT_FROM = 50
"""How many times as large as rows are likely to be the free memory is, where none of them are counted off."""
_COPIES = 3
"""Rows as Spark sends them, in one piece, and what comes of them."""


@dataclass(slots=True)
class Drawn:
    """What was read of the blocks of one side that were drawn at random."""

    rows: pa.Table
    block: Int64
    """For each row the place of its block among those drawn."""
    tags: Tags
    """For each row whether the look had it."""

    def __add__(self, other: Drawn) -> Drawn:
        return Drawn(
            pa.concat_tables([self.rows, other.rows]).combine_chunks(),
            np.concatenate((self.block, other.block)),
            np.concatenate((self.tags, other.tags)),
        )


class Draws:
    """Draws blocks, joins them and remembers which; ``frames`` are both sides with their columns named by position."""

    def __init__(
        self,
        plan: Plan,
        frames: Sequence[Any],
        blocks: Sequence[Blocks],
        looked: Sequence[Stretches],
        pairing: Pairing,
        jobs: Jobs,
        account: Account,
        unchanged: Unchanged,
        clock: Clock,
        share: float,
    ) -> None:
        self.blocks = blocks
        self.chosen: list[list[int]] = [[], []]
        """Numbers of the blocks that were drawn and joined."""
        self.rows_read = [0, 0]
        self.estimate = BlockEstimate((blocks[0].count, blocks[1].count))
        self._evidence = KeyEvidence((blocks[0].files, blocks[1].files), equal_places(plan, pairing.positions))
        self._plan, self._frames, self._looked, self._pairing = plan, frames, looked, pairing
        self._jobs, self._account, self._unchanged = jobs, account, unchanged
        self._clock, self._share = clock, share
        self._drawn: list[Drawn | None] = [None, None]
        self._cells = np.zeros((0, 0), dtype=np.int64)
        self._too_few_files: str | None = None

    @property
    def why_no_estimate(self) -> str | None:
        """Why the size cannot be told; None when it can."""
        if self.estimate.reason is not None and self._too_few_files is not None:
            return self._too_few_files
        return self.estimate.reason

    def rows(self, stopping: Callable[[], bool]) -> Iterator[pa.RecordBatch]:
        """Rows as they are found. When this ends, or is closed, the tags are settled."""
        start_s = self._clock.now()
        new = FIRST_BLOCKS
        spent_s = expected_s = 0.0
        while not stopping() and self._may_draw(new, spent_s, expected_s):
            round_s = self._clock.now()
            shares = [self.blocks[side].share(self._next(side, new)) for side in (0, 1)]
            batches = self._round(new, stopping)
            if batches is None:
                break
            yield from batches
            now_s = self._clock.now()
            read = sum(share * blocks.nbytes for share, blocks in zip(shares, self.blocks, strict=True))
            whole = sum(blocks.nbytes for blocks in self.blocks)
            expected_s = JOIN_PER_READ * (now_s - round_s) * (whole / read if read else 1.0)
            spent_s = now_s - start_s
            new *= GROWTH
        self._drawn = [None, None]
        self._account.clear()
        if self._too_few_files is not None and not stopping():
            self.count_keys(stopping)

    # Rounds

    def _next(self, side: int, count: int) -> list[int]:
        blocks = self.blocks[side]
        first = len(self.chosen[side])
        return [int(block) for block in blocks.order[first : first + count]]

    def _may_draw(self, new: int, spent_s: float, expected_s: float) -> bool:
        chosen = [self._next(side, new) for side in (0, 1)]
        if not any(chosen):
            return False
        if not self.chosen[0]:
            for name, blocks, some in zip(("left", "right"), self.blocks, chosen, strict=True):
                if blocks.nbytes > SMALL_BYTES and blocks.share(some) > MOST_SHARE:
                    self._too_few_files = (
                        f"the {name} input is in too few files ({blocks.files}) for random blocks at little cost"
                    )
            return self._too_few_files is None and self._share > 0
        # A round that reads twice as much takes about twice as long as all before.
        return spent_s * (1 + GROWTH) <= self._share * expected_s

    def _round(self, new: int, stopping: Callable[[], bool]) -> Iterator[pa.RecordBatch] | None:
        chosen = [self._next(side, new) for side in (0, 1)]
        if not self._would_fit(chosen):
            return None
        fresh = self._jobs.together([partial(self._read_blocks, side, some) for side, some in enumerate(chosen)])
        self._unchanged.check()  # since the rounds before, and since the look
        too_many = any(len(drawn.rows) > self._most_rows(side) for side, drawn in enumerate(fresh))
        if too_many or not self._book([drawn.rows for drawn in fresh]):
            return None
        return self._join_round(chosen, fresh, stopping)

    def _join_round(
        self, chosen: list[list[int]], fresh: list[Drawn], stopping: Callable[[], bool]
    ) -> Iterator[pa.RecordBatch]:
        old_left, old_right = self._drawn
        left = fresh[0] if old_left is None else old_left + fresh[0]
        right = fresh[1] if old_right is None else old_right + fresh[1]
        for side in (0, 1):
            self.chosen[side] += chosen[side]
            self.rows_read[side] += len(fresh[side].rows)
        self._drawn = [left, right]
        cells = self._cells_so_far()
        new_left, new_right = len(left.rows) - len(fresh[0].rows), len(right.rows) - len(fresh[1].rows)
        for first_left, lefts, first_right, rights in (
            (new_left, fresh[0].rows, 0, right.rows),
            (0, left.rows.slice(0, new_left), new_right, fresh[1].rows),
        ):
            if not len(lefts) or not len(rights):
                continue
            with closing(self._pairing.found(lefts, rights)) as pieces:
                for i, j in pieces:
                    if stopping():
                        return
                    i, j = i + first_left, j + first_right
                    _count(cells, left.block[i], right.block[j])
                    unseen = fresh_pairs(left.tags[i], right.tags[j])
                    yield from joined_rows(self._plan, (left.rows, right.rows), i[unseen], j[unseen])
        self._cells = cells
        keys = [drawn.rows.select(places) for drawn, places in zip((left, right), self._pairing.positions, strict=True)]
        if cells.size >= self.estimate.cells.size:  # keys alone may have told more
            self.estimate.update(cells, self._evidence.of((keys[0], keys[1]), (left.block, right.block)))

    def _read_blocks(self, side: int, chosen: list[int]) -> Drawn:
        f, blocks, frame = functions(), self.blocks[side], self._frames[side]
        width = len(self._plan.schemas[side])
        if not chosen:
            nothing = self._plan.schemas[side].empty_table().rename_columns(column_names(self._plan, side))
            return Drawn(nothing, np.zeros(0, np.int64), np.zeros(0, np.int8))
        self._unchanged.remember(blocks.paths(chosen))
        seen = f.when(self._looked[side].taken_rows(), f.lit(LOOK_BIT)).otherwise(f.lit(0))
        read = frame.where(blocks.read_filter(chosen)).select(
            "*", blocks.number(chosen).alias(_BLOCK), seen.cast("tinyint").alias(tag_name(side))
        )
        if _LIMIT_FROM * blocks.rows_nbytes(chosen) > self._free_nbytes:  # rows may be far larger than their files
            read = read.limit(self._most_rows(side) + 1)
        table = collected(read).combine_chunks()
        return Drawn(
            table.select(range(width)),
            self._places(side, chosen, table.column(width)),
            table.column(width + 1).to_numpy().astype(np.int8),
        )

    def _places(self, side: int, chosen: list[int], numbers: pa.ChunkedArray) -> Int64:
        """Places among all blocks drawn, from the numbers of blocks."""
        places = np.full(self.blocks[side].count, -1, dtype=np.int64)
        places[chosen] = np.arange(len(chosen)) + len(self.chosen[side])
        found: Int64 = places[numbers.to_numpy()]
        return found

    def _cells_so_far(self) -> Int64:
        """Matches of the pairs of blocks of all rounds before, and room for those of this one."""
        cells = np.zeros((len(self.chosen[0]), len(self.chosen[1])), dtype=np.int64)
        cells[: self._cells.shape[0], : self._cells.shape[1]] = self._cells
        return cells

    # Keys alone

    def count_keys(self, stopping: Callable[[], bool]) -> None:
        """Read the keys of random blocks alone, which costs little also where files are few. They give out no rows."""
        if self.chosen[0]:
            return  # the rounds have told, or will
        chosen = [self._next(side, COUNTED_BLOCKS) for side in (0, 1)]
        if not self._would_fit(chosen, self._key_share):
            self.estimate.reason = "the memory has no room for the keys of random blocks"
            return
        read = self._jobs.together([partial(self._read_keys, side, some) for side, some in enumerate(chosen)])
        (left, left_block), (right, right_block) = read
        if not self._book([left, right]):
            self._account.clear()
            self.estimate.reason = "the memory has no room for the keys of random blocks"
            return
        cells, pairs = np.zeros((len(chosen[0]), len(chosen[1])), dtype=np.int64), 0
        with closing(self._pairing.found_keys(left, right)) as pieces:
            for i, j in pieces:
                pairs += len(i)
                if stopping() or pairs > MOST_COUNTED:
                    self.estimate.reason = "the keys of random blocks match too often to be counted at little cost"
                    break
                _count(cells, left_block[i], right_block[j])
            else:
                self.estimate.update(cells, self._evidence.of((left, right), (left_block, right_block)))
                self._too_few_files = None
        self._account.clear()

    def _read_keys(self, side: int, chosen: list[int]) -> tuple[pa.Table, Int64]:
        blocks, frame = self.blocks[side], self._frames[side]
        self._unchanged.remember(blocks.paths(chosen))
        names = [f"{PREFIXES[side]}{position}" for position in self._pairing.positions[side]]
        number = blocks.number(chosen).alias(_BLOCK)
        table = collected(frame.where(blocks.read_filter(chosen)).select(*names, number)).combine_chunks()
        return table.select(range(len(names))), self._places(side, chosen, table.column(len(names)))

    # Memory

    @property
    def _free_nbytes(self) -> float:
        limit = self._account.limit.bytes
        return math.inf if limit is None else float(limit - self._account.bytes)

    def _most_rows(self, side: int) -> int:
        """Of a side, in one round: half of what is free, since both are read at once."""
        limit = self._account.limit
        if limit.bytes is None:
            return max(0, (limit.rows or 0) - self._account.rows) // 2
        return int(self._free_nbytes / (2 * _COPIES * wide_row_nbytes(self._plan.schemas[side])))

    @property
    def _key_share(self) -> float:
        """How much of a row its keys are, about."""
        shares = []
        for schema, positions in zip(self._plan.schemas, self._pairing.positions, strict=True):
            keys = pa.schema([schema.field(position) for position in positions])
            shares.append(likely_row_nbytes(keys) / likely_row_nbytes(schema))
        return max(shares)

    def _would_fit(self, chosen: list[list[int]], share: float = 1.0) -> bool:
        """Is there likely to be room for these blocks, or for this share of their columns?"""
        nbytes = share * sum(blocks.rows_nbytes(some) for blocks, some in zip(self.blocks, chosen, strict=True))
        if not self._account.try_reserve(round(_COPIES * nbytes)):
            return False
        self._account.release(round(_COPIES * nbytes))  # what they really take is booked when they are there
        return True

    def _book(self, tables: Sequence[pa.Table]) -> bool:
        """Is there memory for these, and for the rows that come of them?"""
        return self._account.try_reserve(_COPIES * sum(t.nbytes for t in tables), sum(len(t) for t in tables))


def _count(cells: Int64, left: Int64, right: Int64) -> None:
    """Add the pairs to the matches of their blocks."""
    flat = left * cells.shape[1] + right
    cells += np.bincount(flat, minlength=cells.size).reshape(cells.shape)
