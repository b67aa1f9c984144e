"""The look: a few stretches of both sides joined in this process, for the first rows.

::

    first stretches ──▶ enough rows? ──▶ done
          ▲                 │ no: would enough cost little, as told by what was found so far?
          └──── more ───────┤
                            └ no ──▶ given up: Spark's own join, which has to read everything, is as near

All stretches of one side are joined with all of the other, so what has been given out is one rectangle of rows, which
the bulk leaves out by a bit of their tags. How much is read, and when that is not worth it, is for
:mod:`earlyjoin.spark.early.aiming` to say.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.spark.bulk.base import PREFIXES
from earlyjoin.spark.columns.arrow_forms import collected
from earlyjoin.spark.early.aiming import Room, first_counts, next_counts, probe
from earlyjoin.spark.early.groups import sought_by_key
from earlyjoin.spark.early.joined_rows import joined_rows
from earlyjoin.spark.early.pairing import Pairing
from earlyjoin.spark.early.stretches import Stretches
from earlyjoin.spark.inspecting.plain_files import read_ranges
from earlyjoin.spark.inspecting.scans import FILE
from earlyjoin.spark.inspecting.unchanged import Unchanged, local_path
from earlyjoin.spark.jobs import Jobs
from earlyjoin.state.budget import Account
from earlyjoin.state.rows.sizes import wide_row_nbytes

FIRST_ROWS = 1000
"""Rows that are looked for when nobody says how many."""
_EXPANSION = 8
"""How much larger rows may be in memory than in their files, for the question whether they might not fit."""
_COPIES = 2
"""Rows as Spark sends them, and in one piece."""


class Look:
    """Reads stretches and joins them; what it has given out is ``sides[0].taken × sides[1].taken`` stretches."""

    def __init__(
        self,
        plan: Plan,
        frames: Sequence[Any],
        sides: Sequence[Stretches],
        pairing: Pairing,
        jobs: Jobs,
        account: Account,
        unchanged: Unchanged,
        room: Room,
        stopping: Callable[[], bool],
        plain: Sequence[bool] = (False, False),
    ) -> None:
        """``frames`` have their columns named by position; ``plain`` sides are read without Spark, if possible."""
        self.sides = sides
        self._plain = list(plain)
        self.wanted = FIRST_ROWS
        self.found = 0
        self.over: str | None = None
        """Why it goes no further; None while it may."""
        self.rows_read = [0, 0]
        self._plan, self._frames, self._pairing = plan, frames, pairing
        self._jobs, self._account, self._unchanged = jobs, account, unchanged
        self._room, self._stopping = room, stopping
        self._tables = [schema.empty_table() for schema in plan.schemas]
        self._given = np.zeros(0, dtype=np.bool_)
        """Of the left rows: has a semi join given it out?"""
        self._pending: Generator[pa.RecordBatch] | None = None

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Rows, until as many as wanted are found. Goes on where an earlier call was left."""
        while not self._stopping():
            if self._pending is None and not self._begin_step():
                return
            assert self._pending is not None
            batch = next(self._pending, None)
            if batch is None:
                self._pending = None
            else:
                self.found += batch.num_rows
                yield batch

    def close(self) -> None:
        """Let go of what was read. Idempotent."""
        self.over = self.over or "it was ended"
        if self._pending is not None:
            self._pending.close()
            self._pending = None
        self._tables = [table.slice(0, 0) for table in self._tables]
        self._account.clear()

    def _begin_step(self) -> bool:
        """Read what comes next; False when there is nothing to be read, or it would not pay."""
        if self.over is not None or self.found >= self.wanted:
            return False
        counts = self._next_counts()
        if isinstance(counts, str):
            self.over = counts
            return False
        read = self._read_both(counts)
        if any(side.taken for side in self.sides):
            self._unchanged.check()  # since the step before, of which rows are out
        fresh = [table for table in read if isinstance(table, pa.Table)]
        if len(fresh) < len(read):
            self.over = next(reason for reason in read if isinstance(reason, str))
            return False
        if not self._accept(counts, fresh):
            return False
        self._pending = self._joined([len(table) for table in fresh])
        return True

    def _next_counts(self) -> list[int] | str:
        """How many stretches of each side to have read after the next step, or why there is none."""
        if self.sides[0].taken:
            return next_counts(self.sides, self.wanted, self.found)
        probes = [
            partial(probe, frame, side, plain=plain)
            for frame, side, plain in zip(self._frames, self.sides, self._plain, strict=True)
            if side.can_probe
        ]
        if probes:
            self._unchanged.remember(path for side in self.sides for path in side.paths(0, 1))
            self._jobs.together(probes)
        return first_counts(self.sides, self.wanted, self._room, self._plan.how)

    # Reading

    def _read_both(self, counts: list[int]) -> list[pa.Table | str]:
        """What comes next of both sides: at the same time, or first that which has the keys for the other."""
        sought = next((at for at, side in enumerate(self.sides) if side.by_key), None)
        if sought is None:
            return self._jobs.together([partial(self._read, side, count) for side, count in enumerate(counts)])
        have = 1 - sought
        read = self._jobs.tagged(lambda: self._read(have, counts[have]))
        if isinstance(read, str):
            return [read, read]
        groups = self._jobs.tagged(lambda: self._groups_of(sought, read))
        return [read, groups] if sought else [groups, read]

    def _groups_of(self, side: int, others: pa.Table) -> pa.Table | str:
        """All groups of the keys that rows of the other side have; or why they cannot be had."""
        frame = self._frames[side]
        self._unchanged.remember(frame.inputFiles())
        positions = self._pairing.positions[1 - side]
        keys = others.select(positions).rename_columns([f"{PREFIXES[1 - side]}{at}" for at in positions])
        found = sought_by_key(self._plan, frame, keys.group_by(keys.column_names).aggregate([]), self._jobs.session)
        if found is None:
            return "Spark would compute all groups to find those of a few keys"
        most = self._most_rows(side)
        table = collected(found.limit(most + 1))
        return table if len(table) <= most else "the memory is full"

    def _read(self, side: int, count: int) -> pa.Table | str:
        """The stretches that come after those taken; or why they cannot be had."""
        stretches = self.sides[side]
        first = stretches.taken
        if count == first:
            return self._plan.schemas[side].empty_table()
        self._unchanged.remember(stretches.paths(first, count))
        if stretches.known is not None and count == 1:
            known = self._read_here(side, count)
            return known if known is not None else "the rows that pass cannot be read without Spark"
        frame = self._frames[side].where(stretches.contains(first, count))
        if not stretches.limited or stretches.rows is None:
            return self._all_of(frame, side, count)
        if stretches.may_repeat and self._repeats(side, count):
            return "a file is read more than once"
        if self._plain[side] and (table := self._read_here(side, count)) is not None:
            return table
        if stretches.rows * (count - first) > self._most_rows(side):
            return "the memory is full"
        # The limit changes nothing but that reading stops there.
        return collected(frame.limit(stretches.rows * (count - first)))

    def _read_here(self, side: int, count: int) -> pa.Table | None:
        """The same without a job; None, from now on, when Spark has to read them."""
        stretches, limit = self.sides[side], self._account.limit.bytes
        ranges = [
            (Path(local_path(path) or path), start, stop)
            for path, start, stop in stretches.ranges(stretches.taken, count)
        ]
        most = None if limit is None else max(0, limit - self._account.bytes) // (2 * _COPIES)
        table = read_ranges(ranges, self._plan.schemas[side], most, stretches.known)
        self._plain[side] = table is not None and stretches.known is None
        if stretches.known is not None:
            self._unchanged.check()  # these were numbers of rows of the file as it was
            stretches.known = None
        return table

    def _repeats(self, side: int, count: int) -> bool:
        """Is a file among those to be read that comes more than once? No column is read for that."""
        stretches = self.sides[side]
        first = stretches.taken
        beginnings = self._frames[side].where(stretches.beginnings(first, count)).select(FILE)
        files = [row[0] for row in beginnings.collect()]  # those without rows have no beginning
        return len(set(files)) < len(files)

    def _all_of(self, frame: Any, side: int, count: int) -> pa.Table | str:
        """Whatever comes out of whole files: no more than the memory has room for."""
        stretches, row_nbytes = self.sides[side], self._row_nbytes(side)
        most = self._most_rows(side)
        cost = stretches.cost_nbytes(count) - stretches.cost_nbytes(stretches.taken)
        # A limit costs a step of its own, so it is asked for only where it may be needed.
        if _EXPANSION * stretches.passing * cost <= most * row_nbytes / 2:
            return collected(frame)
        table = collected(frame.limit(most + 1))
        return table if len(table) <= most else "the memory is full"

    def _most_rows(self, side: int) -> int:
        """Of a side, in one step: half of what is free, since both are read at once."""
        limit = self._account.limit
        if limit.bytes is None:
            return max(0, (limit.rows or 0) - self._account.rows) // 2
        return max(0, limit.bytes - self._account.bytes) // (2 * _COPIES * self._row_nbytes(side))

    def _row_nbytes(self, side: int) -> int:
        """Of those that were read; before, more than most have."""
        table = self._tables[side]
        return 1 + table.nbytes // len(table) if len(table) else wide_row_nbytes(self._plan.schemas[side])

    def _accept(self, counts: list[int], fresh: list[pa.Table]) -> bool:
        if not self._account.try_reserve(_COPIES * sum(t.nbytes for t in fresh), sum(map(len, fresh))):
            self.over = "the memory is full"
            return False
        # From here on the pairs are the look's to give out, whoever stops it.
        for side, (count, table) in enumerate(zip(counts, fresh, strict=True)):
            self.sides[side].taken = count
            self.rows_read[side] += len(table)
            renamed = table.rename_columns(self._plan.schemas[side].names)
            self._tables[side] = pa.concat_tables([self._tables[side], renamed]).combine_chunks()
        return True

    # Joining

    def _joined(self, fresh: list[int]) -> Generator[pa.RecordBatch]:
        """New left rows with all right ones, then old left rows with new right ones."""
        left, right = self._tables
        old_left, old_right = len(left) - fresh[0], len(right) - fresh[1]
        self._given = np.concatenate((self._given, np.zeros(fresh[0], dtype=np.bool_)))
        rectangles = [(old_left, fresh[0], 0, len(right)), (0, old_left, old_right, fresh[1])]
        for first_left, lefts, first_right, rights in rectangles:
            if not lefts or not rights:
                continue
            tables = left.slice(first_left, lefts), right.slice(first_right, rights)
            with closing(self._pairing.found(*tables)) as pieces:
                for i, j in pieces:
                    if self._stopping():
                        return
                    yield from self._rows(i + first_left, j + first_right)

    def _rows(self, i: Int64, j: Int64) -> Iterator[pa.RecordBatch]:
        if self._plan.how is not JoinType.SEMI:
            yield from joined_rows(self._plan, self._tables, i, j)
            return
        matched = np.unique(i)
        matched = matched[~self._given[matched]]
        self._given[matched] = True
        yield from joined_rows(self._plan, self._tables, matched, None)
