"""The state of a sort-based join: what it holds, how memory is shared out, how all of it is saved."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.block_sweep import BlockSweep
from earlyjoin.algorithms.group_join import GroupJoin
from earlyjoin.algorithms.merge_output import MergeOutput, SideOutput
from earlyjoin.algorithms.merge_tree import RunPair
from earlyjoin.algorithms.multi_sweep import MultiSweep
from earlyjoin.algorithms.multi_window import MultiOutput, RunOutput
from earlyjoin.algorithms.protocol import Context, Operator, Plan
from earlyjoin.algorithms.run_creation import Gathered
from earlyjoin.algorithms.scan_area import sweep_or_scan
from earlyjoin.algorithms.settlement import Settlement
from earlyjoin.algorithms.sorted_runs import MatchedFile, SideKeys, SortedRun, page_limit
from earlyjoin.algorithms.sweep_state import load_sweep, save_sweep
from earlyjoin.state.budget import Budget
from earlyjoin.state.counters import Phase
from earlyjoin.state.rows import one_batch
from earlyjoin.state.snapshot import Snapshot

Sweep = BlockSweep | GroupJoin
"""What joins the rows in memory."""

_READING_SHARE = 1 / 8
_READING_NBYTES = 32 * 1024
_SWEEP_SHARE = 0.2


@dataclass(slots=True)
class Arriving:
    """A batch on its way in: rows before ``offset`` are in memory."""

    side: int
    batch: pa.RecordBatch
    offset: int = 0


@dataclass(slots=True)
class Merge:
    """Pairs of runs being merged. ``inputs`` are their places in the list of pairs; new pairs come behind them."""

    inputs: list[int]
    sweep: BlockSweep | MultiSweep
    output: MergeOutput | MultiOutput | None
    whole_memory: bool
    pages_at_once: int


class SortJoinState(Operator):
    """Everything that a sort-based join remembers."""

    fan_in: ClassVar[int] = 10
    """Most runs of a side that one merge takes."""
    early: ClassVar[bool]
    strict: ClassVar[bool] = False

    def __init__(self, plan: Plan, context: Context) -> None:
        super().__init__(plan, context)
        key, rest = registry.driver(plan, self.description)
        self._key, how = key, plan.how
        self._settle = Settlement(plan, rest, context)
        self._order, self._make_area = sweep_or_scan(key)
        self._keys = [
            SideKeys(side, schema, key, self._order, how.remembers_matched(side))
            for side, schema in enumerate(plan.schemas)
        ]
        whole = context.budget.limit.bytes
        least = min(_READING_NBYTES, whole // 2) if whole is not None else 1024
        least_rows = 2 * plan.sides - 2
        self._reading, memory = context.budget.split(_READING_SHARE, least_rows=least_rows, least_bytes=least)
        self._page_limit = page_limit(self._reading.limit, plan.sides)
        self._page_being_written = self._reading.account("page being written")
        self._page_being_written.reserve(self._page_limit.bytes or 0)
        # Rows that are swept in memory are not counted twice, so a budget in rows needs no share for it.
        self._sweeping, self._memory = (memory, memory) if whole is None else memory.split(_SWEEP_SHARE)
        self._gathered = [Gathered(keys, self._memory, flags=keys.numbered) for keys in self._keys]
        self._flags = [MatchedFile(context.spill) if keys.numbered else None for keys in self._keys]
        self._drop = [how.one_match_is_enough(side) for side in range(plan.sides)]
        self._working = self._memory.account("keys of arriving rows")
        self._pairs: list[RunPair] = []
        self._arriving: Arriving | None = None
        self._joining: Sweep | None = None
        self._flush_due = False
        self._merge: Merge | None = None
        self._finishing = False
        self._over = False
        self._unmatched = [0] * plan.sides

    @abstractmethod
    def _make_joining(self, page_rows: int) -> Sweep:
        """A join of the rows in memory, cut into blocks of so many rows."""

    @abstractmethod
    def _make_merge(self, inputs: list[int], budget: Budget, *, write: bool, pairs: bool, pages_at_once: int) -> Merge:
        """A merge of some pairs of runs."""

    def held_bytes(self) -> int:
        """Rows in memory, pages, areas, and what a step works with."""
        held = sum(side.nbytes for side in self._gathered) + self._page_being_written.bytes
        if self._joining is not None:
            held += self._joining.nbytes
        return held + (self._merge.sweep.nbytes if self._merge is not None else 0)

    def close(self) -> None:
        """Give memory back and remove the runs."""
        if self._joining is not None:
            self._joining.close()
        if self._merge is not None:
            self._merge.sweep.close()
            for output in self._merge.output.sides if self._merge.output is not None else ():
                output.abandon()
        self._joining = self._merge = self._arriving = None
        for pair in self._pairs:
            for run in pair.runs:
                run.delete()
        self._pairs = []
        for side, flags in zip(self._gathered, self._flags, strict=True):
            side.clear()
            if flags is not None:
                flags.delete()
        self._working.clear()
        self._page_being_written.clear()

    def snapshot(self) -> Snapshot:
        """Rows in memory, runs, flags, and where the work stands; keys are made again from the rows."""
        saved = Snapshot(
            values={
                "phase": self.phase.value,
                "finishing": self._finishing,
                "over": self._over,
                "flush_due": self._flush_due,
                "unmatched": list(self._unmatched),
                "order": self._order.state(),
                "joined": [side.joined for side in self._gathered],
                "arriving": None,
                "joining": None,
                "merge": None,
            }
        )
        for number, (side, flags) in enumerate(zip(self._gathered, self._flags, strict=True)):
            saved.tables[f"rows-{number}"] = pa.Table.from_batches([side.all_rows()])
            if side.matched is not None:
                saved.arrays[f"matched-{number}"] = side.matched.copy()
            saved.values[f"flags-{number}"] = flags.save(saved, f"flags-{number}") if flags is not None else 0
        saved.values["pairs"] = [
            {"level": pair.level, "runs": [run.save(saved, f"run-{n}-{side}") for side, run in enumerate(pair.runs)]}
            for n, pair in enumerate(self._pairs)
        ]
        if self._arriving is not None:
            saved.values["arriving"] = {"side": self._arriving.side, "offset": self._arriving.offset}
            saved.tables["arriving"] = pa.Table.from_batches([self._arriving.batch])
        if self._joining is not None:
            sweep = save_sweep(self._joining, saved, "joining")
            saved.values["joining"] = {"page_rows": self._joining.page_rows, "sweep": sweep}
        if self._merge is not None:
            saved.values["merge"] = self._save_merge(saved, self._merge)
        return saved

    def _save_merge(self, saved: Snapshot, merge: Merge) -> dict[str, Any]:
        outputs: tuple[SideOutput | RunOutput, ...] = merge.output.sides if merge.output is not None else ()
        return {
            "inputs": merge.inputs,
            "whole_memory": merge.whole_memory,
            "pages_at_once": merge.pages_at_once,
            "pairs": merge.sweep.pairs,
            "outputs": [output.save(saved, f"output-{side}") for side, output in enumerate(outputs)],
            "sweep": save_sweep(merge.sweep, saved, "merge"),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Rows into memory, runs into the spill directory, and the work in hand."""
        values = snapshot.values
        self.phase, self._finishing = Phase(values["phase"]), values["finishing"]
        self._over, self._flush_due, self._unmatched = values["over"], values["flush_due"], list(values["unmatched"])
        self._order.restore(values["order"])
        for number, (side, flags) in enumerate(zip(self._gathered, self._flags, strict=True)):
            side.restore(one_batch(snapshot.tables[f"rows-{number}"]), snapshot.arrays.get(f"matched-{number}"))
            side.joined = values["joined"][number]
            if flags is not None:
                flags.load(snapshot, f"flags-{number}", values[f"flags-{number}"])
        for pair in values["pairs"]:
            runs = tuple(SortedRun.load(snapshot, run, self.context.spill) for run in pair["runs"])
            self._pairs.append(RunPair(runs, pair["level"]))
        if values["arriving"] is not None:
            place = values["arriving"]
            self._arriving = Arriving(place["side"], one_batch(snapshot.tables["arriving"]), place["offset"])
        if values["joining"] is not None:
            self._joining = self._make_joining(values["joining"]["page_rows"])
            load_sweep(self._joining, snapshot, "joining", values["joining"]["sweep"])
        if values["merge"] is not None:
            self._restore_merge(snapshot, values["merge"])

    def _restore_merge(self, snapshot: Snapshot, values: dict[str, Any]) -> None:
        budget = self.context.budget if values["whole_memory"] else self._reading
        write = bool(values["outputs"])
        at_once = values["pages_at_once"]
        self._merge = merge = self._make_merge(
            values["inputs"], budget, write=write, pairs=values["pairs"], pages_at_once=at_once
        )
        if merge.output is not None:
            outputs: tuple[SideOutput | RunOutput, ...] = merge.output.sides
            for side, (output, saved) in enumerate(zip(outputs, values["outputs"], strict=True)):
                output.load(snapshot, f"output-{side}", SortedRun.load(snapshot, saved, self.context.spill))
        load_sweep(merge.sweep, snapshot, "merge", values["sweep"])
