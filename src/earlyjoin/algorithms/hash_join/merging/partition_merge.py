"""PSMJ (RPJ section 2.2): sorted runs of both sides of a partition are merged, and joined on the way.

::

    load pages in the order of their smallest words, while there is room
        │   rows below the smallest word that is not in memory are complete: a chunk
        ▼
    join the chunk ──▶ rows without a match go out (at clean-up) ──▶ write it to the merged runs ──▶ load …
        │
        └ no row is complete: one hot word has more pages than fit ──▶ HotWord: nested blocks of its pages

The paper merges page by page and finds the smallest row each time; a chunk is as much of that as fits, so that sorting,
joining and writing are done for many rows at once. Pages come in the same order, and each is read once. A merge
may stop after every step: where the inputs stand, the bound of the chunk and the number of the next pair say it all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from earlyjoin.algorithms.hash_join.merging.chunk import Chunk, ChunkSide
from earlyjoin.algorithms.hash_join.merging.hot_word import HotWord
from earlyjoin.algorithms.hash_join.merging.merge_input import MergeInput, OnePages, Word
from earlyjoin.algorithms.hash_join.merging.merge_output import MergeOutput
from earlyjoin.algorithms.hash_join.one_side import repeated_key, repeated_row
from earlyjoin.algorithms.hash_join.rules import DuplicateRule
from earlyjoin.algorithms.hash_join.table.disk_part import DiskRun
from earlyjoin.algorithms.hash_join.table.table import PartitionedTable
from earlyjoin.algorithms.matching.settlement import Settlement, one_sided
from earlyjoin.algorithms.protocol import Context, Plan, Step
from earlyjoin.algorithms.sweep_areas import SweepOrder
from earlyjoin.state.budget import Budget, row_too_large


@dataclass(slots=True)
class MergeWork:
    """What every merge of a join works with."""

    plan: Plan
    context: Context
    table: PartitionedTable
    settle: Settlement
    rule: DuplicateRule
    order: SweepOrder
    expendable: tuple[bool, bool]
    """Sides whose rows need no further match once they have one: they are not written again."""
    one_side: int | None
    """The side whose keys occur once, if there is one: a chunk shows whether that is true."""


class PartitionMerge:
    """Joins some runs of both sides of a partition. Call ``step`` until ``done``.

    With a ``label`` the runs of a side, if there are several, become one run that carries it; without, nothing is
    written and rows that never matched go out.
    """

    def __init__(
        self,
        work: MergeWork,
        partition: int,
        runs: tuple[list[DiskRun], list[DiskRun]],
        budget: Budget,
        *,
        label: int | None,
    ) -> None:
        self.partition, self.label, self.done = partition, label, False
        self.work = work
        self.account = budget.account("pages being merged")
        self.budget = budget
        self.inputs = tuple(
            [MergeInput(run, OnePages(files), work.order, self.account) for run in mine]
            for mine, files in zip(runs, work.table.files, strict=True)
        )
        self.outputs = tuple(
            MergeOutput(files, label, budget.account("merged page")) if label is not None and len(mine) > 1 else None
            for mine, files in zip(runs, work.table.files, strict=True)
        )
        self.written: tuple[list[DiskRun], list[DiskRun]] = ([], [])
        """Runs finished for a snapshot before the merge is done."""
        self._chunk: Chunk | None = None
        self._bound: Word | None = None
        self._pair = 0
        self._left_out = [0, 0]
        self._hot: HotWord | None = None

    # Steps

    def step(self) -> Step:
        """One bounded piece of work."""
        if self._hot is not None:
            step = self._hot.step()
            if self._hot.done:
                self._hot = None
            return step
        if self._chunk is not None:
            return self._chunk_step(self._chunk)
        if not self._load_one():
            self._begin_chunk()
        return None

    def _all_inputs(self) -> list[MergeInput]:
        return [*self.inputs[0], *self.inputs[1]]

    def _next_input(self) -> MergeInput | None:
        """The input whose next page has the smallest word; None when all pages are in memory."""
        waiting = [(entry.next_word, number) for number, entry in enumerate(self._all_inputs())]
        first = min(((word, number) for word, number in waiting if word is not None), default=None)
        return None if first is None else self._all_inputs()[first[1]]

    def _load_one(self) -> bool:
        """Read the next page; False when there is none, or no room for it."""
        entry = self._next_input()
        return entry is not None and entry.load()

    def _begin_chunk(self) -> None:
        following = self._next_input()
        self._bound = None if following is None else following.next_word
        chunk = self._make_chunk()
        if any(side is not None for side in chunk.sides):
            self._refuse_repeated(chunk)
            self._chunk, self._pair, self._left_out = chunk, 0, [0, 0]
        elif following is None:
            self._finish()
        else:
            assert self._bound is not None
            self._begin_hot_word(self._bound)

    def _make_chunk(self) -> Chunk:
        sides = []
        for files, inputs in zip(self.work.table.files, self.inputs, strict=True):
            pieces = [piece for entry in inputs for piece in entry.below(self._bound)]
            sides.append(ChunkSide.of(files.schema, pieces))
        return Chunk(sides[0], sides[1])

    def _refuse_repeated(self, chunk: Chunk) -> None:
        """Equal words are in one chunk, so a repeated key of the one-side is too."""
        key, one = self.work.table.key, self.work.one_side
        mine = chunk.sides[one] if one is not None else None
        if one is None or mine is None:
            return
        row = repeated_row(key, mine.keys, mine.order, mine.words)
        if row is not None:
            raise repeated_key(key, one, mine.rows.batch, row)

    def _begin_hot_word(self, word: Word) -> None:
        for entry in self._all_inputs():
            entry.put_back()
        self._hot = HotWord(self, word)

    def _chunk_step(self, chunk: Chunk) -> Step:
        if self._pair < chunk.total:
            step, self._pair = self.join(chunk, self._pair)
            return step
        for side in (0, 1):
            mine = chunk.sides[side]
            if mine is not None and self._left_out[side] < len(mine):
                step, self._left_out[side] = self.unmatched(side, mine, self._left_out[side])
                if step is not None:
                    return step
        for side in (0, 1):
            self.write(side, chunk.sides[side])
        self._chunk = None
        for entry in self._all_inputs():
            entry.use(self._bound)
        return None

    # What chunks and hot words share

    def join(self, chunk: Chunk, first: int) -> tuple[Step, int]:
        """Some pairs of a chunk from ``first`` on that are new and match; also the number of the next pair."""
        left, right = chunk.sides
        assert left is not None
        assert right is not None
        work, most = self.work, self.work.context.output_rows
        i, j = chunk.pairs(first, most)
        first += len(i)
        work.context.counters.comparisons += len(i)
        new = ~work.rule.joined(self.partition, left.stamps.take(i), right.stamps.take(j))
        for side, rows in ((left, i), (right, j)):
            if work.expendable[side is right] and side.matched is not None:
                new &= ~side.matched[rows]
        i, j = i[new], j[new]
        same = work.table.key.holds(left.keys, i, right.keys, j)
        if not same.all():
            i, j = i[same], j[same]
        if not len(i):
            return None, first
        step = work.settle((left.rows, right.rows), i, j, (left.matched, right.matched))
        for files, side, rows in zip(work.table.files, (left, right), (i, j), strict=True):
            if files.flags is not None and side.numbers is not None and side.matched is not None:
                files.flags.mark(side.numbers[rows[side.matched[rows]]])
        return step, first

    def unmatched(self, side: int, mine: ChunkSide, first: int) -> tuple[Step, int]:
        """Rows of a chunk from ``first`` on that never matched, at clean-up; also where to go on."""
        if self.label is not None or mine.matched is None or not self.work.plan.how.gives_unmatched(side):
            return None, len(mine)
        numbers = first + np.flatnonzero(~mine.matched[first:])[: self.work.context.output_rows]
        if not len(numbers):
            return None, len(mine)
        return one_sided(side, mine.rows, numbers), int(numbers[-1]) + 1

    def write(self, side: int, mine: ChunkSide | None) -> None:
        """Rows that have been joined go to the merged run."""
        output = self.outputs[side]
        if output is None or mine is None:
            return
        order, words = mine.order, mine.words
        if self.work.expendable[side] and mine.matched is not None:
            kept = ~mine.matched[order]
            order, words = order[kept], words[kept]
        output.write(mine, order, words)

    # The end

    def _finish(self) -> None:
        """Put the merged runs in the place of the inputs; a run that was alone gets the new label."""
        for side in (0, 1):
            for entry in self.inputs[side]:
                entry.close()
        if self.label is not None:
            for side, output in enumerate(self.outputs):
                if output is None:
                    for entry in self.inputs[side]:
                        entry.run.label = self.label
                    continue
                self._pause(side)
                old = [entry.run for entry in self.inputs[side]]
                self.work.table.replace_runs(side, self.partition, old, self.written[side])
        self.done = True

    def _pause(self, side: int) -> None:
        output = self.outputs[side]
        run = output.pause() if output is not None else None
        if run is not None:
            self.written[side].append(run)

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        held = sum(entry.nbytes for entry in self._all_inputs())
        held += sum(output.nbytes for output in self.outputs if output is not None)
        return held + (self._hot.nbytes if self._hot is not None else 0)

    def too_large(self, nbytes: int) -> Exception:
        """The error for a page (of one row) that does not fit."""
        return row_too_large(nbytes, self.budget, "merging")

    def close(self) -> None:
        """Give memory back, and remove what was written, if it is not done."""
        if self._hot is not None:
            self._hot.close()
        for entry in self._all_inputs():
            entry.close()
        if not self.done:
            for side in (0, 1):
                self._pause(side)
                for run in self.written[side]:
                    run.run.delete()
        self._chunk = self._hot = None

    # State

    def save(self) -> dict[str, Any]:
        """Plain values; what was written so far becomes runs of its own, in ``written``."""
        for side in (0, 1):
            self._pause(side)
        places = [[(entry.page, entry.offset, entry.loaded) for entry in inputs] for inputs in self.inputs]
        return {
            "places": places,
            "bound": self._bound,
            "pair": self._pair if self._chunk is not None else None,
            "left_out": self._left_out,
            "hot": self._hot.save() if self._hot is not None else None,
        }

    def load(self, values: dict[str, Any]) -> None:
        """Bring a new merge of the same runs to where a saved one stood."""
        for inputs, places in zip(self.inputs, values["places"], strict=True):
            for entry, (page, offset, loaded) in zip(inputs, places, strict=True):
                entry.page, entry.offset = page, offset
                for _ in range(loaded):
                    if not entry.load():
                        raise AssertionError("pages that were in memory do not fit any more")
        self._bound, self._left_out = values["bound"], list(values["left_out"])
        if values["pair"] is not None:
            self._chunk, self._pair = self._make_chunk(), values["pair"]
        if values["hot"] is not None:
            self._hot = HotWord(self, values["hot"]["word"])
            self._hot.load(values["hot"])
