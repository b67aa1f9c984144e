"""Rows on their way into the table; see :mod:`~earlyjoin.algorithms.hash_join.arriving` for the way they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.hash_join.arriving import Arriving, Stage, chosen_rows, cut
from earlyjoin.algorithms.hash_join.eviction import Eviction
from earlyjoin.algorithms.hash_join.join_state import JoinState
from earlyjoin.algorithms.hash_join.one_side import refuse_repeated
from earlyjoin.algorithms.hash_join.policy import Policy
from earlyjoin.algorithms.hash_join.table.partitioning import Piece
from earlyjoin.algorithms.matching.admission import admit
from earlyjoin.algorithms.matching.settlement import one_sided
from earlyjoin.algorithms.protocol import Matches, Step
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.hash_index import Cursor
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.rows.stacked import StackedRows
from earlyjoin.state.rows.store import BatchRows, Rows, one_batch
from earlyjoin.state.snapshot import Snapshot

_PIECE_PART = 8
"""A piece of an arriving batch takes at most one in so many parts of the memory."""


class Intake:
    """Takes one batch after the other into the table of a join, a bounded step at a time."""

    def __init__(self, state: JoinState, eviction: Eviction, policy: Policy) -> None:
        self._state, self._eviction, self._policy = state, eviction, policy
        self._table, self._context = state.table, state.context
        self._working = state.table.memory.account("the arriving batch")

    def begin(self, side: int, batch: pa.RecordBatch) -> None:
        """A batch has arrived."""
        self._context.counters.rows_in[side] += batch.num_rows
        self._state.arriving = Arriving(side, batch)

    def step(self) -> Step:
        """A bounded piece of the work on the batch in hand."""
        arriving = self._state.arriving
        assert arriving is not None
        if arriving.keys is None:
            return self._prepare(arriving)
        if arriving.unmatched is not None:
            return self._next_invalid(arriving, arriving.unmatched)
        if arriving.piece is None:
            if arriving.offset >= arriving.batch.num_rows:
                self._state.arriving = None
                self._working.clear()
                return None
            if not self._take_piece(arriving):
                return self._eviction.step(arriving.piece_nbytes)
        assert arriving.piece is not None
        if arriving.stage is Stage.PROBE:
            return self._probe_piece(arriving, arriving.piece)
        if arriving.stage is Stage.PASS:
            return self._pass_unmatched(arriving, arriving.piece)
        return self._insert_piece(arriving, arriving.piece)

    def _prepare(self, arriving: Arriving) -> Step:
        """Keys and partitions of the batch, once there is room for them."""
        batch, keys = admit(self._state.plan, arriving.side, arriving.batch, self._state.key)
        unmatched = None
        if keys.valid is not None and not keys.valid.all():
            valid, rest = np.flatnonzero(keys.valid), np.flatnonzero(~keys.valid)
            unmatched = _rows_of(batch, rest)
            batch, keys = _rows_of(batch, valid), keys.take(valid)
        keys = Keys(keys.words, keys.heap)
        numbers = self._table.partitioner.numbers(keys)
        if not self._working.try_reserve(keys.nbytes + numbers.nbytes):
            return self._eviction.step(keys.nbytes + numbers.nbytes)
        arriving.batch, arriving.keys, arriving.numbers, arriving.unmatched = batch, keys, numbers, unmatched
        return None

    def _next_invalid(self, arriving: Arriving, rows: pa.RecordBatch) -> Step:
        """Rows whose keys match nothing go out at once."""
        count = min(rows.num_rows, self._context.output_rows)
        arriving.unmatched = rows.slice(count) if count < rows.num_rows else None
        return one_sided(arriving.side, BatchRows(rows), np.arange(count, dtype=np.int64))

    def _take_piece(self, arriving: Arriving) -> bool:
        """The next rows that there is room for, in the order of their partitions; False when memory is too full."""
        assert arriving.numbers is not None
        complete = self._state.complete(1 - arriving.side)
        rest = arriving.numbers[arriving.offset :]
        room = self._table.room_rows()
        kept = ~self._table.frozen[arriving.side] & (~complete | self._state.keeps_all(arriving.side))
        arriving.length = cut(room, kept[rest]) if room is not None else self._fitting(arriving)
        arriving.first_tick = self._context.ticks.next_tick
        if not self._make_piece(arriving):
            return False
        self._context.ticks.pass_by(arriving.length)
        counts = np.bincount(rest[: arriving.length], minlength=self._table.partitions)
        self._table.arrived[arriving.side] += counts
        self._policy.arrived(arriving.side, counts)
        arriving.complete = complete
        arriving.matched = (
            np.zeros(arriving.length, dtype=np.bool_) if self._table.files[arriving.side].flags is not None else None
        )
        arriving.next_stage(Stage.PROBE)
        return True

    def _fitting(self, arriving: Arriving) -> int:
        """Rows of the next piece when memory is counted in bytes: so many that its copy takes a small part."""
        assert arriving.keys is not None
        rest = arriving.batch.num_rows - arriving.offset
        most = max(1, (self._table.memory.limit.bytes or 0) // _PIECE_PART)
        row_nbytes = (batch_nbytes(arriving.batch) + arriving.keys.nbytes) / arriving.batch.num_rows + 32
        return int(max(1, min(rest, most // row_nbytes)))

    def _make_piece(self, arriving: Arriving) -> bool:
        """Gather the rows of the next piece; False when there is no room for the copy."""
        assert arriving.keys is not None
        assert arriving.numbers is not None
        start, stop = arriving.offset, arriving.offset + arriving.length
        batch, keys = arriving.batch.slice(start, arriving.length), arriving.keys.slice(start, stop)
        arriving.piece_nbytes = batch_nbytes(batch) + keys.nbytes + 24 * arriving.length
        if not self._working.try_reserve(arriving.piece_nbytes):
            return False
        ticks = np.arange(arriving.first_tick, arriving.first_tick + arriving.length, dtype=np.int64)
        schema = self._table.files[arriving.side].schema
        arriving.piece = Piece.of(batch, keys, ticks, arriving.numbers[start:stop], self._table.partitions, schema)
        return True

    def _drop_piece(self, arriving: Arriving) -> None:
        arriving.offset += arriving.length
        arriving.piece = arriving.matched = None
        self._working.release(arriving.piece_nbytes)

    def _probe_piece(self, arriving: Arriving, piece: Piece) -> Step:
        """Probe partition after partition until the output is full."""
        other, rows, found, at = 1 - arriving.side, BatchRows(piece.batch), [], 0
        once = self._state.expendable[arriving.side] and self._state.settle.candidates_always_match
        partitions = self._table.partitions if self._state.probes(arriving.side) else 0
        while arriving.partition < partitions and at < self._state.pairs.shape[1]:
            start, stop = piece.range(arriving.partition)
            part = self._table.parts[other][arriving.partition]
            if start == stop or not len(part):
                arriving.partition += 1
                continue
            out = self._state.pairs[:, at:]
            with self._state.guard(other, arriving.partition):
                count, comparisons = part.probe(
                    piece.keys.slice(start, stop), arriving.cursor, out[0], out[1], once=once
                )
            self._context.counters.comparisons += comparisons
            if count:
                mine, theirs = out[0, :count] + start, out[1, :count].copy()
                found.append(
                    self._state.settle_pairs(
                        arriving.side, rows, mine, arriving.matched, part.rows, theirs, part.matched
                    )
                )
                self._context.counters.discards += self._table.bury(other, arriving.partition)
                at += count
            if arriving.cursor.row < stop - start:
                break  # the output is full, or enough was compared for one step
            arriving.partition, arriving.cursor = arriving.partition + 1, Cursor()
        else:
            if arriving.partition >= partitions:
                arriving.next_stage(Stage.PASS)
        return _combined([matches for matches in found if matches is not None])

    def _pass_unmatched(self, arriving: Arriving, piece: Piece) -> Step:
        """Of rows that have met all that they could meet, those without a match go out."""
        assert arriving.complete is not None
        if (
            arriving.matched is None
            or not self._state.plan.how.gives_unmatched(arriving.side)
            or not arriving.complete.any()
        ):
            arriving.next_stage(Stage.INSERT)
            return None
        through = np.repeat(arriving.complete, np.diff(piece.starts)) & ~arriving.matched
        numbers = np.flatnonzero(through)[arriving.row : arriving.row + self._context.output_rows]
        arriving.row += len(numbers)
        if not len(numbers):
            arriving.matched |= through  # what is kept of them does not go out again
            arriving.next_stage(Stage.INSERT)
        return one_sided(arriving.side, BatchRows(piece.batch), numbers)

    def _insert_piece(self, arriving: Arriving, piece: Piece) -> Step:
        """Keep the rows, partition by partition; a flush is a step of its own."""
        if arriving.stage is Stage.FLUSH:
            if self._eviction.waits():
                return self._state.task_step()
            self._eviction.make(batch_nbytes(piece.batch))
            arriving.stage = Stage.INSERT
        while arriving.partition < self._table.partitions:
            if not self._insert_slice(arriving, piece):
                arriving.stage = Stage.FLUSH
                return None
            arriving.partition, arriving.row = arriving.partition + 1, 0
        self._drop_piece(arriving)
        return None

    def _insert_slice(self, arriving: Arriving, piece: Piece) -> bool:
        """Rows of one partition; False when memory is full."""
        side, partition = arriving.side, arriving.partition
        start, stop = piece.range(partition)
        if start + arriving.row >= stop:
            return True
        assert arriving.complete is not None
        through = bool(arriving.complete[partition]) and not self._state.keeps_all(side)
        keep = self._kept_rows(arriving, start + arriving.row, stop, through=through)
        if keep is not None and not len(keep):
            return True
        batch, keys, arrivals = chosen_rows(piece, start + arriving.row, stop, keep)
        matched = None
        if arriving.matched is not None:
            matched = arriving.matched[start + arriving.row : stop] if keep is None else arriving.matched[keep]
        if self._table.frozen[side, partition]:
            self._table.spool(side, partition, batch, arrivals, matched)
            return True
        try:
            with self._state.guard(side, partition):
                self._table.insert(side, partition, batch, keys, arrivals, matched)
        except BudgetExceeded:
            if self._eviction.is_possible() or batch.num_rows == 1:
                return False
            half = (stop - start - arriving.row) // 2
            return self._insert_half(arriving, piece, half)
        if self._state.one_side == side:
            refuse_repeated(self._state, self._table.parts[side][partition], batch, keys)
        return True

    def _insert_half(self, arriving: Arriving, piece: Piece, half: int) -> bool:
        """A slice that does not fit into empty memory goes in by halves."""
        shorter = Piece(piece.batch, piece.keys, piece.arrivals, piece.starts.copy())
        start = int(piece.starts[arriving.partition])
        shorter.starts[arriving.partition + 1] = start + arriving.row + half
        if not self._insert_slice(arriving, shorter):
            return False
        arriving.row += half
        return self._insert_slice(arriving, piece)

    def _kept_rows(self, arriving: Arriving, start: int, stop: int, *, through: bool) -> Int64 | None:
        """Which rows must be kept; None for all. Counts the others."""
        counters = self._context.counters
        if through:
            counters.inserts_avoided += stop - start
            return np.empty(0, dtype=np.int64)
        if not self._state.expendable[arriving.side] or arriving.matched is None:
            return None
        keep = start + np.flatnonzero(~arriving.matched[start:stop])
        counters.inserts_avoided += stop - start - len(keep)
        return keep

    def close(self) -> None:
        """Give memory back. Idempotent."""
        self._state.arriving = None
        self._working.clear()

    def load(self, snapshot: Snapshot, values: dict[str, Any]) -> None:
        """Take over what ``Arriving.save`` put into a snapshot."""
        arriving = self._state.arriving = Arriving(values["side"], one_batch(snapshot.tables["arriving"]))
        if not values["prepared"]:
            return
        keys = self._state.key.encode(arriving.side, arriving.batch)
        arriving.keys = Keys(keys.words, keys.heap)
        arriving.numbers = self._table.partitioner.numbers(arriving.keys)
        self._working.reserve(arriving.keys.nbytes + arriving.numbers.nbytes)
        if "arriving-unmatched" in snapshot.tables:
            arriving.unmatched = one_batch(snapshot.tables["arriving-unmatched"])
        arriving.offset, arriving.length, arriving.first_tick = values["offset"], values["length"], values["first_tick"]
        if values["in_hand"] and not self._make_piece(arriving):
            raise BudgetExceeded(f"the saved state does not fit into the memory of {self._context.budget.whole}")
        arriving.stage, arriving.partition, arriving.row = Stage(values["stage"]), values["partition"], values["row"]
        arriving.cursor = Cursor(*values["cursor"])
        arriving.matched = snapshot.arrays.get("arriving-matched")
        arriving.complete = snapshot.arrays.get("arriving-complete")


def _rows_of(batch: pa.RecordBatch, index: Int64) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(BatchRows(batch).take(index), schema=batch.schema)


def _combined(found: Sequence[Matches]) -> Matches | None:
    """One batch of matches out of several of the same shape, whose rows lie in many parts; None for none."""
    if len(found) < 2:
        return found[0] if found else None
    rows: list[Rows | None] = []
    index: list[Int64 | None] = []
    for side in range(2):
        both = [(matches.rows[side], matches.index[side]) for matches in found]
        parts = [(part, numbers) for part, numbers in both if part is not None and numbers is not None]
        sources = list({id(part): part for part, _ in parts}.values())
        stacked = StackedRows(sources) if len(sources) > 1 else None
        starts = {
            id(part): start
            for part, start in zip(sources, stacked.starts if stacked is not None else [0], strict=False)
        }
        rows.append(stacked if stacked is not None else next(iter(sources), None))
        index.append(np.concatenate([numbers + starts[id(part)] for part, numbers in parts]) if parts else None)
    return Matches(tuple(rows), tuple(index))
