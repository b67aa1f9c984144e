"""The operator that XJoin, HMJ, RPJ, DHJ and EHJ share: they differ in their policies and nothing else.

::

    arrive ──▶ Arriving: probe, insert or spool; memory full: victims of the flush policy leave
    react  ──▶ Task of the reactive policy (none: nothing to do), step by step; it stays in work across arrivals
    end    ──▶ Retiring: rows in memory that have met the whole of the ended side, unmatched ones out
    finish ──▶ task in work to its end ──▶ clean-up, partition by partition

An algorithm is a subclass that names its flush policy, duplicate rule and reactive policy, and may replace the
clean-up. Everything else, exactly-once rules included, lives here and in the table.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.admission import admit
from earlyjoin.algorithms.hashing.arriving import Arriving, Stage, chosen_rows, cut
from earlyjoin.algorithms.hashing.chain_probe import ChainProbe
from earlyjoin.algorithms.hashing.cleanup import CleanUp, FinalWork
from earlyjoin.algorithms.hashing.disk_part import DiskPage
from earlyjoin.algorithms.hashing.flushing import FlushPolicy, Victim
from earlyjoin.algorithms.hashing.memory_part import MemoryPart
from earlyjoin.algorithms.hashing.one_side import refuse_repeated
from earlyjoin.algorithms.hashing.partitioning import Piece
from earlyjoin.algorithms.hashing.patchwork import combined
from earlyjoin.algorithms.hashing.rules import DuplicateRule
from earlyjoin.algorithms.hashing.settings import HashSettings, automatic_partitions, side_number
from earlyjoin.algorithms.hashing.table import PartitionedTable
from earlyjoin.algorithms.hashing.tasks import MemoryDiskTask, Task, page_stamps, part_stamps, without
from earlyjoin.algorithms.protocol import Context, Matches, Operator, Plan, Slice, Step
from earlyjoin.algorithms.settlement import Settlement, one_sided
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.keys import Bool, Int64, Keys
from earlyjoin.state.budget import format_bytes
from earlyjoin.state.counters import Phase
from earlyjoin.state.hash_index import Cursor
from earlyjoin.state.rows import BatchRows, Rows, one_batch
from earlyjoin.state.sizes import batch_nbytes, likely_row_nbytes
from earlyjoin.state.snapshot import Snapshot

_PIECE_PART = 8
"""A piece of an arriving batch takes at most one in so many parts of the memory."""


class PartitionedHashJoin(Operator):
    """See the module."""

    options_type: ClassVar[type[HashSettings]] = HashSettings
    freezes: ClassVar[bool] = False
    """Is a flushed partition frozen (DHJ, EHJ), or does it take rows again (XJoin, HMJ, RPJ)?"""

    def __init__(self, plan: Plan, context: Context, settings: HashSettings | None = None) -> None:
        super().__init__(plan, context)
        self.set = settings if settings is not None else context.own_options(self.options_type)
        self.one_side = side_number(self.set.one_side)
        """The input whose keys occur once, if there is one."""
        key, rest = registry.driver(plan, self.description)
        self.key = key
        self.build_side = self._build_side()
        self.expendable = tuple(plan.how.one_match_is_enough(s) or self.one_side == 1 - s for s in range(2))
        """For each side: is a row of no use once it has matched?"""
        self.settle = Settlement(plan, rest, context)
        self._out = context.budget.account("output row numbers")
        self._out.reserve(2 * 2 * 8 * context.output_rows)  # what a probe fills, and the copies that go out
        self.found = np.empty((2, context.output_rows), dtype=np.int64)
        partitions = self.set.partitions or self._partitions()
        self.table = PartitionedTable(
            plan, key, context, self.set, partitions, expendable=(self.expendable[0], self.expendable[1])
        )
        self._working = self.table.memory.account("the arriving batch")
        self.ended = [False, False]
        self.rule = self.make_rule()
        self.flush_policy = self.make_flush_policy()
        self.task: Task | None = None
        """Reactive work that was begun and is not done."""
        self._arriving: Arriving | None = None
        self._retiring: deque[list[int]] = deque()
        self._finishing = False
        self.cleanup: FinalWork | None = None

    # What an algorithm decides

    @abstractmethod
    def make_rule(self) -> DuplicateRule:
        """The exactly-once rule for pairs that are found on disk."""

    @abstractmethod
    def make_flush_policy(self) -> FlushPolicy:
        """Who leaves when memory is full."""

    def next_task(self) -> Task | None:
        """The reactive policy: what to do now that the inputs are silent; None for nothing."""
        return None

    def has_next_task(self) -> bool:
        """Would ``next_task`` give one?"""
        return False

    def task_finished(self, task: MemoryDiskTask) -> None:
        """A memory-disk task is through: remember it for the duplicate rule."""

    def probes(self, side: int) -> bool:
        """Do arriving rows of this side look for partners?"""
        return True

    def rows_arrived(self, side: int, counts: Int64) -> None:
        """So many rows of each partition have just arrived: for statistics."""

    def cleanup_build_side(self, partition: int) -> int:
        """Which side of a partition is loaded in the clean-up: that with less on disk."""
        rows = self.table.on_disk[:, partition]
        return int(rows[1] < rows[0])

    def make_cleanup(self) -> FinalWork:
        """The work after the last row."""
        return CleanUp(self, list(range(self.table.partitions)))

    def flush(self, victims: list[Victim]) -> None:
        """Make victims leave memory."""
        for victim in victims:
            if self.freezes:
                self.table.freeze(victim.side, victim.partition)
            else:
                self.table.flush(victim.side, victim.partition, rows=victim.rows)

    def _build_side(self) -> int:
        """R of the papers: as set, the one-side of a 1:N join, the smaller input, or the left one."""
        for name in (self.set.build_side, self.set.one_side):
            side = side_number(name)
            if side is not None:
                return side
        left, right = self.context.rows_expected or (None, None)
        return 1 if left is not None and right is not None and right < left else 0

    def _partitions(self) -> int:
        limit, rows = self.context.budget.limit, self.context.rows_expected or (None, None)
        sizes = list(rows)
        if limit.rows is None:
            # Of compressed files the size is too small, of texts the guess at a row may be: the larger one counts.
            guesses = (likely_row_nbytes(schema) for schema in self.plan.schemas)
            told = self.context.bytes_expected or (None, None)
            both = zip(told, rows, guesses, strict=True)
            sizes = [max(size or 0, (count or 0) * guess) or None for size, count, guess in both]
        known = [size for size in sizes if size is not None]
        return automatic_partitions(limit, min(known) if known else None)

    # The protocol

    def arrive(self, side: int, batch: pa.RecordBatch) -> Iterator[Step]:
        """Join the batch with what is in memory, and keep it."""
        self.phase = Phase.ARRIVING  # a reactive call may have been abandoned
        self.context.counters.rows_in[side] += batch.num_rows
        self._arriving = Arriving(side, batch)
        return self.resume()

    def end(self, side: int) -> Iterator[Step]:
        """Rows of the other side that are in memory with all of the ended side's partition are through."""
        self.phase = Phase.ARRIVING
        self.ended[side] = True
        complete = self._complete(side)
        for partition in np.flatnonzero(complete & (self.table.in_memory[1 - side] > 0)):
            self._retiring.append([1 - side, int(partition), 0])
        return self.resume()

    def react(self, work: Slice) -> Iterator[Step]:
        """Work on the task in hand, or on the next one, until the slice is over; with whole tasks, until its end."""
        self.phase = Phase.REACTIVE
        whole = self.set.hand_over == "task"
        while not work.over or (whole and self.task is not None):
            if self.task is None:
                self.task = self.next_task()
                if self.task is None:
                    break
            work.spend()
            yield self.count(self._task_step())
        self.phase = Phase.CLEANUP if self._finishing else Phase.ARRIVING

    def finish(self) -> Iterator[Step]:
        """Join whatever was never joined."""
        self.phase = Phase.CLEANUP
        self._finishing = True
        return self.resume()

    def has_reactive_work(self) -> bool:
        """Is a task in work, or one to be had?"""
        return self.task is not None or self.has_next_task()

    def resume(self) -> Iterator[Step]:
        """Go on with the arriving batch, the retiring rows or the clean-up."""
        while self._arriving is not None:
            yield self.count(self._arriving_step(self._arriving))
            if self.task is not None and self.task.ready():
                yield self._background_step()
        while self._retiring:
            yield self.count(self._retiring_step(self._retiring[0]))
        while self._finishing:
            if self.task is not None:
                yield self.count(self._task_step())
                continue
            if self.cleanup is None:
                for side in range(2):
                    for partition in range(self.table.partitions):
                        self.table.close_runs(side, partition)
                self.cleanup = self.make_cleanup()
            if self.cleanup.done:
                return
            yield self.count(self.cleanup.step())

    def _background_step(self) -> Step:
        """What a thread found while rows arrived."""
        phase, self.phase = self.phase, Phase.REACTIVE
        step = self.count(self._task_step())
        self.phase = phase
        return step

    def _task_step(self) -> Step:
        assert self.task is not None
        step = self.task.step()
        if self.task.done:
            self.task = None
        return step

    # Arriving

    def _arriving_step(self, task: Arriving) -> Step:
        if task.keys is None:
            return self._prepare(task)
        if task.unmatched is not None:
            return self._next_invalid(task, task.unmatched)
        if task.piece is None:
            if task.offset >= task.batch.num_rows:
                self._arriving = None
                self._working.clear()
                return None
            if not self._take_piece(task):
                return self._flush_step(task.piece_nbytes)
        assert task.piece is not None
        if task.stage is Stage.PROBE:
            return self._probe_piece(task, task.piece)
        if task.stage is Stage.PASS:
            return self._pass_unmatched(task, task.piece)
        return self._insert_piece(task, task.piece)

    def _prepare(self, task: Arriving) -> Step:
        """Keys and partitions of the batch, once there is room for them."""
        batch, keys = admit(self.plan, task.side, task.batch, self.key)
        unmatched = None
        if keys.valid is not None and not keys.valid.all():
            valid, rest = np.flatnonzero(keys.valid), np.flatnonzero(~keys.valid)
            unmatched = _rows_of(batch, rest)
            batch, keys = _rows_of(batch, valid), keys.take(valid)
        keys = Keys(keys.words, keys.heap)
        numbers = self.table.partitioner.numbers(keys)
        if not self._working.try_reserve(keys.nbytes + numbers.nbytes):
            return self._flush_step(keys.nbytes + numbers.nbytes)
        task.batch, task.keys, task.numbers, task.unmatched = batch, keys, numbers, unmatched
        return None

    def _next_invalid(self, task: Arriving, rows: pa.RecordBatch) -> Step:
        """Rows whose keys match nothing go out at once."""
        count = min(rows.num_rows, self.context.output_rows)
        task.unmatched = rows.slice(count) if count < rows.num_rows else None
        return one_sided(task.side, BatchRows(rows), np.arange(count, dtype=np.int64))

    def _complete(self, side: int) -> Bool:
        """For each partition: has the side ended, with nothing of the partition on disk?"""
        on_disk = (self.table.on_disk[side] > 0) | self.table.frozen[side]
        return ~on_disk if self.ended[side] else np.zeros_like(on_disk)

    def _take_piece(self, task: Arriving) -> bool:
        """The next rows that there is room for, in the order of their partitions; False when memory is too full."""
        assert task.numbers is not None
        complete = self._complete(1 - task.side)
        rest = task.numbers[task.offset :]
        room = self.table.room_rows()
        kept = ~(complete | self.table.frozen[task.side])
        task.length = cut(room, kept[rest]) if room is not None else self._fitting(task)
        task.first_tick = self.context.ticks.next_tick
        if not self._make_piece(task):
            return False
        self.context.ticks.pass_by(task.length)
        counts = np.bincount(rest[: task.length], minlength=self.table.partitions)
        self.table.arrived[task.side] += counts
        self.rows_arrived(task.side, counts)
        task.complete = complete
        task.matched = np.zeros(task.length, dtype=np.bool_) if self.table.files[task.side].flags is not None else None
        task.next_stage(Stage.PROBE)
        return True

    def _fitting(self, task: Arriving) -> int:
        """Rows of the next piece when memory is counted in bytes: so many that its copy takes a small part."""
        assert task.keys is not None
        rest = task.batch.num_rows - task.offset
        most = max(1, (self.table.memory.limit.bytes or 0) // _PIECE_PART)
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
        schema = self.table.files[task.side].schema
        task.piece = Piece.of(batch, keys, ticks, task.numbers[start:stop], self.table.partitions, schema)
        return True

    def _drop_piece(self, task: Arriving) -> None:
        task.offset += task.length
        task.piece = task.matched = None
        self._working.release(task.piece_nbytes)

    def _probe_piece(self, task: Arriving, piece: Piece) -> Step:
        """Probe partition after partition until the output is full."""
        other, rows, found, at = 1 - task.side, BatchRows(piece.batch), [], 0
        once = self.expendable[task.side] and self.settle.candidates_always_match
        partitions = self.table.partitions if self.probes(task.side) else 0
        while task.partition < partitions and at < self.found.shape[1]:
            start, stop = piece.range(task.partition)
            part = self.table.parts[other][task.partition]
            if start == stop or not len(part):
                task.partition += 1
                continue
            out = self.found[:, at:]
            with self._guard(other, task.partition):
                count, comparisons = part.probe(piece.keys.slice(start, stop), task.cursor, out[0], out[1], once=once)
            self.context.counters.comparisons += comparisons
            if count:
                mine, theirs = out[0, :count] + start, out[1, :count].copy()
                found.append(self.settle_pairs(task.side, rows, mine, task.matched, part.rows, theirs, part.matched))
                self.context.counters.discards += self.table.bury(other, task.partition)
                at += count
            if task.cursor.row < stop - start:
                break  # the output is full, or enough was compared for one step
            task.partition, task.cursor = task.partition + 1, Cursor()
        else:
            if task.partition >= partitions:
                task.next_stage(Stage.PASS)
        return combined([matches for matches in found if matches is not None])

    def settle_pairs(
        self, side: int, mine: Rows, i: Int64, flags: Bool | None, theirs: Rows, j: Int64, their_flags: Bool | None
    ) -> Matches | None:
        """Settle candidate pairs of rows ``i`` of ``side`` and rows ``j`` of the other side."""
        if side == 0:
            return self.settle((mine, theirs), i, j, (flags, their_flags))
        return self.settle((theirs, mine), j, i, (their_flags, flags))

    def _pass_unmatched(self, task: Arriving, piece: Piece) -> Step:
        """Rows that are not kept because they have met all that they could meet: those without a match go out."""
        assert task.complete is not None
        if task.matched is None or not self.plan.how.gives_unmatched(task.side) or not task.complete.any():
            task.next_stage(Stage.INSERT)
            return None
        through = np.repeat(task.complete, np.diff(piece.starts)) & ~task.matched
        numbers = np.flatnonzero(through)[task.row : task.row + self.context.output_rows]
        task.row += len(numbers)
        if not len(numbers):
            task.next_stage(Stage.INSERT)
        return one_sided(task.side, BatchRows(piece.batch), numbers)

    def _insert_piece(self, task: Arriving, piece: Piece) -> Step:
        """Keep the rows, partition by partition; a flush is a step of its own."""
        if task.stage is Stage.FLUSH:
            if self._flush_waits():
                return self._task_step()
            self._flush_now(batch_nbytes(piece.batch))
            task.stage = Stage.INSERT
        while task.partition < self.table.partitions:
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
        keep = self._kept_rows(task, start + task.row, stop, complete=bool(task.complete[partition]))
        if keep is not None and not len(keep):
            return True
        batch, keys, arrivals = chosen_rows(piece, start + task.row, stop, keep)
        matched = None
        if task.matched is not None:
            matched = task.matched[start + task.row : stop] if keep is None else task.matched[keep]
        if self.table.frozen[side, partition]:
            self.table.spool(side, partition, batch, arrivals, matched)
            return True
        try:
            with self._guard(side, partition):
                self.table.insert(side, partition, batch, keys, arrivals, matched)
        except BudgetExceeded:
            if self.can_make_room() or batch.num_rows == 1:
                return False
            half = (stop - start - task.row) // 2
            return self._insert_half(task, piece, half)
        if self.one_side == side:
            refuse_repeated(self, self.table.parts[side][partition], batch, keys)
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

    def _kept_rows(self, task: Arriving, start: int, stop: int, *, complete: bool) -> Int64 | None:
        """Which rows must be kept; None for all. Counts the others."""
        counters = self.context.counters
        if complete:
            counters.inserts_avoided += stop - start
            return np.empty(0, dtype=np.int64)
        if not self.expendable[task.side] or task.matched is None:
            return None
        keep = start + np.flatnonzero(~task.matched[start:stop])
        counters.inserts_avoided += stop - start - len(keep)
        return keep

    def _guard(self, side: int, partition: int) -> AbstractContextManager[Any]:
        """Keep the thread of a task away from a memory part."""
        return self.task.guard(side, partition) if self.task is not None else nullcontext()

    # Room

    def can_make_room(self) -> bool:
        """Is there anything in memory that could leave?"""
        return bool((self.table.in_memory > 0).any() or any(len(part) for side in self.table.parts for part in side))

    def protected(self) -> Bool:
        """Memory parts that the task in work needs."""
        shape = (2, self.table.partitions)
        if self.task is None:
            return np.zeros(shape, dtype=np.bool_)
        task = self.task
        flags = [[task.protects(side, partition) for partition in range(shape[1])] for side in range(2)]
        return np.array(flags, dtype=np.bool_)

    def victims(self) -> list[Victim]:
        """Whom the flush policy chooses now."""
        statistics = self.table.statistics(
            self.protected(), build_side=self.build_side, ended=(self.ended[0], self.ended[1])
        )
        return self.flush_policy(statistics)

    def _flush_waits(self) -> bool:
        """Does the task in work need what would have to leave? Then it goes to its end first."""
        task = self.task
        return task is not None and any(task.protects(victim.side, victim.partition) for victim in self.victims())

    def _flush_step(self, needed: int) -> Step:
        """Flush, or work on the task that stands in the way of it."""
        if self._flush_waits():
            return self._task_step()
        self._flush_now(needed)
        return None

    def _flush_now(self, needed: int) -> None:
        victims = self.victims()
        if not victims:
            self._clear_dead(needed)
        self.flush(victims)

    def _clear_dead(self, needed: int) -> None:
        """The last resort: parts whose rows are all dead. If there are none, what is needed does not fit."""
        dead = [(s, p) for s in range(2) for p, part in enumerate(self.table.parts[s]) if len(part) and not part.live]
        for side, partition in dead:
            self.table.forget(side, partition)
        if not dead:
            raise BudgetExceeded(
                f"about {format_bytes(needed)} for a single row or batch do not fit into the memory of "
                f"{self.context.budget.whole}; give more memory"
            )

    # Disk

    def probe_page(
        self, probe: ChainProbe, side: int, partition: int, page: DiskPage, *, before: int | None = None
    ) -> Step:
        """Some new pairs of a page of the other side's disk and the memory part of ``side``."""
        part, other = self.table.parts[side][partition], 1 - side
        keys = without(page.keys, page.matched if self.expendable[other] else None)
        i, j, comparisons = probe.next(part, keys, self.found, before=before)
        self.context.counters.comparisons += comparisons
        return self.settle_found(side, partition, page, i, j)

    def settle_found(self, side: int, partition: int, page: DiskPage, i: Int64, j: Int64) -> Step:
        """Settle the new ones among pairs of a page and the memory part of ``side``."""
        part, other = self.table.parts[side][partition], 1 - side
        i, j = self._unmet(side, partition, page, i, j)
        if not len(i):
            return None
        step = self.settle_pairs(other, page.rows, i, page.matched, part.rows, j, part.matched)
        self.table.bury(side, partition)
        self.table.files[other].mark(page)
        return step

    def _unmet(self, side: int, partition: int, page: DiskPage | MemoryPart, i: Int64, j: Int64) -> tuple[Int64, Int64]:
        """Pairs (probing row, row of the memory part of ``side``) that the duplicate rule does not know."""
        if not len(i):
            return i, j
        part = self.table.parts[side][partition]
        probing = page_stamps(page, i) if isinstance(page, DiskPage) else part_stamps(page, i)
        stored = part_stamps(part, j)
        left, right = (stored, probing) if side == 0 else (probing, stored)
        new = ~self.rule.joined(partition, left, right)
        return i[new], j[new]

    def probe_memory(self, probe: ChainProbe, side: int, partition: int) -> Step:
        """Some new pairs of the memory part of ``side`` and that of the other side, whose rows probe."""
        part, probing = self.table.parts[side][partition], self.table.parts[1 - side][partition]
        keys = probing.keys
        assert keys is not None
        keys = without(keys, probing.matched if self.expendable[1 - side] else None)
        i, j, comparisons = probe.next(part, keys, self.found)
        self.context.counters.comparisons += comparisons
        i, j = self._unmet(side, partition, probing, i, j)
        if not len(i):
            return None
        step = self.settle_pairs(1 - side, probing.rows, i, probing.matched, part.rows, j, part.matched)
        for s in range(2):
            self.table.bury(s, partition)
        return step

    def unmatched_in_memory(self, side: int, partition: int, start: int) -> tuple[Step, int]:
        """Rows of a memory part from ``start`` on that have no match, and where to go on; at the end that is -1."""
        part = self.table.parts[side][partition]
        if not self.plan.how.gives_unmatched(side) or part.matched is None or start >= len(part):
            return None, -1
        stop = min(len(part), start + self.context.output_rows)
        numbers = start + np.flatnonzero(~part.matched[start:stop])
        return one_sided(side, part.rows, numbers), stop

    def _retiring_step(self, task: list[int]) -> Step:
        """Rows of a part that have met all that they could meet."""
        side, partition, position = task
        step, task[2] = self.unmatched_in_memory(side, partition, position)
        if task[2] < 0:
            self.table.forget(side, partition)
            self._retiring.popleft()
        return step

    # State

    def held_bytes(self) -> int:
        """The table, the arriving batch and the row numbers."""
        held = self.table.held_bytes() + self.found.nbytes
        task = self._arriving
        if task is not None:
            held += task.keys.nbytes if task.keys is not None else 0
            held += task.numbers.nbytes if task.numbers is not None else 0
            if task.piece is not None:
                held += task.piece.keys.nbytes + batch_nbytes(task.piece.batch) + task.piece.arrivals.nbytes
        return held

    def close(self) -> None:
        """Give memory back and remove files. Idempotent."""
        if self.task is not None:
            self.task.close()
        self.table.close()
        self.task = self._arriving = self.cleanup = None
        self._retiring.clear()
        self._working.clear()
        self._out.clear()
        self.found = np.empty((2, 0), dtype=np.int64)

    def snapshot(self) -> Snapshot:
        """The table, the rule, and where the work stands."""
        saved = Snapshot(
            values={
                "phase": self.phase.value,
                "finishing": self._finishing,
                "ended": list(self.ended),
                "retiring": [list(task) for task in self._retiring],
                "rule": self.rule.save(),
                "task": self.task.save() if self.task is not None else None,
                "cleanup": self.cleanup.save() if self.cleanup is not None else None,
                "arriving": None,
                "shape": [self.table.partitions, self.build_side],
                "more": self.save_more(),
            }
        )
        saved.nested("table", self.table.snapshot())
        if self._arriving is not None:
            saved.values["arriving"] = self._arriving.save(saved)
        return saved

    def restore(self, snapshot: Snapshot) -> None:
        """Take everything over."""
        values = snapshot.values
        self._take_shape(*values["shape"])
        self.phase, self._finishing = Phase(values["phase"]), values["finishing"]
        self.ended = list(values["ended"])
        self._retiring.extend(list(task) for task in values["retiring"])
        self.rule.load(values["rule"])
        self.table.restore(snapshot.part("table"))
        self.load_more(values["more"])
        if values["arriving"] is not None:
            self._restore_arriving(snapshot, values["arriving"])
        if values["task"] is not None:
            self.task = self.load_task(values["task"])
        if values["cleanup"] is not None:
            self.cleanup = self.make_cleanup()
            self.cleanup.load(values["cleanup"])

    def _take_shape(self, partitions: int, build_side: int) -> None:
        """Begin anew with the partitions and roles of a saved state, if other memory or inputs led to others here."""
        if (partitions, build_side) != (self.table.partitions, self.build_side):
            self.close()
            settings = replace(self.set, partitions=partitions, build_side=("left", "right")[build_side])
            type(self).__init__(self, self.plan, self.context, settings)

    def save_more(self) -> dict[str, Any]:
        """Plain values of an algorithm's own state."""
        return {}

    def load_more(self, values: dict[str, Any]) -> None:
        """Take over what ``save_more`` gave."""

    def load_task(self, values: dict[str, Any]) -> Task:
        """A task from what its ``save`` gave."""
        resumed = {name: values[name] for name in ("started_at", "labels", "at", "probe")}
        return MemoryDiskTask(self, values["side"], values["partition"], **resumed)

    def _restore_arriving(self, snapshot: Snapshot, values: dict[str, Any]) -> None:
        task = self._arriving = Arriving(values["side"], one_batch(snapshot.tables["arriving"]))
        if not values["prepared"]:
            return
        keys = self.key.encode(task.side, task.batch)
        task.keys = Keys(keys.words, keys.heap)
        task.numbers = self.table.partitioner.numbers(task.keys)
        self._working.reserve(task.keys.nbytes + task.numbers.nbytes)
        if "arriving-unmatched" in snapshot.tables:
            task.unmatched = one_batch(snapshot.tables["arriving-unmatched"])
        task.offset, task.length, task.first_tick = values["offset"], values["length"], values["first_tick"]
        if values["in_hand"] and not self._make_piece(task):
            raise BudgetExceeded(f"the saved state does not fit into the memory of {self.context.budget.whole}")
        task.stage, task.partition, task.row = Stage(values["stage"]), values["partition"], values["row"]
        task.cursor = Cursor(*values["cursor"])
        task.matched = snapshot.arrays.get("arriving-matched")
        task.complete = snapshot.arrays.get("arriving-complete")


def _rows_of(batch: pa.RecordBatch, index: Int64) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(BatchRows(batch).take(index), schema=batch.schema)
