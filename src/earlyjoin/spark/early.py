"""The early phase: a few blocks of both sides, joined in this process while nothing else runs.

::

    glance ──▶ round 1 ──▶ round 2 (twice as many new blocks) ──▶ … ──▶ bulk
    first rows   4 blocks a side, drawn at random; all blocks drawn so far are joined with each other

Blocks are collected as Arrow and joined by the core's operators: no shuffle, no task that waits for another. A round is
started only while all rounds together take a small part of the time that the bulk will take, which is told from how
long a part of the files took to read. Spark runs jobs in the order in which they come, so rounds beside a running bulk
would only wait for it: they come before it. Where files are so few that a block costs as much as a table, only the keys
of random blocks are read, to estimate the size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.join_types import JoinType
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.predicates.keys import Int64
from earlyjoin.spark.blocks import GLANCE_BIT, Blocks, Glance, glance_rows
from earlyjoin.spark.bulk import PREFIXES, column_names, tag_name
from earlyjoin.spark.estimating import BlockEstimate
from earlyjoin.spark.exclusion import Tags, fresh_pairs
from earlyjoin.spark.jobs import Jobs
from earlyjoin.spark.joined_rows import joined_rows
from earlyjoin.spark.pairing import Pairing
from earlyjoin.spark.session import functions
from earlyjoin.state.budget import Account
from earlyjoin.state.clock import Clock

FIRST_BLOCKS = 4
GROWTH = 2
COUNTED_BLOCKS = 24
"""Blocks of a side of which only keys are read."""
JOIN_PER_READ = 4.0
"""How much longer than reading its inputs a join with a shuffle takes, at least."""
MOST_SHARE = 0.4
"""A first round that has to read more of the files than this costs too much, unless they are small."""
SMALL_BYTES = 32 * 2**20
_BLOCK = "\0block"


@dataclass(slots=True)
class Drawn:
    """What was read of the blocks of one side that were drawn at random."""

    rows: pa.Table
    block: Int64
    """For each row the place of its block among those drawn."""
    tags: Tags
    """For each row whether the glance had it."""

    def __add__(self, other: Drawn) -> Drawn:
        return Drawn(
            pa.concat_tables([self.rows, other.rows]).combine_chunks(),
            np.concatenate((self.block, other.block)),
            np.concatenate((self.tags, other.tags)),
        )


class Early:
    """Joins blocks and remembers which; ``frames`` are both sides with their columns named by position."""

    def __init__(
        self,
        plan: Plan,
        frames: Sequence[Any],
        blocks: Sequence[Blocks],
        pairing: Pairing,
        jobs: Jobs,
        account: Account,
        clock: Clock,
        share: float,
    ) -> None:
        self._plan = plan
        self._frames = frames
        self.blocks = blocks
        self._pairing = pairing
        self._jobs = jobs
        self._account = account
        self._clock = clock
        self._share = share
        self.glances: list[Glance | None] = [None, None]
        self.chosen: list[list[int]] = [[], []]
        """Numbers of the blocks that were drawn and joined."""
        self.rows_read = [0, 0]
        self.estimate = BlockEstimate((blocks[0].count, blocks[1].count))
        self._drawn: list[Drawn | None] = [None, None]
        self._too_few_files: str | None = None
        self._given = np.zeros(0, dtype=np.bool_)
        """Of the left rows drawn: has a semi join given it out?"""

    @property
    def why_no_estimate(self) -> str | None:
        """Why the size cannot be told; None when it can."""
        if self.estimate.reason is not None and self._too_few_files is not None:
            return self._too_few_files
        return self.estimate.reason

    def run(self, stopping: Callable[[], bool]) -> Iterator[pa.RecordBatch]:
        """Rows as they are found. When this ends, or is closed, the tags are settled."""
        start_s = self._clock.now()
        if self._plan.how is not JoinType.SEMI:  # a left row would be found again among the blocks drawn
            yield from self._glance()
        new = FIRST_BLOCKS
        spent_s = expected_s = 0.0
        while not stopping() and self._may_draw(new, spent_s, expected_s):
            round_s = self._clock.now()
            shares = [self.blocks[side].share(self._next(side, new)) for side in (0, 1)]
            batches = self._round(new)
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
        if self._too_few_files is not None and self._plan.how is JoinType.INNER and not stopping():
            self._count_keys()

    # The glance

    def _glance(self) -> Iterator[pa.RecordBatch]:
        rows = glance_rows([blocks.nbytes for blocks in self.blocks])
        glances = [blocks.glance(rows) for blocks in self.blocks]
        if None in glances:
            return
        tables = self._jobs.together(
            [partial(self._read_glance, side, glance) for side, glance in enumerate(glances) if glance is not None]
        )
        if not self._book(tables):
            return
        # From here on the pairs are this phase's to give out, whoever stops it.
        self.glances = list(glances)
        self._count(tables)
        i, j = self._pairing.pairs(*tables)
        yield from joined_rows(self._plan, tables, i, j)
        self._account.clear()

    def _read_glance(self, side: int, glance: Glance) -> pa.Table:
        frame = self._frames[side].where(glance.contains())
        # The limit changes nothing but that reading stops there.
        table: pa.Table = (frame if glance.rows is None else frame.limit(glance.rows)).toArrow()
        return table.combine_chunks()

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

    def _round(self, new: int) -> Iterator[pa.RecordBatch] | None:
        chosen = [self._next(side, new) for side in (0, 1)]
        fresh = self._jobs.together([partial(self._read_blocks, side, some) for side, some in enumerate(chosen)])
        if not self._book([drawn.rows for drawn in fresh]):
            return None
        return self._join_round(chosen, fresh)

    def _join_round(self, chosen: list[list[int]], fresh: list[Drawn]) -> Iterator[pa.RecordBatch]:
        old_left, old_right = self._drawn
        all_left = fresh[0] if old_left is None else old_left + fresh[0]
        all_right = fresh[1] if old_right is None else old_right + fresh[1]
        self._count([drawn.rows for drawn in fresh])
        for side in (0, 1):
            self.chosen[side] += chosen[side]
        self._drawn = [all_left, all_right]
        self._given = np.concatenate((self._given, np.zeros(len(fresh[0].rows), dtype=np.bool_)))
        first = len(all_left.rows) - len(fresh[0].rows)
        i, j = self._pairing.pairs(fresh[0].rows, all_right.rows)
        pairs = [(i + first, j)]
        if old_left is not None:
            before = len(all_right.rows) - len(fresh[1].rows)
            i, j = self._pairing.pairs(old_left.rows, fresh[1].rows)
            pairs.append((i, j + before))
        self._update(all_left, all_right, pairs)
        for i, j in pairs:
            yield from self._fresh_rows(all_left, i, all_right, j)

    def _read_blocks(self, side: int, chosen: list[int]) -> Drawn:
        f, blocks, frame = functions(), self.blocks[side], self._frames[side]
        width = len(self._plan.schemas[side])
        if not chosen:
            nothing = self._plan.schemas[side].empty_table().rename_columns(column_names(self._plan, side))
            return Drawn(nothing, np.zeros(0, np.int64), np.zeros(0, np.int8))
        glance = self.glances[side]
        seen = f.when(glance.contains(), f.lit(GLANCE_BIT)).otherwise(f.lit(0)) if glance is not None else f.lit(0)
        read = frame.where(blocks.read_filter(chosen)).select(
            "*", blocks.number(chosen).alias(_BLOCK), seen.cast("tinyint").alias(tag_name(side))
        )
        table = read.toArrow().combine_chunks()
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

    # Keys alone

    def _count_keys(self) -> None:
        """Few large files: reading their keys alone costs little. Such blocks tell the size, and give out no rows."""
        chosen = [self._next(side, COUNTED_BLOCKS) for side in (0, 1)]
        read = self._jobs.together([partial(self._read_keys, side, some) for side, some in enumerate(chosen)])
        if self._book([keys for keys, _ in read]):
            i, j = self._pairing.key_pairs(*(keys for keys, _ in read))
            shape = (len(chosen[0]), len(chosen[1]))
            flat = read[0][1][i] * shape[1] + read[1][1][j]
            self.estimate.update(np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape))
            self._too_few_files = None
        self._account.clear()

    def _read_keys(self, side: int, chosen: list[int]) -> tuple[pa.Table, Int64]:
        blocks, frame = self.blocks[side], self._frames[side]
        names = [f"{PREFIXES[side]}{position}" for position in self._pairing.positions[side]]
        number = blocks.number(chosen).alias(_BLOCK)
        table = frame.where(blocks.read_filter(chosen)).select(*names, number).toArrow().combine_chunks()
        return table.select(range(len(names))), self._places(side, chosen, table.column(len(names)))

    # Counting

    def _update(self, left: Drawn, right: Drawn, pairs: list[tuple[Int64, Int64]]) -> None:
        shape = (len(self.chosen[0]), len(self.chosen[1]))
        cells = np.zeros(shape, dtype=np.int64)
        before = self.estimate.cells
        cells[: before.shape[0], : before.shape[1]] = before
        for i, j in pairs:
            flat = left.block[i] * shape[1] + right.block[j]
            cells += np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)
        self.estimate.update(cells)

    def _fresh_rows(self, left: Drawn, i: Int64, right: Drawn, j: Int64) -> Iterator[pa.RecordBatch]:
        if self._plan.how is JoinType.SEMI:
            matched = np.unique(i)
            matched = matched[~self._given[matched]]
            self._given[matched] = True
            yield from joined_rows(self._plan, (left.rows, right.rows), matched, None)
            return
        fresh = fresh_pairs(left.tags[i], right.tags[j])
        yield from joined_rows(self._plan, (left.rows, right.rows), i[fresh], j[fresh])

    # Memory

    def _book(self, tables: Sequence[pa.Table]) -> bool:
        """Is there memory for these, and for the rows that come of them?"""
        return self._account.try_reserve(2 * sum(t.nbytes for t in tables), sum(len(t) for t in tables))

    def _count(self, tables: Sequence[pa.Table]) -> None:
        for side, table in enumerate(tables):
            self.rows_read[side] += len(table)
