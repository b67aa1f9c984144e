"""Rows on their way into the table; see :mod:`~earlyjoin.algorithms.hash_join.arriving` for the way they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.hash_join.arriving import Arriving, Stage, chosen_rows, cut
from earlyjoin.algorithms.hash_join.one_side import refuse_repeated
from earlyjoin.algorithms.hash_join.patchwork import combined
from earlyjoin.algorithms.hash_join.table.partitioning import Piece
from earlyjoin.algorithms.matching.admission import admit
from earlyjoin.algorithms.matching.settlement import one_sided
from earlyjoin.algorithms.protocol import Step
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.hash_index import Cursor
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.rows.store import BatchRows, one_batch
from earlyjoin.state.snapshot import Snapshot

if TYPE_CHECKING:
    from earlyjoin.algorithms.hash_join.operator import PartitionedHashJoin

_PIECE_PART = 8
"""A piece of an arriving batch takes at most one in so many parts of the memory."""


class Intake:
    """Takes one batch after the other into the table of a join, a bounded step at a time."""

    def __init__(self, join: PartitionedHashJoin) -> None:
        self._join, self._table, self._context = join, join.table, join.context
        self._working = join.table.memory.account("the arriving batch")
        self.task: Arriving | None = None
        """The batch in hand."""

    def begin(self, side: int, batch: pa.RecordBatch) -> None:
        """A batch has arrived."""
        self._context.counters.rows_in[side] += batch.num_rows
        self.task = Arriving(side, batch)

    @property
    def first_tick(self) -> int | None:
        """Stamp of the first row of the piece in hand, if there is one."""
        return self.task.first_tick if self.task is not None and self.task.piece is not None else None

    @property
    def rows_in_hand(self) -> int:
        """Rows of the batch in hand that may not be in the table yet."""
        return self.task.batch.num_rows - self.task.offset if self.task is not None else 0

    def step(self) -> Step:
        """A bounded piece of the work on the batch in hand."""
        task = self.task
        assert task is not None
        if task.keys is None:
            return self._prepare(task)
        if task.unmatched is not None:
            return self._next_invalid(task, task.unmatched)
        if task.piece is None:
            if task.offset >= task.batch.num_rows:
                self.task = None
                self._working.clear()
                return None
            if not self._take_piece(task):
                return self._join.room.step(task.piece_nbytes)
        assert task.piece is not None
        if task.stage is Stage.PROBE:
            return self._probe_piece(task, task.piece)
        if task.stage is Stage.PASS:
            return self._pass_unmatched(task, task.piece)
        return self._insert_piece(task, task.piece)

    def _prepare(self, task: Arriving) -> Step:
        """Keys and partitions of the batch, once there is room for them."""
        batch, keys = admit(self._join.plan, task.side, task.batch, self._join.key)
        unmatched = None
        if keys.valid is not None and not keys.valid.all():
            valid, rest = np.flatnonzero(keys.valid), np.flatnonzero(~keys.valid)
            unmatched = _rows_of(batch, rest)
            batch, keys = _rows_of(batch, valid), keys.take(valid)
        keys = Keys(keys.words, keys.heap)
        numbers = self._table.partitioner.numbers(keys)
        if not self._working.try_reserve(keys.nbytes + numbers.nbytes):
            return self._join.room.step(keys.nbytes + numbers.nbytes)
        task.batch, task.keys, task.numbers, task.unmatched = batch, keys, numbers, unmatched
        return None

    def _next_invalid(self, task: Arriving, rows: pa.RecordBatch) -> Step:
        """Rows whose keys match nothing go out at once."""
        count = min(rows.num_rows, self._context.output_rows)
        task.unmatched = rows.slice(count) if count < rows.num_rows else None
        return one_sided(task.side, BatchRows(rows), np.arange(count, dtype=np.int64))

    def _take_piece(self, task: Arriving) -> bool:
        """The next rows that there is room for, in the order of their partitions; False when memory is too full."""
        assert task.numbers is not None
        complete = self._join.complete(1 - task.side)
        rest = task.numbers[task.offset :]
        room = self._table.room_rows()
        kept = ~self._table.frozen[task.side] & (~complete | self._join.keeps_all(task.side))
        task.length = cut(room, kept[rest]) if room is not None else self._fitting(task)
        task.first_tick = self._context.ticks.next_tick
        if not self._make_piece(task):
            return False
        self._context.ticks.pass_by(task.length)
        counts = np.bincount(rest[: task.length], minlength=self._table.partitions)
        self._table.arrived[task.side] += counts
        self._join.rows_arrived(task.side, counts)
        task.complete = complete
        task.matched = np.zeros(task.length, dtype=np.bool_) if self._table.files[task.side].flags is not None else None
        task.next_stage(Stage.PROBE)
        return True

    def _fitting(self, task: Arriving) -> int:
        """Rows of the next piece when memory is counted in bytes: so many that its copy takes a small part."""
        assert task.keys is not None
        rest = task.batch.num_rows - task.offset
        most = max(1, (self._table.memory.limit.bytes or 0) // _PIECE_PART)
        row_nbytes = (batch_nbytes(task.batch) + task.keys.nbytes) / task.batch.num_rows + 32
        return int(max(1, min(rest, most // row_nbytes)))

    def _make_piece(self, task: Arriving) -> bool:
        """Gather the rows of the next piece; False when there is no room for the copy."""
        assert task.keys is not None
        assert task.numbers is not None
        start, stop = task.offset, task.offset + task.length
        batch, keys = task.batch.slice(start, task.length), task.keys.slice(start, stop)
        task.piece_nbytes = batch_nbytes(batch) + keys.nbytes + 24 * task.length
        if not self._working.try_reserve(task.piece_nbytes):
            return False
        ticks = np.arange(task.first_tick, task.first_tick + task.length, dtype=np.int64)
        schema = self._table.files[task.side].schema
        task.piece = Piece.of(batch, keys, ticks, task.numbers[start:stop], self._table.partitions, schema)
        return True

    def _drop_piece(self, task: Arriving) -> None:
        task.offset += task.length
        task.piece = task.matched = None
        self._working.release(task.piece_nbytes)

    def _probe_piece(self, task: Arriving, piece: Piece) -> Step:
        """Probe partition after partition until the output is full."""
        other, rows, found, at = 1 - task.side, BatchRows(piece.batch), [], 0
        once = self._join.expendable[task.side] and self._join.settle.candidates_always_match
        partitions = self._table.partitions if self._join.probes(task.side) else 0
        while task.partition < partitions and at < self._join.found.shape[1]:
            start, stop = piece.range(task.partition)
            part = self._table.parts[other][task.partition]
            if start == stop or not len(part):
                task.partition += 1
                continue
            out = self._join.found[:, at:]
            with self._join.guard(other, task.partition):
                count, comparisons = part.probe(piece.keys.slice(start, stop), task.cursor, out[0], out[1], once=once)
            self._context.counters.comparisons += comparisons
            if count:
                mine, theirs = out[0, :count] + start, out[1, :count].copy()
                found.append(
                    self._join.settle_pairs(task.side, rows, mine, task.matched, part.rows, theirs, part.matched)
                )
                self._context.counters.discards += self._table.bury(other, task.partition)
                at += count
            if task.cursor.row < stop - start:
                break  # the output is full, or enough was compared for one step
            task.partition, task.cursor = task.partition + 1, Cursor()
        else:
            if task.partition >= partitions:
                task.next_stage(Stage.PASS)
        return combined([matches for matches in found if matches is not None])

    def _pass_unmatched(self, task: Arriving, piece: Piece) -> Step:
        """Of rows that have met all that they could meet, those without a match go out."""
        assert task.complete is not None
        if task.matched is None or not self._join.plan.how.gives_unmatched(task.side) or not task.complete.any():
            task.next_stage(Stage.INSERT)
            return None
        through = np.repeat(task.complete, np.diff(piece.starts)) & ~task.matched
        numbers = np.flatnonzero(through)[task.row : task.row + self._context.output_rows]
        task.row += len(numbers)
        if not len(numbers):
            task.matched |= through  # what is kept of them does not go out again
            task.next_stage(Stage.INSERT)
        return one_sided(task.side, BatchRows(piece.batch), numbers)

    def _insert_piece(self, task: Arriving, piece: Piece) -> Step:
        """Keep the rows, partition by partition; a flush is a step of its own."""
        if task.stage is Stage.FLUSH:
            if self._join.room.waits():
                return self._join.task_step()
            self._join.room.make(batch_nbytes(piece.batch))
            task.stage = Stage.INSERT
        while task.partition < self._table.partitions:
            if not self._insert_slice(task, piece):
                task.stage = Stage.FLUSH
                return None
            task.partition, task.row = task.partition + 1, 0
        self._drop_piece(task)
        return None

    def _insert_slice(self, task: Arriving, piece: Piece) -> bool:
        """Rows of one partition; False when memory is full."""
        side, partition = task.side, task.partition
        start, stop = piece.range(partition)
        if start + task.row >= stop:
            return True
        assert task.complete is not None
        through = bool(task.complete[partition]) and not self._join.keeps_all(side)
        keep = self._kept_rows(task, start + task.row, stop, through=through)
        if keep is not None and not len(keep):
            return True
        batch, keys, arrivals = chosen_rows(piece, start + task.row, stop, keep)
        matched = None
        if task.matched is not None:
            matched = task.matched[start + task.row : stop] if keep is None else task.matched[keep]
        if self._table.frozen[side, partition]:
            self._table.spool(side, partition, batch, arrivals, matched)
            return True
        try:
            with self._join.guard(side, partition):
                self._table.insert(side, partition, batch, keys, arrivals, matched)
        except BudgetExceeded:
            if self._join.room.can_be_made() or batch.num_rows == 1:
                return False
            half = (stop - start - task.row) // 2
            return self._insert_half(task, piece, half)
        if self._join.one_side == side:
            refuse_repeated(self._join, self._table.parts[side][partition], batch, keys)
        return True

    def _insert_half(self, task: Arriving, piece: Piece, half: int) -> bool:
        """A slice that does not fit into empty memory goes in by halves."""
        shorter = Piece(piece.batch, piece.keys, piece.arrivals, piece.starts.copy())
        start = int(piece.starts[task.partition])
        shorter.starts[task.partition + 1] = start + task.row + half
        if not self._insert_slice(task, shorter):
            return False
        task.row += half
        return self._insert_slice(task, piece)

    def _kept_rows(self, task: Arriving, start: int, stop: int, *, through: bool) -> Int64 | None:
        """Which rows must be kept; None for all. Counts the others."""
        counters = self._context.counters
        if through:
            counters.inserts_avoided += stop - start
            return np.empty(0, dtype=np.int64)
        if not self._join.expendable[task.side] or task.matched is None:
            return None
        keep = start + np.flatnonzero(~task.matched[start:stop])
        counters.inserts_avoided += stop - start - len(keep)
        return keep

    def held_bytes(self) -> int:
        """Bytes really held, the batch itself left out: the input buffer counts it."""
        task = self.task
        if task is None:
            return 0
        held = (task.keys.nbytes if task.keys is not None else 0) + (
            task.numbers.nbytes if task.numbers is not None else 0
        )
        if task.piece is not None:
            held += task.piece.keys.nbytes + batch_nbytes(task.piece.batch) + task.piece.arrivals.nbytes
        return held

    def close(self) -> None:
        """Give memory back. Idempotent."""
        self.task = None
        self._working.clear()

    def load(self, snapshot: Snapshot, values: dict[str, Any]) -> None:
        """Take over what ``Arriving.save`` put into a snapshot."""
        task = self.task = Arriving(values["side"], one_batch(snapshot.tables["arriving"]))
        if not values["prepared"]:
            return
        keys = self._join.key.encode(task.side, task.batch)
        task.keys = Keys(keys.words, keys.heap)
        task.numbers = self._table.partitioner.numbers(task.keys)
        self._working.reserve(task.keys.nbytes + task.numbers.nbytes)
        if "arriving-unmatched" in snapshot.tables:
            task.unmatched = one_batch(snapshot.tables["arriving-unmatched"])
        task.offset, task.length, task.first_tick = values["offset"], values["length"], values["first_tick"]
        if values["in_hand"] and not self._make_piece(task):
            raise BudgetExceeded(f"the saved state does not fit into the memory of {self._context.budget.whole}")
        task.stage, task.partition, task.row = Stage(values["stage"]), values["partition"], values["row"]
        task.cursor = Cursor(*values["cursor"])
        task.matched = snapshot.arrays.get("arriving-matched")
        task.complete = snapshot.arrays.get("arriving-complete")


def _rows_of(batch: pa.RecordBatch, index: Int64) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(BatchRows(batch).take(index), schema=batch.schema)
