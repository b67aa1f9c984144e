"""The state of a sort-based join: what it holds, how memory is shared out, how all of it is saved."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.estimation.joined_blocks import JoinedBlocks
from earlyjoin.algorithms.matching.settlement import Settlement
from earlyjoin.algorithms.merge_join import merge_tree
from earlyjoin.algorithms.merge_join.merge_output import SideOutput
from earlyjoin.algorithms.merge_join.merge_tree import RunPair
from earlyjoin.algorithms.merge_join.multi_merge import MergedRun
from earlyjoin.algorithms.merge_join.replacement_selection import Selected
from earlyjoin.algorithms.merge_join.run_creation import Destination, Gathered
from earlyjoin.algorithms.merge_join.settings import SortOptions
from earlyjoin.algorithms.merge_join.shares import SortShares
from earlyjoin.algorithms.merge_join.sort_order import order_reach
from earlyjoin.algorithms.merge_join.sorted_runs import SideKeys, SortedRun, pages_of_a_merge
from earlyjoin.algorithms.merge_join.sweep_state import MemorySweep, MergeSweep, load_sweep, save_sweep
from earlyjoin.algorithms.protocol import Context, Operator, Plan
from earlyjoin.algorithms.sweep_areas.scan import sweep_or_scan
from earlyjoin.errors import InputError
from earlyjoin.state.budget import Budget, MemoryLimit, format_bytes
from earlyjoin.state.counters import Phase
from earlyjoin.state.disk.flag_file import FlagFile
from earlyjoin.state.rows.store import one_batch
from earlyjoin.state.snapshot import Snapshot


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
    sweep: MergeSweep
    outputs: tuple[SideOutput | MergedRun, ...]
    """The merged runs; none when nothing is written."""
    whole_memory: bool
    pages_at_once: int


class SortJoinState(Operator):
    """Everything that a sort-based join remembers."""

    options_type = SortOptions
    early: bool
    strict: bool = False

    def __init__(self, plan: Plan, context: Context) -> None:
        super().__init__(plan, context)
        self.options = context.own_options(SortOptions)
        key, rest = registry.driver(plan, self.description)
        self._key, how = key, plan.how
        if self.options.sorted_output:
            self.early, self.strict = False, True
        self._settle = Settlement(plan, rest, context)
        self._order, self._make_area = sweep_or_scan(key)
        self._eps = order_reach(plan, key, self._order) if self.options.sorted_output else None
        self._keys = [
            SideKeys(
                side,
                schema,
                key,
                self._order,
                how.remembers_matched(side),
                stamped=self.options.replacement_selection and self.early,
            )
            for side, schema in enumerate(plan.schemas)
        ]
        self._shares = SortShares(context.budget, plan.sides, self.options.split, context.key_nbytes)
        self._gathered = [self._rows_in_memory(keys) for keys in self._keys]
        self._flags = [FlagFile(context.spill) if keys.numbered else None for keys in self._keys]
        self._drop = [how.one_match_is_enough(side) for side in range(plan.sides)]
        self._working = [budget.account("keys of arriving rows") for budget in self._shares.gathering]
        self._pairs: list[RunPair] = []
        self._arriving: Arriving | None = None
        self._joining: MemorySweep | None = None
        self._flush_due = False
        self._merge: Merge | None = None
        self._finishing = False
        self._over = False
        self._unmatched = [0] * plan.sides
        self.joined_blocks = JoinedBlocks() if self._loads_are_samples() else None
        """A memory load is a block of the size estimate (section 3.5)."""
        self._smaller: MemoryLimit | None = None
        """The limit that is waited for: see :mod:`earlyjoin.algorithms.resizing`."""

    def _rows_in_memory(self, keys: SideKeys) -> Gathered:
        budget = self._shares.gathering[keys.side]
        if self.options.replacement_selection:
            return Selected(keys, budget, self.context.ticks, flags=keys.numbered)
        return Gathered(keys, budget, flags=keys.numbered)

    def _destination(self, side: int) -> Destination:
        context = self.context
        return Destination(
            context.spill, context.counters, self._shares.page_limit, self._flags[side], self._drop[side]
        )

    def _loads_are_samples(self) -> bool:
        # By replacement selection rows of different loads have met.
        return self.early and self.plan.sides == 2 and not self.options.replacement_selection

    def why_no_blocks(self) -> str:
        """A strict join has none, and none are independent by replacement selection."""
        if self.early:
            return "rows that replacement selection keeps in memory meet more than one load; without it there is one"
        return (
            f"{self.description.name} joins nothing before its last merge, so there is nothing to estimate from until "
            "then; pmj sorts and merges the same way and estimates from its first rows on"
        )

    @abstractmethod
    def _make_joining(self, page_rows: int) -> MemorySweep:
        """A join of the rows in memory, cut into blocks of so many rows."""

    @abstractmethod
    def _make_merge(self, inputs: list[int], budget: Budget, *, write: bool, pairs: bool, pages_at_once: int) -> Merge:
        """A merge of some pairs of runs."""

    def check_memory(self, limit: MemoryLimit) -> None:
        """Pages on disk must be small enough to be merged in the memory."""
        runs = [run for pair in self._pairs for run in pair.runs]
        runs += [run for side in self._gathered for run in side.unfinished_runs]
        if self._merge is not None:
            runs += [output.run for output in self._merge.outputs]
        pages = pages_of_a_merge(self.plan.sides)
        if limit.rows is not None:
            needed, given = pages * max((run.page_rows for run in runs if run.page_rows > 1), default=0), limit.rows
            text = f"{needed:,} rows"
        else:
            needed, given = pages * max((run.footprint for run in runs), default=0), limit.bytes or 0
            text = format_bytes(needed)
        if needed > given:
            raise InputError(
                f"pages that were written for a larger memory need {text} to be merged, and of the memory asked for "
                f"{self.description.name} would get {limit}; ask for more, or pause and start again with less"
            )

    def give_back(self, limit: MemoryLimit) -> bool:
        """Rows in memory leave it in the next steps, merges park what they can; what is at work is finished first."""
        self._smaller = limit
        self._shares.prepare_for(limit)
        if self._joining is not None:
            return False
        if self._merge is None:
            return True
        merge, chosen = self._merge, [self._pairs[number] for number in self._merge.inputs]
        mine = limit if merge.whole_memory else self._shares.for_merging(limit)
        if not merge_tree.fits(chosen, mine, merge.pages_at_once):
            return False
        merge.sweep.give_back(lambda: self.context.budget.would_fit(limit))
        return True

    def memory_changed(self) -> None:
        """The smaller limit is in force, or a larger one."""
        self._smaller = None
        self._settle.memory_changed(self.context)

    def _must_shrink(self) -> bool:
        """Is more held than the limit that is waited for allows?"""
        return self._smaller is not None and not self.context.budget.would_fit(self._smaller)

    def held_bytes(self) -> int:
        """Rows in memory, pages, areas, and what a step works with."""
        held = sum(side.nbytes for side in self._gathered) + self._shares.page_being_written.bytes
        if self._joining is not None:
            held += self._joining.nbytes
        return held + (self._merge.sweep.nbytes if self._merge is not None else 0)

    def close(self) -> None:
        """Give memory back and remove the runs."""
        if self._joining is not None:
            self._joining.close()
        if self._merge is not None:
            self._merge.sweep.close()
            for output in self._merge.outputs:
                output.abandon()
        self._joining = self._merge = self._arriving = None
        for pair in self._pairs:
            for run in pair.runs:
                run.delete()
        self._pairs = []
        for side, flags in zip(self._gathered, self._flags, strict=True):
            side.clear()
            side.delete_runs()
            if flags is not None:
                flags.delete()
        for account in self._working:
            account.clear()
        self._shares.page_being_written.clear()

    def snapshot(self) -> Snapshot:
        """Rows in memory, runs, flags, and where the work stands; keys are made again from the rows."""
        saved = Snapshot(
            values={
                "phase": self.phase.value,
                "finishing": self._finishing,
                "ended": list(self._shares.ended),
                "split": self._shares.is_split,
                "over": self._over,
                "flush_due": self._flush_due,
                "unmatched": list(self._unmatched),
                "order": self._order.state(),
                "blocks": self.joined_blocks.to_values() if self.joined_blocks is not None else None,
                "arriving": None,
                "joining": None,
                "merge": None,
            }
        )
        for number, (side, flags) in enumerate(zip(self._gathered, self._flags, strict=True)):
            saved.values[f"rows-{number}"] = side.save_all(saved, f"rows-{number}")
            saved.values[f"flags-{number}"] = flags.save(saved, f"flags-{number}") if flags is not None else 0
        saved.values["pairs"] = [
            {
                "level": pair.level,
                "joined": pair.joined,
                "runs": [run.save(saved) for run in pair.runs],
            }
            for pair in self._pairs
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
        return {
            "inputs": merge.inputs,
            "whole_memory": merge.whole_memory,
            "pages_at_once": merge.pages_at_once,
            "pairs": merge.sweep.pairs,
            "outputs": [output.save(saved, f"output-{side}") for side, output in enumerate(merge.outputs)],
            "sweep": save_sweep(merge.sweep, saved, "merge"),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Rows into memory, runs into the spill directory, and the work in hand."""
        values = snapshot.values
        self.phase, self._finishing = Phase(values["phase"]), values["finishing"]
        for ended in np.flatnonzero(values["ended"]):
            self._shares.end(int(ended))
        if self._shares.is_split and not values["split"]:
            self._shares.give_up_split()
        self._over, self._flush_due, self._unmatched = values["over"], values["flush_due"], list(values["unmatched"])
        self._order.restore(values["order"])
        for number, (side, flags) in enumerate(zip(self._gathered, self._flags, strict=True)):
            side.load_all(snapshot, f"rows-{number}", values[f"rows-{number}"], self._destination(number))
            if flags is not None:
                flags.load(snapshot, f"flags-{number}", values[f"flags-{number}"])
        for pair in values["pairs"]:
            runs = tuple(SortedRun.load(snapshot, run, self.context.spill) for run in pair["runs"])
            self._pairs.append(RunPair(runs, pair["level"], pair["joined"]))
        if self.joined_blocks is not None:
            self.joined_blocks.go_on(values["blocks"])
        if values["arriving"] is not None:
            place = values["arriving"]
            self._arriving = Arriving(place["side"], one_batch(snapshot.tables["arriving"]), place["offset"])
        if values["joining"] is not None:
            self._joining = self._make_joining(values["joining"]["page_rows"])
            load_sweep(self._joining, snapshot, "joining", values["joining"]["sweep"])
        if values["merge"] is not None:
            self._restore_merge(snapshot, values["merge"])

    def _restore_merge(self, snapshot: Snapshot, values: dict[str, Any]) -> None:
        budget = self.context.budget if values["whole_memory"] else self._shares.set_aside_for_merging()
        write = bool(values["outputs"])
        at_once = values["pages_at_once"]
        self._merge = merge = self._make_merge(
            values["inputs"], budget, write=write, pairs=values["pairs"], pages_at_once=at_once
        )
        for side, (output, saved) in enumerate(zip(merge.outputs, values["outputs"], strict=True)):
            output.load(snapshot, f"output-{side}", SortedRun.load(snapshot, saved, self.context.spill))
        load_sweep(merge.sweep, snapshot, "merge", values["sweep"])
