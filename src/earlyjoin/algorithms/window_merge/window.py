"""A window: the rows of one side in a range of words, put together from pages, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.algorithms.sweep_areas import SweepWords
from earlyjoin.algorithms.window_merge.run_cursor import Piece, SortedPage
from earlyjoin.predicates.encoding.keys import Bool, Bytes, Int64, Keys
from earlyjoin.state.rows.store import BatchRows, empty_columns


@dataclass(slots=True)
class WindowSide:
    """The rows of one side."""

    rows: BatchRows
    keys: Keys
    labels: Int64
    """Of the run that each row came from."""
    arrivals: Int64 | None
    departures: Int64 | None
    numbers: Int64 | None
    matched: Bool | None
    order: Int64
    """The rows in the order of their words."""
    words: SweepWords
    """The words in that order."""

    def __len__(self) -> int:
        return len(self.order)

    @classmethod
    def of(cls, schema: pa.Schema, pieces: Sequence[Piece]) -> WindowSide | None:
        """Pieces put together; None for no rows."""
        pieces = [piece for piece in pieces if len(piece)]
        if not pieces:
            return None

        def column(of: Callable[[SortedPage], npt.NDArray[Any] | None]) -> Any:
            parts = [values[start:stop] for page, start, stop in pieces if (values := of(page)) is not None]
            return np.concatenate(parts) if parts else None

        words = column(lambda page: page.words)
        order = np.argsort(words, kind="stable")  # pieces are in order: it merges them
        batches = [page.rows.batch.slice(start, stop - start) for page, start, stop in pieces]
        return cls(
            BatchRows(pa.concat_batches(batches) if len(schema) else empty_columns(len(words))),
            joined_keys([page.keys.slice(start, stop) for page, start, stop in pieces]),
            np.repeat([page.label for page, _, _ in pieces], [len(piece) for piece in pieces]),
            column(lambda page: page.arrivals),
            column(lambda page: page.departures),
            column(lambda page: page.numbers),
            column(lambda page: page.matched),
            order,
            words[order],
        )


def joined_keys(parts: Sequence[Keys]) -> Keys:
    """The keys of all parts behind each other; all of them can match."""
    words = np.concatenate([part.words for part in parts])
    heaps = [part.heap for part in parts if part.heap is not None]
    if not heaps:
        return Keys(words)
    data = np.concatenate([heap.data[heap.offsets[0] : heap.offsets[-1]] for heap in heaps])
    lengths = np.concatenate([np.diff(heap.offsets) for heap in heaps])
    return Keys(words, Bytes(np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)]), data))
