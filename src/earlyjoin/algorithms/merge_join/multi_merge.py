"""A merge of runs of many sides (PMJ section 3.1.2, for more than two inputs and equality).

How is in :mod:`earlyjoin.algorithms.window_merge.merge`; here is what reads the runs, what writes them, and which
combinations are new.

PAPER UNCLEAR: PMJ leaves more than two inputs to future work. Combinations take the place of pairs: one was produced
before if all its rows come from runs with one number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.merge_join.blocks import RunSequence
from earlyjoin.algorithms.merge_join.sorted_runs import PageLimit, PageWriter, SideKeys, SortedRun, too_large
from earlyjoin.algorithms.protocol import Context, Matches, Step
from earlyjoin.algorithms.window_merge.groups import Workspace
from earlyjoin.algorithms.window_merge.matching import Matching
from earlyjoin.algorithms.window_merge.merge import MergeMemory, WindowMerge
from earlyjoin.algorithms.window_merge.merged_rows import InOrder, MergedRows
from earlyjoin.algorithms.window_merge.run_cursor import Cost, SortedPage, Word
from earlyjoin.algorithms.window_merge.window import WindowSide
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state import joined
from earlyjoin.state.budget import Account, Budget
from earlyjoin.state.rows.store import BatchRows, Rows
from earlyjoin.state.snapshot import Snapshot

_WORK_PART = 8
"""Part of the memory, one in so many, for boxes and combinations."""
_PAGES_PART = 3
"""Part of the memory, one in so many, that pages may fill while there is something to join without more of them."""


class RunPages:
    """The pages of a sorted run."""

    def __init__(self, sequence: RunSequence, run: SortedRun) -> None:
        self._sequence, self._run = sequence, run
        self.first_words: Sequence[Word] = run.first_words
        self._blocks = [n for part in run.segments for n in np.diff(part.ends).tolist()]
        self._rows = [n for part in run.segments for n in np.diff([*part.starts, part.rows]).tolist()]

    def cost(self, number: int) -> Cost:
        """What a page takes, at most."""
        rows = self._rows[number]
        return self._run.footprint if rows == 1 else self._run.rest_footprint, rows

    def payload_nbytes(self, number: int) -> int:
        """About as much as on disk, and no more than the page with all that is made of it."""
        return min(self._blocks[number], self.cost(number)[0])

    def read_page(self, number: int) -> SortedPage:
        """A page. Rows that match nothing never came in, so all have keys."""
        block = self._sequence.load(0, number)
        assert isinstance(block.rows, BatchRows)
        assert block.keys is not None
        return SortedPage(block.rows, block.keys, block.words, block.label, block.nbytes)

    def close(self) -> None:
        """Close the file."""
        self._sequence.close()


class MergedRun(MergedRows):
    """The merged run of one side: its pages are as long as the longest of those that are merged."""

    def __init__(self, writer: PageWriter, account: Account, page_rows: int, limit: PageLimit) -> None:
        super().__init__(account)
        self._writer, self._page_rows, self._limit = writer, max(1, page_rows), limit

    @property
    def run(self) -> SortedRun:
        """What is written so far."""
        return self._writer.run

    def _most(self, side: WindowSide) -> int:
        return self._page_rows - self.rows

    def _fills_a_page(self) -> bool:
        return self.rows >= self._page_rows or (self._limit.bytes is not None and self.nbytes >= self._limit.bytes)

    def _write(self, rows: InOrder) -> None:
        self._writer.write(_Batch(rows.batch), None, np.arange(len(rows.words)), self._page_rows)

    def close(self) -> SortedRun:
        """The finished run."""
        self.write_out()
        return self._writer.close()

    def abandon(self) -> None:
        """Give the memory back and remove what was written."""
        self.drop_waiting()
        self._writer.close().delete()

    def save(self, snapshot: Snapshot, name: str) -> dict[str, Any]:
        """The pages written so far; returns the plain values that ``load`` needs."""
        return self.close().save(snapshot)

    def load(self, snapshot: Snapshot, name: str, run: SortedRun) -> None:
        """The inverse of ``save``, with the run already copied."""
        self._writer.run = run


class _Batch:
    """Rows that are in order, as a page writer asks for them: those next to each other."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._rows = rows

    def batch(self, index: Int64) -> pa.RecordBatch:
        return self._rows.slice(int(index[0]), len(index))


class Combinations(Matching):
    """Rows of all sides with one key; those of runs with one label were joined before."""

    def __init__(self, key: BoundPredicate | None) -> None:
        self._key = key

    def found(self, sides: Sequence[WindowSide], index: tuple[Int64, ...]) -> Step:
        """Those that are new and match."""
        labels = [side.labels[rows] for side, rows in zip(sides, index, strict=True)]
        new = ~joined.same_run(*labels)
        return matching(self._key, [side.rows for side in sides], [side.keys for side in sides], index, new)


def matching(
    key: BoundPredicate | None, rows: Sequence[Rows], keys: Sequence[Keys | None], index: tuple[Int64, ...], kept: Bool
) -> Step:
    """Those combinations of rows with equal words that are kept and whose keys are equal, if words do not tell."""
    if key is not None:
        for other, numbers in zip(keys[1:], index[1:], strict=True):
            assert keys[0] is not None
            assert other is not None
            kept &= key.holds(keys[0], index[0], other, numbers)
    if not kept.all():
        index = tuple(numbers[kept] for numbers in index)
    return Matches(tuple(rows), index) if len(index[0]) else None


def key_to_compare(side: SideKeys) -> BoundPredicate | None:
    """The predicate, if equal words do not yet mean equal keys."""
    return None if side.order.by_value else side.key


class MultiMerge:
    """Joins sorted runs of many sides, but for combinations of one label. Call ``step`` until ``done``."""

    pairs = True

    def __init__(
        self,
        keys: list[SideKeys],
        context: Context,
        budget: Budget,
        runs: list[list[RunPages]],
        outputs: Sequence[MergedRun],
    ) -> None:
        memory, part = budget.limit.bytes, budget.account("combinations")
        self._workspace = Workspace(len(keys), context.output_rows, part, memory // _WORK_PART if memory else None)
        self.merge = WindowMerge(
            runs,
            [side.schema for side in keys],
            outputs or [None] * len(keys),
            Combinations(key_to_compare(keys[0])),
            context,
            self._workspace,
            MergeMemory(
                pages=budget.account("pages"),
                windows=budget.account("windows"),
                most_page_nbytes=memory // _PAGES_PART if memory else None,
                too_large=lambda nbytes: too_large(nbytes, budget),
            ),
        )

    @property
    def done(self) -> bool:
        """Is everything joined?"""
        return self.merge.done

    def step(self) -> Step:
        """One bounded piece of work."""
        return self.merge.step()

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return self.merge.nbytes + self._workspace.nbytes

    def give_back(self, enough: Callable[[], bool]) -> None:
        """Nothing: a merge of many inputs is finished first."""

    def close(self) -> None:
        """Give everything back."""
        self.merge.close()
        self._workspace.close()

    def save(self, snapshot: Snapshot, name: str) -> dict[str, Any]:
        """Where it stands; pages are read again."""
        return self.merge.save()

    def load(self, snapshot: Snapshot, name: str, values: dict[str, Any]) -> None:
        """Bring a new merge of the same runs to where the saved one stood."""
        self.merge.load(values)
