"""What all sort-based joins share: initial runs, merges, clean-up (PMJ section 3.1, figure 2).

::

    arriving:  gather rows of both sides ──▶ [early: join in memory, at 64 rows, at 128, … and when memory is full]
                  └ memory full: both sides are sorted and written as a pair of runs
    reactive:  [early: join what is in memory] ──▶ merge pairs of runs of one level into one pair of the next
    cleanup:   the rest in memory becomes the last pair ──▶ merge until one merge can take all ──▶ last merge: joins,
               and gives unmatched rows

The members of the family differ in two flags. ``early``: join during run creation and every merge (PMJ), or in the last
merge alone. ``strict``: merge until one run a side is left and is written, before anything is joined.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.matching.admission import admit
from earlyjoin.algorithms.matching.settlement import one_sided
from earlyjoin.algorithms.merge_join import merge_tree
from earlyjoin.algorithms.merge_join.block_sweep import BlockSweep
from earlyjoin.algorithms.merge_join.blocks import RunSequence, Sequence
from earlyjoin.algorithms.merge_join.merge_output import MergeOutput, SideOutput
from earlyjoin.algorithms.merge_join.merge_tree import RunPair
from earlyjoin.algorithms.merge_join.ordered_sweep import OrderedSweep
from earlyjoin.algorithms.merge_join.sorted_runs import SortedRun, too_large
from earlyjoin.algorithms.merge_join.state import Arriving, Merge, SortJoinState
from earlyjoin.algorithms.merge_join.sweep_state import MemorySweep
from earlyjoin.algorithms.protocol import Slice, Step
from earlyjoin.errors import BudgetExceeded
from earlyjoin.state.budget import Budget
from earlyjoin.state.counters import Phase
from earlyjoin.state.rows.sizes import batch_nbytes

_FIRST_JOIN_ROWS = 64
_PIECE_ROWS = 4096
_BLOCK_ROWS = 16384
_BLOCKS = 8
"""Blocks that the share for sweeping in memory is meant to hold."""


class SortJoin(SortJoinState):
    """Run creation, merges and clean-up over sorted runs; subclasses say when rows are joined."""

    def arrive(self, side: int, batch: pa.RecordBatch) -> Iterator[Step]:
        """Gather the rows; when enough are there, join them or write them."""
        self.phase = Phase.ARRIVING
        self.context.counters.rows_in[side] += batch.num_rows
        self._arriving = Arriving(side, batch)
        return self.resume()

    def end(self, side: int) -> Iterator[Step]:
        """Its part of the memory goes to the other side."""
        self._shares.end(side)
        return self.resume()

    def react(self, work: Slice) -> Iterator[Step]:
        """Join in memory, then merge, until the slice is over."""
        self.phase = Phase.REACTIVE
        while not work.over and self.has_reactive_work():
            work.spend()
            yield self.count(self._react_step())
        self.phase = Phase.CLEANUP if self._finishing else Phase.ARRIVING

    def finish(self) -> Iterator[Step]:
        """Write what is left in memory, if anything was written before, and merge until all is joined."""
        self.phase = Phase.CLEANUP
        self._finishing = True
        return self.resume()

    def has_reactive_work(self) -> bool:
        """Is there something to join in memory, or are there runs to merge?"""
        if self._over or self._arriving is not None:
            return False
        if self._joining is not None or self._merge is not None or (self.early and self._unjoined()):
            return True
        return (self._must_shrink() and any(map(len, self._gathered))) or bool(self._mergeable())

    def _mergeable(self) -> list[int]:
        """The pairs of runs to merge in idle time."""
        inputs = merge_tree.to_merge_in_idle_time(self._pairs, self.options.fan_in)
        if self._shares.has_shrunk:  # pages may be too large for the part of the memory that idle merges have
            some = [self._pairs[number] for number in inputs[:2]]
            if not some or not merge_tree.fits(some, self._shares.for_merging(self.context.budget.limit)):
                return []
        return inputs

    def resume(self) -> Iterator[Step]:
        """Go on with the arriving batch, or with the clean-up."""
        while self._arriving is not None:
            yield self.count(self._arrive_step(self._arriving))
        while self._finishing and not self._over:
            yield self.count(self._finish_step())

    # Arriving

    def _arrive_step(self, arriving: Arriving) -> Step:
        if self._joining is not None:
            return self._join_step(self._joining)
        if self._must_shrink() and (any(map(len, self._gathered)) or self._merge is not None):
            return self._shrink_step()
        if self._flush_due:
            self._make_runs()
        elif arriving.offset >= arriving.batch.num_rows:
            self._arriving = None
        elif not self._insert_piece(arriving):
            self._make_room(arriving)
        elif self.early and self._join_is_due():
            self._start_joining()
        return None

    def _shrink_step(self) -> Step:
        """The memory is to become smaller: everything leaves it, as when it is full."""
        if self.early and self._unjoined():
            self._start_joining()
        elif any(map(len, self._gathered)):
            self._make_runs(all_rows=True)
        elif self._merge is not None:
            return self._merge_step(self._merge)
        return None

    def _insert_piece(self, arriving: Arriving) -> bool:
        """Take in some of the remaining rows; False when not even one fits."""
        gathered, working = self._gathered[arriving.side], self._working[arriving.side]
        count = min(arriving.batch.num_rows - arriving.offset, _PIECE_ROWS)
        room = self._next_join_rows() - sum(map(len, self._gathered))
        if self.early and room > 0:  # a side that comes alone is not joined, however many rows there are
            count = min(count, room)
        while count:
            rows, keys = admit(self.plan, arriving.side, arriving.batch.slice(arriving.offset, count), self._key)
            try:
                working.reserve(keys.nbytes)
                if len(keys):
                    gathered.insert(rows, keys)
                arriving.offset += count
                if self.joined_blocks is not None:
                    self.joined_blocks.take(arriving.side, count, len(keys))
                return True
            except BudgetExceeded:
                count //= 2
            finally:
                working.clear()
        return False

    def _make_room(self, arriving: Arriving) -> None:
        """Memory is full: join what was not joined, and write everything."""
        if not any(map(len, self._gathered)):
            if self._shares.is_split:
                self._shares.give_up_split()
                return
            raise too_large(batch_nbytes(arriving.batch.slice(arriving.offset, 1)), self.context.budget)
        self._flush_due = True
        if self.early and self._unjoined():
            self._start_joining()

    # Joining in memory

    def _next_join_rows(self) -> int:
        """Rows in memory at which the next join is due: twice as many as at the last."""
        return max(_FIRST_JOIN_ROWS, 2 * sum(side.joined for side in self._gathered))

    def _join_is_due(self) -> bool:
        return sum(map(len, self._gathered)) >= self._next_join_rows() and self._unjoined()

    def _unjoined(self) -> bool:
        """Are there rows in memory that have not met those of the other sides?"""
        return all(map(len, self._gathered)) and any(side.joined < len(side) for side in self._gathered)

    def _start_joining(self) -> None:
        self._joining = self._make_joining(self._block_rows())

    def _make_joining(self, page_rows: int) -> MemorySweep:
        """Sort both sides. Rows that were joined before have label 0 on both, so only new pairs are met."""
        sequences: list[Sequence] = []
        for side, gathered in enumerate(self._gathered):
            sequences += gathered.sequences((0, 1 + side), page_rows)
        if self._eps is not None:
            return self._ordered(self._shares.sweeping, sequences, self._eps)
        return BlockSweep(self.plan, self.context, self._shares.sweeping, self._settle, self._make_area, sequences)

    def _ordered(self, budget: Budget, sequences: list[Sequence], eps: int | float) -> OrderedSweep:
        return OrderedSweep(self.plan, self.context, budget, self._settle, self._make_area, sequences, eps)

    def _block_rows(self) -> int:
        limit = self._shares.sweeping.limit.bytes
        if limit is None:
            return _BLOCK_ROWS
        row_nbytes = 80 + 3 * max(side.key_nbytes for side in self._gathered)
        return int(np.clip(limit / _BLOCKS / row_nbytes, 1, _BLOCK_ROWS))

    def _join_step(self, joining: MemorySweep) -> Step:
        step = joining.step()
        if self.joined_blocks is not None:
            self.joined_blocks.found(step)
        if joining.done:
            joining.close()
            self._joining = None
            for side in self._gathered:
                side.joined = len(side)
            if self.joined_blocks is not None:
                self.joined_blocks.met()
        return step

    # Runs

    def _make_runs(self, *, all_rows: bool = False) -> None:
        """Rows of all sides leave memory: as many as run creation lets go, or all of them."""
        self._flush_due = False
        for number, side in enumerate(self._gathered):
            to = self._destination(number)
            side.leave(to) if all_rows else side.make_room(to)
        if self.joined_blocks is not None:
            self.joined_blocks.leave()
        self.context.counters.flushes += 1
        waiting = [side.runs for side in self._gathered]
        # By replacement selection a run has met parts of several runs: the rows know it.
        met = self.early and not self.options.replacement_selection
        while all(waiting) or (all_rows and any(waiting)):
            runs = tuple(runs.pop(0) if runs else SortedRun() for runs in waiting)
            self._pairs.append(RunPair(runs, joined=met))

    def _react_step(self) -> Step:
        if self._joining is not None:
            return self._join_step(self._joining)
        if self.early and self._unjoined():
            self._start_joining()
            return None
        if self._must_shrink() and any(map(len, self._gathered)):
            self._make_runs(all_rows=True)
            return None
        if self._merge is None:
            self._start_idle_merge()
            return None
        return self._merge_step(self._merge)

    def _start_idle_merge(self) -> None:
        """Merge beside the rows in memory. If they leave too little room they go first: they will be written anyway."""
        if not self._shares.leave_room_for_merging():
            self._make_runs(all_rows=True)
            return
        self._start_merge(self._mergeable(), self._shares.set_aside_for_merging(), write=True, pairs=self.early)

    def _start_merge(self, inputs: list[int], budget: Budget, *, write: bool, pairs: bool) -> None:
        if write:
            inputs = inputs[: merge_tree.fitting([self._pairs[number] for number in inputs], budget.limit)]
        at_once = merge_tree.pages_at_once([self._pairs[number] for number in inputs], budget.limit)
        self._merge = self._make_merge(inputs, budget, write=write, pairs=pairs, pages_at_once=at_once)

    def _make_merge(self, inputs: list[int], budget: Budget, *, write: bool, pairs: bool, pages_at_once: int) -> Merge:
        """A merge of some pairs of runs that writes a new pair, or (the last) gives out unmatched rows instead."""
        chosen = [self._pairs[number] for number in inputs]
        sequences: list[Sequence] = [*self._run_sequences(chosen, pages_at_once)]
        if self._eps is not None and not write:
            ordered = self._ordered(budget, sequences, self._eps)
            return Merge(inputs, ordered, (), budget is self.context.budget, pages_at_once)
        output = None
        if write:
            output = MergeOutput(tuple(self._side_output(side, chosen, budget) for side in range(self.plan.sides)))
        sweep = BlockSweep(
            self.plan, self.context, budget, self._settle, self._make_area, sequences,
            output=output, pairs=pairs, unmatched=not write,
        )  # fmt: skip
        return Merge(
            inputs, sweep, output.sides if output is not None else (), budget is self.context.budget, pages_at_once
        )

    def _run_sequences(self, chosen: list[RunPair], pages_at_once: int) -> list[RunSequence]:
        counters = self.context.counters
        sequences: list[RunSequence] = []
        for side, keys in enumerate(self._keys):
            for n, pair in enumerate(chosen):
                label = n if pair.joined else n + side * len(chosen)
                run, flags = pair.runs[side], self._flags[side]
                sequences.append(
                    RunSequence(
                        keys, label, run, flags, counters, drop_matched=self._drop[side], pages_at_once=pages_at_once
                    )
                )
        return sequences

    def _side_output(self, side: int, chosen: list[RunPair], budget: Budget) -> SideOutput:
        keys = self._keys[side]
        writer = self._destination(side).writer(keys)
        page_rows = max(pair.runs[side].page_rows for pair in chosen)
        return SideOutput(keys, writer, budget, page_rows, drop_matched=self._drop[side])

    def _merge_step(self, merge: Merge) -> Step:
        step = merge.sweep.step()
        if merge.sweep.done:
            merge.sweep.close()
            level = 0
            for number in reversed(merge.inputs):
                pair = self._pairs.pop(number)
                level = max(level, pair.level)
                for run in pair.runs:
                    run.delete()
            if merge.outputs:
                runs = tuple(output.close() for output in merge.outputs)
                self._pairs.append(RunPair(runs, level + 1, joined=merge.sweep.pairs))
            self._merge = None
            self._shares.end_merging()
        return step

    # Cleaning up

    def _finish_step(self) -> Step:
        if self._joining is not None:
            return self._join_step(self._joining)
        has_written = any(side.has_written for side in self._gathered)
        if any(map(len, self._gathered)) or has_written:
            in_memory = not self._pairs and not has_written and not self._may_shrink_now()
            if self._unjoined() and (self.early or in_memory):
                self._start_joining()
                return None
            if in_memory:
                return self._unmatched_in_memory()
            self._make_runs(all_rows=True)
        elif self._merge is not None:
            return self._merge_step(self._merge)
        elif self._pairs:
            self._start_last_merges()
        else:
            self._over = True
        return None

    def _may_shrink_now(self) -> bool:
        """May and must rows leave memory that would have stayed there to the end?"""
        untouched = (self.early or self._unjoined()) and not any(self._unmatched)
        return untouched and self._must_shrink()

    def _start_last_merges(self) -> None:
        """Merge until one merge, which writes nothing, can take all; a strict sort-merge join: until one is left."""
        count, most = len(self._pairs), self._most_in_last_merge()
        if count == 1 and self._pairs[0].joined and not any(map(self.plan.how.gives_unmatched, range(self.plan.sides))):
            self._over = True  # both runs were joined when they were written
        elif count <= most:
            self._start_merge(list(range(count)), self.context.budget, write=False, pairs=True)
        else:
            inputs = merge_tree.to_merge_before_the_last(self._pairs, self.options.fan_in, most)
            self._start_merge(inputs, self.context.budget, write=True, pairs=self.early)

    def _most_in_last_merge(self) -> int:
        return 1 if self.strict else self.options.fan_in

    def _unmatched_in_memory(self) -> Step:
        """Nothing was ever written: unmatched rows come from memory."""
        for side, gathered in enumerate(self._gathered):
            start, flags = self._unmatched[side], gathered.matched
            if start >= len(gathered) or flags is None or not self.plan.how.gives_unmatched(side):
                continue
            numbers = start + np.flatnonzero(~flags[start:])[: self.context.output_rows]
            self._unmatched[side] = int(numbers[-1]) + 1 if len(numbers) else len(gathered)
            return one_sided(side, gathered.rows, numbers)
        self._over = True
        return None
