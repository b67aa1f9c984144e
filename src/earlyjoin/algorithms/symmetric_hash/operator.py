"""Symmetric hash join (SHJ): both inputs in memory, each row probes the other side and is kept for those to come.

Wilschut and Apers' pipelined hash join, the base that XJoin, HMJ, RPJ and EHJ extend with disk (EHJ paper, section
2). It cannot spill.

::

    arrive(side) ──▶ insert into own side ──▶ Probe(other side) ──▶ [side's partner has ended: Unmatched of the batch]
    end(side)    ──▶ Unmatched(rows of the other side) ──▶ forget the other side's rows: nobody will probe them again

Once a side has ended, rows of the other side only probe: they are not kept, and if they found nothing they go out as
unmatched at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.matching.admission import admit
from earlyjoin.algorithms.matching.settlement import Settlement, one_sided
from earlyjoin.algorithms.protocol import Context, Description, Operator, Plan, Slice, Step
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.base import Capability
from earlyjoin.predicates.encoding.keys import Bool, Keys
from earlyjoin.state.counters import Phase
from earlyjoin.state.hash_index import Cursor
from earlyjoin.state.rows.store import BatchRows, Rows, one_batch
from earlyjoin.state.side_store import MATCHED, SideStore
from earlyjoin.state.snapshot import Snapshot

_NOT_KEPT = -1


@dataclass(slots=True)
class Probe:
    """An arrived batch on its way through the other side."""

    side: int
    batch: pa.RecordBatch
    keys: Keys
    first: int
    """Number of its first row in its own side, or _NOT_KEPT."""
    cursor: Cursor
    matched: Bool | None = None
    """Flags of the batch's rows when they are not kept."""


@dataclass(slots=True)
class Unmatched:
    """Rows without a match on their way out: those of a whole side, or of a batch that was not kept."""

    side: int
    batch: pa.RecordBatch | None
    matched: Bool | None
    position: int = 0


@registry.register
class SymmetricHashJoin(Operator):
    """One hash table for each side, in memory: a row probes the other side's and is kept in its own."""

    description = Description(
        name="shj",
        title="symmetric hash join",
        paper="Wilschut and Apers 1991; EHJ section 2",
        needs=Capability.HASHABLE,
        spills=False,
        joins_on_arrival=True,
    )

    def __init__(self, plan: Plan, context: Context) -> None:
        super().__init__(plan, context)
        key, rest = registry.driver(plan, self.description)
        self._key, self._settle = key, Settlement(plan, rest, context)
        self._sides = [
            SideStore(schema, context.budget, *([MATCHED] if plan.how.remembers_matched(side) else []), index=True)
            for side, schema in enumerate(plan.schemas)
        ]
        self._ended = [False, False]
        self._work: deque[Probe | Unmatched] = deque()
        self._working = context.budget.account("keys of the arriving batch")
        self._out = context.budget.account("output row numbers")
        self._out.reserve(2 * 2 * 8 * context.output_rows)  # what a probe fills, and the copies that go out
        self._found = np.empty((2, context.output_rows), dtype=np.int64)

    def arrive(self, side: int, batch: pa.RecordBatch) -> Iterator[Step]:
        """Keep the batch and probe the other side with it."""
        mine = self._sides[side]
        self.context.counters.rows_in[side] += batch.num_rows
        batch, keys = admit(self.plan, side, batch, self._key)
        first, matched = _NOT_KEPT, None
        try:
            self._working.reserve(keys.nbytes)
            if not self._ended[1 - side]:
                first = mine.insert(batch, keys)
            elif self.plan.how.remembers_matched(side):
                matched = np.zeros(batch.num_rows, dtype=np.bool_)
                self._working.reserve(matched.nbytes)
        except BudgetExceeded as error:
            raise self._out_of_memory() from error
        self._work.append(Probe(side, batch, keys, first, Cursor(), matched))
        return self.resume()

    def end(self, side: int) -> Iterator[Step]:
        """Rows of the other side that have no match by now have none."""
        self._ended[side] = True
        self._work.append(Unmatched(1 - side, None, None))
        return self.resume()

    def react(self, work: Slice) -> Iterator[Step]:
        """Nothing ever lies on disk."""
        return iter(())

    def finish(self) -> Iterator[Step]:
        """Everything went out when the sides ended."""
        self.phase = Phase.CLEANUP
        return self.resume()

    def has_reactive_work(self) -> bool:
        """Never: nothing lies on disk."""
        return False

    def resume(self) -> Iterator[Step]:
        """Work through what has arrived, a bounded step at a time."""
        while self._work:
            task = self._work[0]
            yield self.count(self._probe(task) if isinstance(task, Probe) else self._unmatched(task))

    def _probe(self, task: Probe) -> Step:
        how, other = self.plan.how, self._sides[1 - task.side]
        rows = BatchRows(task.batch)
        found, comparisons = other.probe(
            task.keys,
            task.cursor,
            self._found[0],
            self._found[1],
            once=how.one_match_is_enough(task.side) and self._settle.candidates_always_match,
            skip=other.matched if how.one_match_is_enough(1 - task.side) else None,
        )
        self.context.counters.comparisons += comparisons
        if task.cursor.row >= len(task.keys):
            self._work.popleft()
            self._working.clear()
            if task.matched is not None and how.gives_unmatched(task.side):
                self._working.reserve(task.matched.nbytes)
                self._work.appendleft(Unmatched(task.side, task.batch, task.matched))
        if not found:
            return None
        mine, theirs = self._found[0, :found].copy(), self._found[1, :found].copy()
        flags = self._flags_of(task)
        if task.side == 0:
            return self._settle((rows, other.rows), mine, theirs, (flags, other.matched))
        return self._settle((other.rows, rows), theirs, mine, (other.matched, flags))

    def _flags_of(self, task: Probe) -> Bool | None:
        """The flags of the arriving rows, wherever they are kept."""
        flags = self._sides[task.side].matched
        if task.first == _NOT_KEPT or flags is None:
            return task.matched
        return flags[task.first : task.first + task.batch.num_rows]

    def _unmatched(self, task: Unmatched) -> Step:
        """The next rows without a match; after the last ones the side is forgotten."""
        side = self._sides[task.side]
        source: Rows = side.rows if task.batch is None else BatchRows(task.batch)
        flags = side.matched if task.batch is None else task.matched
        stop = len(source)
        numbers = np.empty(0, dtype=np.int64)
        if self.plan.how.gives_unmatched(task.side) and flags is not None:
            stop = min(stop, task.position + self.context.output_rows)
            numbers = task.position + np.flatnonzero(~flags[task.position : stop])
            task.position = stop
        if not len(numbers) and stop >= len(source):
            # Only now: a side is forgotten in a step of its own, when the rows of the step before have been built.
            self._work.popleft()
            if task.batch is None:
                side.clear()
            else:
                self._working.clear()
            return None
        return one_sided(task.side, source, numbers)

    def _out_of_memory(self) -> BudgetExceeded:
        left, right = self.context.counters.rows_in
        able = registry.names_that_can(self.plan, spills=True)
        return BudgetExceeded(
            f"memory of {self.context.budget.whole} is full after {left:,} rows of the left and {right:,} rows of the "
            f"right input, and shj (symmetric hash join) cannot spill; "
            f"give more memory, or choose an algorithm that can spill: {', '.join(able)}"
        )

    def held_bytes(self) -> int:
        """Stores, output numbers, and the keys and flags of a batch in work."""
        held = sum(side.nbytes for side in self._sides) + self._found.nbytes
        for task in self._work:
            held += task.keys.nbytes if isinstance(task, Probe) else 0
            held += task.matched.nbytes if task.matched is not None else 0
        return held

    def close(self) -> None:
        """Give the memory back."""
        for side in self._sides:
            side.clear()
        self._work.clear()
        self._working.clear()
        self._out.clear()
        self._found = np.empty((2, 0), dtype=np.int64)

    def snapshot(self) -> Snapshot:
        """Rows, flags and the work in hand; keys and indexes are made again from the rows."""
        saved = Snapshot(values={"ended": list(self._ended), "phase": self.phase.value, "work": []})
        for number, side in enumerate(self._sides):
            side.save(saved, f"rows-{number}")
        for number, task in enumerate(self._work):
            saved.values["work"].append(_task_values(task))
            if task.batch is not None:
                saved.tables[f"work-{number}"] = pa.Table.from_batches([task.batch])
            if task.matched is not None:
                saved.arrays[f"work-{number}"] = task.matched
        return saved

    def restore(self, snapshot: Snapshot) -> None:
        """Insert the rows again (chains come out the same) and take up the work in hand."""
        self._ended = list(snapshot.values["ended"])
        self.phase = Phase(snapshot.values["phase"])
        for number, side in enumerate(self._sides):
            for batch, notes in side.saved(snapshot, f"rows-{number}"):
                side.insert(batch, self._key.encode(number, batch), **notes)
        for number, values in enumerate(snapshot.values["work"]):
            self._work.append(self._task(snapshot, f"work-{number}", values))

    def _task(self, snapshot: Snapshot, name: str, values: dict[str, Any]) -> Probe | Unmatched:
        side = values["side"]
        matched = snapshot.arrays.get(name)
        if matched is not None:
            self._working.reserve(matched.nbytes)
        batch = one_batch(snapshot.tables[name]) if name in snapshot.tables else None
        if values["kind"] == "unmatched" or batch is None:
            return Unmatched(side, batch, matched, values["position"])
        keys = self._key.encode(side, batch)
        self._working.reserve(keys.nbytes)
        return Probe(side, batch, keys, values["first"], Cursor(values["row"], values["node"]), matched)


def _task_values(task: Probe | Unmatched) -> dict[str, Any]:
    if isinstance(task, Unmatched):
        return {"kind": "unmatched", "side": task.side, "position": task.position}
    return {
        "kind": "probe",
        "side": task.side,
        "first": task.first,
        "row": int(task.cursor.row),
        "node": int(task.cursor.node),
    }
