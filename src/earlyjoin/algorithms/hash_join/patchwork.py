"""Several findings as one output batch: rows of many partitions look like one list of rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.protocol import Matches
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.rows.store import Rows


class Patchwork:
    """Rows of several sources behind each other."""

    def __init__(self, patches: Sequence[Rows]) -> None:
        self._patches = list(patches)
        self.schema = patches[0].schema
        self._starts = np.cumsum([0, *(len(patch) for patch in patches)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def start(self, patch: int) -> int:
        """Number of the first row of a source."""
        return int(self._starts[patch])

    def take(self, index: Int64, columns: Sequence[int] | None = None) -> list[pa.Array]:
        """The chosen rows, source by source."""
        taken = [patch.take(numbers, columns) for patch, numbers in self._pieces(index)]
        if len(taken) == 1:
            return taken[0]
        if not taken:
            return self._patches[0].take(index, columns)
        return [pa.concat_arrays(arrays) for arrays in zip(*taken, strict=True)]

    def _pieces(self, index: Int64) -> list[tuple[Rows, Int64]]:
        """Runs of the index that lie in one source each; the index is not sorted inside a source."""
        sources = np.searchsorted(self._starts, index, side="right") - 1
        cuts = np.flatnonzero(np.diff(sources)) + 1
        bounds = [0, *cuts.tolist(), len(index)]
        pieces: list[tuple[Rows, Int64]] = []
        for start, stop in pairwise(bounds):
            if stop > start:
                source = int(sources[start])
                pieces.append((self._patches[source], index[start:stop] - self._starts[source]))
        return pieces

    def sizes(self, index: Int64, columns: Sequence[int] | None = None) -> Int64:
        """Bytes of each of the chosen rows."""
        sizes = [patch.sizes(numbers, columns) for patch, numbers in self._pieces(index)]
        return np.concatenate(sizes) if sizes else np.empty(0, dtype=np.int64)

    def widest(self, columns: Sequence[int]) -> int:
        """No row takes more bytes than this."""
        return max(patch.widest(columns) for patch in self._patches)


def combined(found: Sequence[Matches]) -> Matches | None:
    """One batch of matches out of several of the same shape; None for none."""
    if len(found) < 2:
        return found[0] if found else None
    rows: list[Rows | None] = []
    index: list[Int64 | None] = []
    for side in range(len(found[0].rows)):
        sources = [matches.rows[side] for matches in found]
        numbers = [matches.index[side] for matches in found]
        if sources[0] is None:
            rows.append(None)
            index.append(None)
            continue
        distinct: list[Rows] = []
        for source in sources:
            if source is not None and not any(source is other for other in distinct):
                distinct.append(source)
        if len(distinct) == 1:
            rows.append(distinct[0])
            index.append(np.concatenate([part for part in numbers if part is not None]))
            continue
        patchwork = Patchwork(distinct)
        shifted = []
        for source, part in zip(sources, numbers, strict=True):
            place = next(n for n, other in enumerate(distinct) if other is source)
            assert part is not None
            shifted.append(part + patchwork.start(place))
        rows.append(patchwork)
        index.append(np.concatenate(shifted))
    return Matches(tuple(rows), tuple(index))
