"""The window of a merge of many sides: complete groups of rows, taken out of their pages to be joined and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.merge_join.blocks import Block
from earlyjoin.algorithms.merge_join.group_join import Int32, Ordered
from earlyjoin.algorithms.merge_join.run_creation import Gathered
from earlyjoin.algorithms.merge_join.sorted_runs import PageLimit, PageWriter, SideKeys, SortedRun
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Budget
from earlyjoin.state.growable import Growable
from earlyjoin.state.rows.store import BatchRows, RowStore, one_batch
from earlyjoin.state.snapshot import Snapshot


class RunOutput:
    """The merged run of one side."""

    def __init__(self, writer: PageWriter, page_rows: int) -> None:
        self.page_rows = max(1, page_rows)
        self._writer = writer

    @property
    def run(self) -> SortedRun:
        """What is written so far."""
        return self._writer.run

    def write(self, rows: RowStore, chosen: Int64) -> None:
        """Write the chosen rows, which are in order."""
        self._writer.write(rows, None, chosen, self.page_rows)

    def close(self) -> SortedRun:
        """The finished run."""
        return self._writer.close()

    def abandon(self) -> None:
        """Remove what was written."""
        self._writer.close().delete()

    def save(self, snapshot: Snapshot, name: str) -> dict[str, Any]:
        """The pages written so far; returns the plain values that ``load`` needs."""
        return self._writer.close().save(snapshot)

    def load(self, snapshot: Snapshot, name: str, run: SortedRun) -> None:
        """The inverse of ``save``, with the run already copied."""
        self._writer.run = run


class MultiOutput:
    """The merged runs of all sides."""

    def __init__(self, sides: tuple[RunOutput, ...]) -> None:
        self.sides = sides


class Window:
    """Rows of all sides. The first ``kept`` rows of a side were joined and wait until they fill a page of output."""

    def __init__(
        self, keys: Sequence[SideKeys], budget: Budget, output: MultiOutput | None, page_limit: PageLimit
    ) -> None:
        self.sides = [Gathered(side, budget, flags=False) for side in keys]
        self.kept = [0] * len(keys)
        self._labels = [Growable(np.int32, budget.account("labels")) for _ in keys]
        self._output, self._limit = output, page_limit
        self._carried = budget.account("rows of a page on their way")
        if output is not None:
            self._carried.reserve(page_limit.bytes or 0)

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        labels = sum(part.nbytes for part in self._labels)
        return sum(side.nbytes for side in self.sides) + labels + self._carried.bytes

    def lengths(self) -> list[int]:
        """Rows of each side, to come back to with ``truncate``."""
        return [len(side) for side in self.sides]

    def truncate(self, lengths: list[int]) -> None:
        """Forget the rows behind these."""
        for side, labels, length in zip(self.sides, self._labels, lengths, strict=True):
            side.truncate(length)
            labels.truncate(length)

    def add(self, block: Block, start: int, stop: int) -> None:
        """Take some rows of a page; on BudgetExceeded the window may need to be truncated."""
        assert isinstance(block.rows, BatchRows)
        assert block.keys is not None
        self._labels[block.side].extend(stop - start)[:] = block.label
        self.sides[block.side].insert(block.rows.batch.slice(start, stop - start), block.keys.slice(start, stop))

    def ordered(self) -> list[Ordered]:
        """The rows to be joined, sorted."""
        result = []
        for side, labels, kept in zip(self.sides, self._labels, self.kept, strict=True):
            order = side.in_order()[kept:]  # those that are kept come first: their words are smaller
            words, numbers = side.words[order], cast(Int32, labels.data)
            result.append(Ordered(side.rows, order, words, side.keys, labels=numbers))
        return result

    def leave(self, side: int, *, last: bool = False) -> None:
        """The rows of a side were joined: write them, but for the last that do not fill a page unless ``last``."""
        store = self.sides[side]
        if self._output is None or len(store) == 0:
            self.clear(side)
            return
        output, order = self._output.sides[side], store.in_order()
        whole = len(order) if last else len(order) - len(order) % output.page_rows
        if whole == 0:
            self.kept[side] = len(order)
            return
        if self._limit.bytes is not None and self._nbytes(store, order[whole:]) > self._limit.bytes:
            whole = len(order)
        output.write(store.rows, order[:whole])
        rest = store.rows.batch(order[whole:]) if whole < len(order) else None
        self.clear(side)
        if rest is not None:
            self._keep(side, rest)

    @staticmethod
    def _nbytes(store: Gathered, rows: Int64) -> int:
        return int(store.rows.sizes(rows).sum() + store.key_nbytes * len(rows))

    def _keep(self, side: int, rows: pa.RecordBatch) -> None:
        self._labels[side].extend(rows.num_rows)[:] = 0
        self.sides[side].insert_again(rows)
        self.kept[side] = rows.num_rows

    def clear(self, side: int) -> None:
        """Forget the rows of a side."""
        self.sides[side].clear()
        self._labels[side].clear()
        self.kept[side] = 0

    def save(self, snapshot: Snapshot, name: str) -> dict[str, Any]:
        """All rows; returns the plain values that ``load`` needs."""
        for number, (side, labels) in enumerate(zip(self.sides, self._labels, strict=True)):
            snapshot.tables[f"{name}-window-{number}"] = pa.Table.from_batches([side.all_rows()])
            snapshot.arrays[f"{name}-labels-{number}"] = labels.data.copy()
        return {"kept": list(self.kept)}

    def load(self, snapshot: Snapshot, name: str, values: dict[str, Any]) -> None:
        """The inverse of ``save``."""
        for number, (side, labels) in enumerate(zip(self.sides, self._labels, strict=True)):
            side.insert_again(one_batch(snapshot.tables[f"{name}-window-{number}"]))
            labels.append(snapshot.arrays[f"{name}-labels-{number}"])
        self.kept = list(values["kept"])

    def close(self) -> None:
        """Give everything back."""
        for side in range(len(self.sides)):
            self.clear(side)
        self._carried.clear()
