"""The operator that XJoin, HMJ, RPJ, DHJ and EHJ share: they differ in their policies and nothing else.

::

    arrive ──▶ Arriving: probe, insert or spool; memory full: victims of the flush policy leave
    react  ──▶ Task of the reactive policy (none: nothing to do), step by step; it stays in work across arrivals
    end    ──▶ Retiring: rows in memory that have met the whole of the ended side, unmatched ones out
    finish ──▶ task in work to its end ──▶ clean-up, partition by partition

An algorithm is a subclass that names its flush policy, duplicate rule and reactive policy, and may replace the
clean-up. Everything else is the same for all of them, exactly-once rules included.
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
from earlyjoin.algorithms.hash_join.cleanup import CleanUp, FinalWork
from earlyjoin.algorithms.hash_join.flushing import FlushPolicy, Victim
from earlyjoin.algorithms.hash_join.intake import Intake
from earlyjoin.algorithms.hash_join.late_matches import LateMatches
from earlyjoin.algorithms.hash_join.room import Room
from earlyjoin.algorithms.hash_join.rules import DuplicateRule
from earlyjoin.algorithms.hash_join.settings import HashSettings, automatic_partitions, side_number
from earlyjoin.algorithms.hash_join.table.table import PartitionedTable
from earlyjoin.algorithms.hash_join.tasks import MemoryDiskTask, Task
from earlyjoin.algorithms.matching.settlement import Settlement
from earlyjoin.algorithms.protocol import Context, Matches, Operator, Plan, Slice, Step
from earlyjoin.predicates.encoding.keys import Bool, Int64
from earlyjoin.state.counters import Phase
from earlyjoin.state.rows.sizes import likely_row_nbytes
from earlyjoin.state.rows.store import Rows
from earlyjoin.state.snapshot import Snapshot


class PartitionedHashJoin(Operator):
    """See the module."""

    options_type: ClassVar[type[HashSettings]] = HashSettings
    freezes: ClassVar[bool] = False
    """Is a flushed partition frozen (DHJ, EHJ), or does it take rows again (XJoin, HMJ, RPJ)?"""
    striped: ClassVar[bool] = False
    """Do flushed runs have stripes, in which the clean-up can take a partition that does not fit?"""

    def __init__(self, plan: Plan, context: Context, settings: HashSettings | None = None) -> None:
        super().__init__(plan, context)
        self.set = settings if settings is not None else context.own_options(self.options_type)
        self.one_side = side_number(self.set.one_side)
        key, rest = registry.driver(plan, self.description)
        self.key = key
        self.build_side = self._build_side()
        enough = (plan.how.one_match_is_enough(side) for side in range(2))
        self.expendable = tuple(self.one_side == 1 - s or (one and self.one_side != s) for s, one in enumerate(enough))
        """For each side: is a row of no use once it has matched? One of the one-side may reveal a repeated key."""
        self.settle = Settlement(plan, rest, context)
        self._out = context.budget.account("output row numbers")
        self._out.reserve(2 * 2 * 8 * context.output_rows)  # what a probe fills, and the copies that go out
        self.found = np.empty((2, context.output_rows), dtype=np.int64)
        partitions = self.set.partitions or self._partitions()
        expendable = (self.expendable[0], self.expendable[1])
        self.table = PartitionedTable(
            plan, key, context, self.set, partitions, expendable=expendable, striped=self.striped
        )
        self.intake = Intake(self)
        self.ended = [False, False]
        self.rule = self.make_rule()
        self.room = Room(self, self.make_flush_policy())
        self.late = LateMatches(self)
        self.task: Task | None = None
        """Reactive work that was begun and is not done."""
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
        """Which side of a partition of an N:M join the clean-up loads: that with less on disk."""
        return int(np.argmin(self.table.on_disk[:, partition]))

    def loaded_side(self, partition: int) -> int:
        """Which side of a partition the clean-up loads: the one-side, an empty one, or its build side."""
        if self.one_side is not None:
            return self.one_side
        rows = self.table.on_disk[:, partition] + self.table.in_memory[:, partition]
        return self.cleanup_build_side(partition) if rows.all() else int(np.argmin(rows))

    def make_cleanup(self) -> FinalWork:
        """The work after the last row: the least to load comes first, because it has to find room in a full memory."""
        partitions = range(self.table.partitions)
        return CleanUp(self, sorted(partitions, key=lambda p: self.table.on_disk[self.loaded_side(p), p]))

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
        self.intake.begin(side, batch)
        return self.resume()

    def end(self, side: int) -> Iterator[Step]:
        """Rows of the other side that are in memory with all of the ended side's partition are through."""
        self.phase = Phase.ARRIVING
        self.ended[side] = True
        complete = self.complete(side)
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
            yield self.count(self.task_step())
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
        while self.intake.task is not None:
            yield self.count(self.intake.step())
            if self.task is not None and self.task.ready():
                yield self._background_step()
        while self._retiring:
            yield self.count(self._retiring_step(self._retiring[0]))
        while self._finishing:
            if self.task is not None:
                yield self.count(self.task_step())
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
        step = self.count(self.task_step())
        self.phase = phase
        return step

    def task_step(self) -> Step:
        assert self.task is not None
        step = self.task.step()
        if self.task.done:
            self.task = None
        return step

    def complete(self, side: int) -> Bool:
        """For each partition: has the side ended, with nothing on disk? Rows of the other have met all of it then."""
        on_disk = (self.table.on_disk[side] > 0) | self.table.frozen[side]
        return ~on_disk if self.ended[side] else np.zeros_like(on_disk)

    def keeps_all(self, side: int) -> bool:
        """Are rows kept that have met all that they could meet? Those of the one-side may reveal a repeated key."""
        return self.one_side == side

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

    def _retiring_step(self, task: list[int]) -> Step:
        """Rows of a part that have met all that they could meet."""
        side, partition, position = task
        step, task[2] = self.late.unmatched_in_memory(side, partition, position)
        if task[2] < 0:
            part = self.table.parts[side][partition]
            if not self.keeps_all(side):
                self.table.forget(side, partition)
            elif part.matched is not None:
                part.matched[:] = True  # they are out
            self._retiring.popleft()
        return step

    # State

    def held_bytes(self) -> int:
        """The table, the arriving batch and the row numbers."""
        return self.table.held_bytes() + self.found.nbytes + self.intake.held_bytes()

    def close(self) -> None:
        """Give memory back and remove files. Idempotent."""
        if self.task is not None:
            self.task.close()
        self.table.close()
        self.intake.close()
        self.task = self.cleanup = None
        self._retiring.clear()
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
                "room": self.room.pages_read,
                "shape": [self.table.partitions, self.build_side],
                "more": self.save_more(),
            }
        )
        saved.nested("table", self.table.snapshot())
        if self.intake.task is not None:
            saved.values["arriving"] = self.intake.task.save(saved)
        return saved

    def restore(self, snapshot: Snapshot) -> None:
        """Take everything over into no more memory than held it: parts fill in another order than they grew in."""
        with self.context.budget.without_spare_room():
            self._take_over(snapshot)

    def _take_over(self, snapshot: Snapshot) -> None:
        values = snapshot.values
        self._take_shape(*values["shape"])
        self.phase, self._finishing = Phase(values["phase"]), values["finishing"]
        self.ended = list(values["ended"])
        self._retiring.extend(list(task) for task in values["retiring"])
        self.rule.load(values["rule"])
        self.room.pages_read = values["room"]
        self.table.restore(snapshot.part("table"))
        if values["arriving"] is not None:
            self.intake.load(snapshot, values["arriving"])
        self.load_more(values["more"])  # what it books if there is room comes behind what must have room
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
