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

from earlyjoin.algorithms import merge_tree
from earlyjoin.algorithms.admission import admit
from earlyjoin.algorithms.block_sweep import BlockSweep
from earlyjoin.algorithms.blocks import RunSequence, Sequence
from earlyjoin.algorithms.merge_output import MergeOutput, SideOutput
from earlyjoin.algorithms.merge_tree import RunPair
from earlyjoin.algorithms.protocol import Slice, Step
from earlyjoin.algorithms.settlement import one_sided
from earlyjoin.algorithms.sort_state import Arriving, Merge, SortJoinState, Sweep
from earlyjoin.algorithms.sorted_runs import PageWriter, too_large
from earlyjoin.errors import BudgetExceeded
from earlyjoin.state.budget import Budget
from earlyjoin.state.counters import Phase
from earlyjoin.state.sizes import batch_nbytes

_FIRST_JOIN_ROWS = 64
_PIECE_ROWS = 4096
_BLOCK_ROWS = 16384
_BLOCKS = 8
"""Blocks that the share for sweeping in memory is meant to hold."""


class SortJoin(SortJoinState):
    """See the module."""

    def arrive(self, side: int, batch: pa.RecordBatch) -> Iterator[Step]:
        """Gather the rows; when enough are there, join them or write them."""
        self.phase = Phase.ARRIVING
        self.context.counters.rows_in[side] += batch.num_rows
        self._arriving = Arriving(side, batch)
        return self.resume()

    def end(self, side: int) -> Iterator[Step]:
        """Nothing to do before every side has ended."""
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
        return bool(merge_tree.to_merge_in_idle_time(self._pairs, self.fan_in))

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
        if self._flush_due:
            self._flush()
        elif arriving.offset >= arriving.batch.num_rows:
            self._arriving = None
        elif not self._insert_piece(arriving):
            self._make_room(arriving)
        elif self.early and self._join_is_due():
            self._start_joining()
        return None

    def _insert_piece(self, arriving: Arriving) -> bool:
        """Take in some of the remaining rows; False when not even one fits."""
        gathered = self._gathered[arriving.side]
        count = min(arriving.batch.num_rows - arriving.offset, _PIECE_ROWS)
        room = self._next_join_rows() - sum(map(len, self._gathered))
        if self.early and room > 0:  # a side that comes alone is not joined, however many rows there are
            count = min(count, room)
        while count:
            rows, keys = admit(self.plan, arriving.side, arriving.batch.slice(arriving.offset, count), self._key)
            try:
                self._working.reserve(keys.nbytes)
                if len(keys):
                    gathered.insert(rows, keys)
                arriving.offset += count
                return True
            except BudgetExceeded:
                count //= 2
            finally:
                self._working.clear()
        return False

    def _make_room(self, arriving: Arriving) -> None:
        """Memory is full: join what was not joined, and write everything."""
        if not any(map(len, self._gathered)):
            raise too_large(batch_nbytes(arriving.batch.slice(arriving.offset, 1)), self.context.budget.limit)
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

    def _make_joining(self, page_rows: int) -> Sweep:
        """Sort both sides. Rows that were joined before have label 0 on both, so only new pairs are met."""
        sequences: list[Sequence] = []
        for side, gathered in enumerate(self._gathered):
            sequences += gathered.sequences((0, 1 + side), page_rows)
        return BlockSweep(self.plan, self.context, self._sweeping, self._settle, self._make_area, sequences)

    def _block_rows(self) -> int:
        limit = self._sweeping.limit.bytes
        if limit is None:
            return _BLOCK_ROWS
        row_nbytes = 80 + 3 * max(side.key_nbytes for side in self._gathered)
        return int(np.clip(limit / _BLOCKS / row_nbytes, 1, _BLOCK_ROWS))

    def _join_step(self, joining: Sweep) -> Step:
        step = joining.step()
        if joining.done:
            joining.close()
            self._joining = None
            for side in self._gathered:
                side.joined = len(side)
        return step

    # Runs

    def _flush(self) -> None:
        """All sides leave memory as a pair of sorted runs."""
        self._flush_due = False
        runs = [
            side.write(self.context.spill, self.context.counters, self._page_limit, flags, drop_matched=drop)
            for side, flags, drop in zip(self._gathered, self._flags, self._drop, strict=True)
        ]
        self.context.counters.flushes += 1
        self._pairs.append(RunPair(tuple(runs)))

    def _react_step(self) -> Step:
        if self._joining is not None:
            return self._join_step(self._joining)
        if self.early and self._unjoined():
            self._start_joining()
            return None
        if self._merge is None:
            inputs = merge_tree.to_merge_in_idle_time(self._pairs, self.fan_in)
            self._start_merge(inputs, self._reading, write=True, pairs=self.early)
            return None
        return self._merge_step(self._merge)

    def _start_merge(self, inputs: list[int], budget: Budget, *, write: bool, pairs: bool) -> None:
        if write:
            inputs = inputs[: merge_tree.fitting([self._pairs[number] for number in inputs], budget.limit)]
        at_once = merge_tree.pages_at_once([self._pairs[number] for number in inputs], budget.limit)
        self._merge = self._make_merge(inputs, budget, write=write, pairs=pairs, pages_at_once=at_once)

    def _make_merge(self, inputs: list[int], budget: Budget, *, write: bool, pairs: bool, pages_at_once: int) -> Merge:
        """A merge of some pairs of runs that writes a new pair, or (the last) gives out unmatched rows instead."""
        chosen = [self._pairs[number] for number in inputs]
        sequences = self._run_sequences(chosen, pages_at_once)
        output = None
        if write:
            output = MergeOutput(tuple(self._side_output(side, chosen, budget) for side in range(self.plan.sides)))
        sweep = BlockSweep(
            self.plan, self.context, budget, self._settle, self._make_area, sequences,
            output=output, pairs=pairs, unmatched=not write,
        )  # fmt: skip
        return Merge(inputs, sweep, output, budget is self.context.budget, pages_at_once)

    def _run_sequences(self, chosen: list[RunPair], pages_at_once: int) -> list[Sequence]:
        counters = self.context.counters
        sequences: list[Sequence] = []
        for side, keys in enumerate(self._keys):
            # Runs of one pair were joined with each other, unless nothing is joined before the last merge.
            first = 0 if self.early else side * len(chosen)
            sequences += [
                RunSequence(
                    keys,
                    first + n,
                    pair.runs[side],
                    self._flags[side],
                    counters,
                    drop_matched=self._drop[side],
                    pages_at_once=pages_at_once,
                )
                for n, pair in enumerate(chosen)
            ]
        return sequences

    def _side_output(self, side: int, chosen: list[RunPair], budget: Budget) -> SideOutput:
        keys = self._keys[side]
        writer = PageWriter(keys, self.context.spill, self.context.counters, self._page_limit)
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
            if merge.output is not None:
                runs = tuple(side.close() for side in merge.output.sides)
                self._pairs.append(RunPair(runs, level + 1))
            self._merge = None
        return step

    # Cleaning up

    def _finish_step(self) -> Step:
        if self._joining is not None:
            return self._join_step(self._joining)
        if any(map(len, self._gathered)):
            in_memory = not self._pairs
            if self._unjoined() and (self.early or in_memory):
                self._start_joining()
                return None
            if in_memory:
                return self._unmatched_in_memory()
            self._flush()
        elif self._merge is not None:
            return self._merge_step(self._merge)
        elif self._pairs:
            self._start_last_merges()
        else:
            self._over = True
        return None

    def _start_last_merges(self) -> None:
        """Merge until one merge, which writes nothing, can take all; a strict sort-merge join: until one is left."""
        count, most = len(self._pairs), self._most_in_last_merge()
        if self.early and count == 1 and not any(map(self.plan.how.gives_unmatched, range(self.plan.sides))):
            self._over = True  # both runs were joined when they were written
        elif count <= most:
            self._start_merge(list(range(count)), self.context.budget, write=False, pairs=True)
        else:
            inputs = merge_tree.to_merge_before_the_last(self._pairs, self.fan_in, most)
            self._start_merge(inputs, self.context.budget, write=True, pairs=self.early)

    def _most_in_last_merge(self) -> int:
        return 1 if self.strict else self.fan_in

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
