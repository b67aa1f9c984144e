"""PSMJ (RPJ section 2.2): sorted runs of both sides of a partition are merged, and joined on the way.

How is in :mod:`earlyjoin.algorithms.window_merge.merge`; here is which pairs are new, and what becomes of the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlyjoin.algorithms.hash_join.merging.merge_input import PartitionPages
from earlyjoin.algorithms.hash_join.merging.merge_output import PartitionOutput
from earlyjoin.algorithms.hash_join.one_side import repeated_key, repeated_row
from earlyjoin.algorithms.hash_join.rules import DuplicateRule, Stamps
from earlyjoin.algorithms.hash_join.table.disk_part import DiskRun
from earlyjoin.algorithms.hash_join.table.table import PartitionedTable
from earlyjoin.algorithms.matching.settlement import Settlement, one_sided
from earlyjoin.algorithms.protocol import Context, Plan, Step
from earlyjoin.algorithms.sweep_areas import SweepOrder, SweepWords
from earlyjoin.algorithms.window_merge.groups import Workspace
from earlyjoin.algorithms.window_merge.matching import Matching
from earlyjoin.algorithms.window_merge.merge import MergeMemory, WindowMerge
from earlyjoin.algorithms.window_merge.window import WindowSide, joined_keys
from earlyjoin.predicates.encoding.keys import Int64, Keys
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
    """The side whose keys occur once, if there is one: a window shows whether that is true."""


class PairsOfPartition(Matching):
    """Pairs that no earlier task has joined; at clean-up (not ``written``) also rows without a match."""

    def __init__(self, work: MergeWork, partition: int, *, written: bool) -> None:
        self._work, self._partition, self._written = work, partition, written
        self.one_side = work.one_side

    def found(self, sides: Sequence[WindowSide], index: tuple[Int64, ...]) -> Step:
        """Those that are new and match."""
        work, (left, right), (i, j) = self._work, sides, index
        new = ~work.rule.joined(self._partition, _stamps(left, i), _stamps(right, j))
        for expendable, side, rows in zip(work.expendable, sides, index, strict=True):
            if expendable and side.matched is not None:
                new &= ~side.matched[rows]
        i, j = i[new], j[new]
        same = work.table.key.holds(left.keys, i, right.keys, j)
        if not same.all():
            i, j = i[same], j[same]
        if not len(i):
            return None
        step = work.settle((left.rows, right.rows), i, j, (left.matched, right.matched))
        for files, side, rows in zip(work.table.files, sides, (i, j), strict=True):
            if files.flags is not None and side.numbers is not None and side.matched is not None:
                files.flags.mark(side.numbers[rows[side.matched[rows]]])
        return step

    def unmatched(self, side: int, mine: WindowSide, first: int) -> tuple[Step, int]:
        """Rows from ``first`` on that never matched, at clean-up; also where to go on."""
        if self._written or mine.matched is None or not self._work.plan.how.gives_unmatched(side):
            return None, len(mine)
        numbers = first + np.flatnonzero(~mine.matched[first:])[: self._work.context.output_rows]
        if not len(numbers):
            return None, len(mine)
        return one_sided(side, mine.rows, numbers), int(numbers[-1]) + 1

    def to_write(self, side: int, mine: WindowSide) -> tuple[Int64, SweepWords]:
        """All rows but those that need no further match."""
        if self._work.expendable[side] and mine.matched is not None:
            kept = ~mine.matched[mine.order]
            return mine.order[kept], mine.words[kept]
        return mine.order, mine.words

    def refuse_repeated(self, side: int, mine: WindowSide, seen: Keys | None) -> Keys | None:
        """A key of the one-side must not occur twice among these rows and those seen."""
        if side != self.one_side:
            return seen
        key, keys, order, words, before = self._work.table.key, mine.keys, mine.order, mine.words, 0
        if seen is not None:
            keys, before = joined_keys([seen, keys]), len(seen)
            order, words = np.arange(len(keys)), np.zeros(len(keys), dtype=np.int64)
        row = repeated_row(key, keys, order, words)
        if row is not None:
            raise repeated_key(key, side, mine.rows.batch, row - before)
        return keys


def _stamps(side: WindowSide, rows: Int64) -> Stamps:
    assert side.arrivals is not None
    assert side.departures is not None
    return Stamps(side.arrivals[rows], side.departures[rows], side.labels[rows])


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
        self.runs = runs
        self._table = work.table
        sides = list(zip(runs, work.table.files, strict=True))
        self._outputs = [
            PartitionOutput(files, label, budget.account("merged page"))
            if label is not None and len(mine) > 1
            else None
            for mine, files in sides
        ]
        self.merge = WindowMerge(
            [[PartitionPages(files, run, work.order) for run in mine] for mine, files in sides],
            [files.schema for files in work.table.files],
            self._outputs,
            PairsOfPartition(work, partition, written=label is not None),
            work.context,
            Workspace(2, work.context.output_rows),
            MergeMemory(
                pages=budget.account("pages being merged"),
                too_large=lambda nbytes: row_too_large(nbytes, budget, "merging"),
            ),
        )
        self.written: tuple[list[DiskRun], list[DiskRun]] = ([], [])
        """Runs finished for a snapshot before the merge is done."""

    def step(self) -> Step:
        """One bounded piece of work."""
        step = self.merge.step()
        if self.merge.done:
            self._finish()
        return step

    def _finish(self) -> None:
        """Put the merged runs in the place of the inputs; a run that was alone gets the new label."""
        if self.label is not None:
            for side, (output, old) in enumerate(zip(self._outputs, self.runs, strict=True)):
                if output is None:
                    for run in old:
                        run.label = self.label
                    continue
                self._pause(side)
                self._table.replace_runs(side, self.partition, old, self.written[side])
        self.done = True

    def _pause(self, side: int, *, written_out: bool = True) -> None:
        output = self._outputs[side]
        run = output.pause(written_out=written_out) if output is not None else None
        if run is not None:
            self.written[side].append(run)

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return self.merge.nbytes

    def close(self) -> None:
        """Give memory back, and remove what was written, if it is not done."""
        self.merge.close()
        if not self.done:
            for side in (0, 1):
                self._pause(side, written_out=False)
                for run in self.written[side]:
                    run.run.delete()

    def save(self) -> dict[str, Any]:
        """Plain values; what was written so far becomes runs of its own, in ``written``."""
        for side in (0, 1):
            self._pause(side)
        return self.merge.save()

    def load(self, values: dict[str, Any]) -> None:
        """Bring a new merge of the same runs to where a saved one stood."""
        self.merge.load(values)
