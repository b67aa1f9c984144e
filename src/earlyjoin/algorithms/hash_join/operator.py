"""The operator that XJoin, HMJ, RPJ, DHJ and EHJ share: they differ in their policies and nothing else.

::

    arrive ──▶ Intake: probe, insert or spool; memory full: victims of the policy leave
    react  ──▶ Task of the policy (none: nothing to do), step by step; it stays in work across arrivals
    end    ──▶ Retiring: rows in memory that have met the whole of the ended side, unmatched ones out
    finish ──▶ task in work to its end ──▶ clean-up, partition by partition

An algorithm is a subclass that names its policy: who leaves and how, the duplicate rule, what is done in a silence. All
work on one state (:class:`JoinState`), and nobody but the driver holds the operator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.hash_join.disk_pairs import unmatched_in_memory
from earlyjoin.algorithms.hash_join.eviction import Eviction
from earlyjoin.algorithms.hash_join.intake import Intake
from earlyjoin.algorithms.hash_join.join_state import JoinState, build_side_of, partitions_of
from earlyjoin.algorithms.hash_join.policy import Policy
from earlyjoin.algorithms.hash_join.settings import HashSettings, side_number
from earlyjoin.algorithms.hash_join.table.table import PartitionedTable
from earlyjoin.algorithms.hash_join.tasks import FinalWork
from earlyjoin.algorithms.matching.settlement import Settlement
from earlyjoin.algorithms.protocol import Context, Operator, Plan, Slice, Step
from earlyjoin.state.counters import Phase
from earlyjoin.state.snapshot import Snapshot


class PartitionedHashJoin(Operator):
    """A join on one partitioned table; what sets an algorithm apart is its policy."""

    options_type: ClassVar[type[HashSettings]] = HashSettings
    policy_type: ClassVar[type[Policy]]

    def __init__(self, plan: Plan, context: Context, settings: HashSettings | None = None) -> None:
        super().__init__(plan, context)
        self._begin(settings if settings is not None else context.own_options(self.options_type))

    def _begin(self, settings: HashSettings) -> None:
        """Nothing has arrived."""
        plan, context = self.plan, self.context
        key, rest = registry.driver(plan, self.description)
        traits, one_side = self.policy_type.traits, side_number(settings.one_side)
        build_side = build_side_of(settings, context)
        left, right = (
            one_side == 1 - side or (plan.how.one_match_is_enough(side) and one_side != side) for side in range(2)
        )
        settle = Settlement(plan, rest, context)
        pairs_account = context.budget.account("output row numbers")
        pairs_account.reserve(2 * 2 * 8 * context.output_rows)  # what a probe fills, and the copies that go out
        table = PartitionedTable(
            plan, key, context, settings, partitions_of(settings, plan, context),
            expendable=(left, right), striped=traits.striped,
        )  # fmt: skip
        self.state = JoinState(
            plan=plan, context=context, settings=settings, traits=traits, key=key, settle=settle, one_side=one_side,
            build_side=build_side, expendable=(left, right), pairs=np.empty((2, context.output_rows), dtype=np.int64),
            pairs_account=pairs_account, table=table, rule=self.policy_type.rule(table, build_side),
        )  # fmt: skip
        self.table, self.build_side, self.one_side = table, build_side, one_side
        self.policy = self.policy_type(self.state)
        self.eviction = Eviction(self.state, self.policy)
        self.intake = Intake(self.state, self.eviction, self.policy)
        self._retiring: deque[list[int]] = deque()
        self._finishing = False
        self.cleanup: FinalWork | None = None
        if traits.build_first:
            for partition in range(table.partitions):
                table.freeze(1 - build_side, partition)

    # The protocol

    def arrive(self, side: int, batch: pa.RecordBatch) -> Iterator[Step]:
        """Join the batch with what is in memory, and keep it."""
        self.phase = Phase.ARRIVING  # a reactive call may have been abandoned
        self.intake.begin(side, batch)
        return self.resume()

    def end(self, side: int) -> Iterator[Step]:
        """Rows of the other side that are in memory with all of the ended side's partition are through."""
        self.policy.input_ended(side)
        self.phase = Phase.ARRIVING
        self.state.ended[side] = True
        complete = self.state.complete(side)
        for partition in np.flatnonzero(complete & (self.table.in_memory[1 - side] > 0)):
            self._retiring.append([1 - side, int(partition), 0])
        return self.resume()

    def react(self, work: Slice) -> Iterator[Step]:
        """Work on the task in hand, or on the next one, until the slice is over; with whole tasks, until its end."""
        self.phase = Phase.REACTIVE
        whole = self.state.settings.hand_over == "task"
        while not work.over or (whole and self.state.task is not None):
            if self.state.task is None:
                self.state.task = self.policy.next_task()
                if self.state.task is None:
                    break
            work.spend()
            yield self.count(self.state.task_step())
        self.phase = Phase.CLEANUP if self._finishing else Phase.ARRIVING

    def finish(self) -> Iterator[Step]:
        """Join whatever was never joined."""
        self.phase = Phase.CLEANUP
        self._finishing = True
        return self.resume()

    def has_reactive_work(self) -> bool:
        """Is a task in work, or one to be had?"""
        return self.state.task is not None or self.policy.has_task()

    def resume(self) -> Iterator[Step]:
        """Go on with the arriving batch, the retiring rows or the clean-up."""
        while self.state.arriving is not None:
            yield self.count(self.intake.step())
            if self.state.task is not None and self.state.task.ready():
                yield self._background_step()
        while self._retiring:
            yield self.count(self._retiring_step(self._retiring[0]))
        while self._finishing:
            if self.state.task is not None:
                yield self.count(self.state.task_step())
                continue
            if self.cleanup is None:
                for side in range(2):
                    for partition in range(self.table.partitions):
                        self.table.close_runs(side, partition)
                self.cleanup = self.policy.cleanup()
            if self.cleanup.done:
                return
            yield self.count(self.cleanup.step())

    def _background_step(self) -> Step:
        """What a thread found while rows arrived."""
        phase, self.phase = self.phase, Phase.REACTIVE
        step = self.count(self.state.task_step())
        self.phase = phase
        return step

    def _retiring_step(self, place: list[int]) -> Step:
        """Rows of a part that have met all that they could meet."""
        side, partition, position = place
        step, place[2] = unmatched_in_memory(self.state, side, partition, position)
        if place[2] < 0:
            part = self.table.parts[side][partition]
            if not self.state.keeps_all(side):
                self.table.forget(side, partition)
            elif part.matched is not None:
                part.matched[:] = True  # they are out
            self._retiring.popleft()
        return step

    # State

    def held_bytes(self) -> int:
        """The table, the arriving batch, the row numbers, and what tasks and clean-up hold."""
        state = self.state
        holders = [holder for holder in (state.arriving, state.task, self.cleanup) if holder is not None]
        return self.table.held_bytes() + state.pairs.nbytes + sum(holder.nbytes for holder in holders)

    def close(self) -> None:
        """Give memory back and remove files. Idempotent."""
        if self.cleanup is not None:
            self.cleanup.close()
        self.cleanup = None
        self.policy.close()
        self.state.close()
        self.intake.close()
        self._retiring.clear()

    def snapshot(self) -> Snapshot:
        """The table, the rule, and where the work stands."""
        state = self.state
        saved = Snapshot(
            values={
                "phase": self.phase.value,
                "finishing": self._finishing,
                "ended": list(state.ended),
                "retiring": [list(place) for place in self._retiring],
                "rule": state.rule.save(),
                "task": state.task.save() if state.task is not None else None,
                "cleanup": self.cleanup.save() if self.cleanup is not None else None,
                "arriving": None,
                "room": self.eviction.pages_read,
                "shape": [self.table.partitions, state.build_side],
                "more": self.policy.save(),
            }
        )
        saved.nested("table", self.table.snapshot())
        if state.arriving is not None:
            saved.values["arriving"] = state.arriving.save(saved)
        return saved

    def restore(self, snapshot: Snapshot) -> None:
        """Take everything over into no more memory than held it: parts fill in another order than they grew in."""
        partitions, build_side = snapshot.values["shape"]
        if (partitions, build_side) != (self.table.partitions, self.state.build_side):
            # Other memory or inputs led to others here.
            self.close()
            settings = self.state.settings
            self._begin(replace(settings, partitions=partitions, build_side=("left", "right")[build_side]))
        with self.context.budget.without_spare_room():
            self._take_over(snapshot)

    def _take_over(self, snapshot: Snapshot) -> None:
        values, state = snapshot.values, self.state
        self.phase, self._finishing = Phase(values["phase"]), values["finishing"]
        state.ended[:] = values["ended"]
        self._retiring.extend(list(place) for place in values["retiring"])
        state.rule.load(values["rule"])
        self.eviction.pages_read = values["room"]
        self.table.restore(snapshot.part("table"))
        if values["arriving"] is not None:
            self.intake.load(snapshot, values["arriving"])
        self.policy.load(values["more"])  # what it books if there is room comes behind what must have room
        if values["task"] is not None:
            state.task = self.policy.load_task(values["task"])
        if values["cleanup"] is not None:
            self.cleanup = self.policy.cleanup()
            self.cleanup.load(values["cleanup"])
