"""Where a merge writes (PMJ figure 5, lines 12 and 19): rows leave their blocks in order and become runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.merge_join.blocks import Block
from earlyjoin.algorithms.merge_join.sorted_runs import PageWriter, SideKeys, SortedRun
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Budget
from earlyjoin.state.rows.store import BatchRows, RowStore
from earlyjoin.state.snapshot import Snapshot

_WORK_NBYTES = 32
"""Bytes a row that finding the next rows takes: words, their order, the block of each."""


class SideOutput:
    """The merged run of one side. Rows gather in a buffer of one page."""

    def __init__(
        self, side: SideKeys, writer: PageWriter, budget: Budget, page_rows: int, *, drop_matched: bool
    ) -> None:
        self._side, self._writer, self._page_rows, self._drop_matched = side, writer, max(1, page_rows), drop_matched
        account = budget.account("merged page")
        self._rows = RowStore(side.schema, account)
        self._account = budget.account("order of a merged page")
        self._row_nbytes = _WORK_NBYTES + 16 * side.marks
        self._account.reserve(self._row_nbytes * self._page_rows)
        self._words: list[Any] = []
        self._marks: list[Int64] = []

    @property
    def run(self) -> SortedRun:
        """What is written so far."""
        return self._writer.run

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return self._rows.nbytes + self._row_nbytes * self._page_rows

    def write(self, blocks: list[Block], frontier: int | float | None) -> None:
        """Take the rows of the blocks that are not above the frontier; on BudgetExceeded, part of them is taken."""
        while True:
            chosen = _smallest(blocks, frontier, self._page_rows - len(self._rows))
            if not chosen:
                return
            for block, count in chosen:
                self._append(block, count)
            if len(self._rows) >= self._page_rows:
                self._flush()

    def _append(self, block: Block, count: int) -> None:
        assert isinstance(block.rows, BatchRows)
        first, stop = block.written, block.written + count
        rows, words = block.rows.batch.slice(first, count), block.words[first:stop]
        marks = block.marks[first:stop] if block.marks is not None else None
        if self._drop_matched and block.matched is not None:
            kept = np.flatnonzero(~block.matched[first:stop])  # section 3.6: they need no further match
            rows = pa.RecordBatch.from_arrays(BatchRows(rows).take(kept), schema=rows.schema)
            words, marks = words[kept], marks[kept] if marks is not None else None
        if len(words):
            self._rows.append(rows)
            self._words.append(words.copy())
            if marks is not None:
                self._marks.append(marks.copy())
        block.written = stop

    def _flush(self) -> None:
        if len(self._rows):
            order = np.argsort(np.concatenate(self._words), kind="stable")
            marks = np.concatenate(self._marks)[order] if self._marks else None
            self._writer.write(self._rows, marks, order, self._page_rows)
        self.clear()

    def clear(self) -> None:
        """Empty the buffer."""
        self._rows.clear()
        self._words, self._marks = [], []

    def close(self) -> SortedRun:
        """The finished run; gives the memory back."""
        self._flush()
        self._account.clear()
        return self._writer.close()

    def abandon(self) -> None:
        """Give the memory back and remove what was written."""
        self.clear()
        self._account.clear()
        self._writer.close().delete()

    def save(self, snapshot: Snapshot, name: str) -> dict[str, Any]:
        """The pages written so far and the buffer."""
        snapshot.tables[f"{name}-rows"] = pa.Table.from_batches([self._rows.batch(np.arange(len(self._rows)))])
        snapshot.arrays[f"{name}-words"] = np.concatenate(self._words) if self._words else np.empty(0, dtype=np.int64)
        if self._marks:
            snapshot.arrays[f"{name}-marks"] = np.concatenate(self._marks)
        return self._writer.close().save(snapshot)

    def load(self, snapshot: Snapshot, name: str, run: SortedRun) -> None:
        """The inverse of ``save``, with the run already copied."""
        self._writer.run = run
        for batch in snapshot.tables[f"{name}-rows"].to_batches():
            self._rows.append(batch)
        if len(self._rows):
            self._words = [snapshot.arrays[f"{name}-words"]]
        if f"{name}-marks" in snapshot.arrays:
            self._marks = [snapshot.arrays[f"{name}-marks"]]


class MergeOutput:
    """The merged runs of all sides."""

    def __init__(self, sides: tuple[SideOutput, ...]) -> None:
        self.sides = sides

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return sum(side.nbytes for side in self.sides)

    def write(self, side: int, blocks: list[Block], frontier: int | float | None) -> None:
        """See :meth:`SideOutput.write`."""
        self.sides[side].write(blocks, frontier)


def _smallest(blocks: list[Block], frontier: int | float | None, most: int) -> list[tuple[Block, int]]:
    """How many rows of each block are among the ``most`` smallest that are not above the frontier."""
    pieces = []
    for block in blocks:
        stop = len(block.words) if frontier is None else int(np.searchsorted(block.words, frontier, side="right"))
        stop = min(stop, block.written + most)
        if stop > block.written:
            pieces.append((block, block.words[block.written : stop]))
    if not pieces:
        return []
    if len(pieces) == 1:
        return [(pieces[0][0], len(pieces[0][1]))]
    words = np.concatenate([words for _, words in pieces])
    owner = np.repeat(np.arange(len(pieces)), [len(words) for _, words in pieces])
    counts = np.bincount(owner[np.argsort(words, kind="stable")[:most]], minlength=len(pieces))
    return [(block, int(count)) for (block, _), count in zip(pieces, counts, strict=True) if count]
