"""Matches and values of each row of an arriving batch, whatever row numbers the operator uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from earlyjoin.algorithms.estimation.tally import Counts, Floats, Measure
from earlyjoin.algorithms.protocol import Matches
from earlyjoin.state.rows.store import BatchRows

Numbers = TypeVar("Numbers", Counts, Floats)


@dataclass(slots=True)
class _Space:
    """Row numbers of one holder of rows, from ``first`` on: matches, and values where they are asked, of each."""

    holder: object
    first: int
    sums: list[tuple[Counts, Floats | None]]


class RowCounts:
    """Sums for each measure and each row of a batch of ``side``."""

    def __init__(self, side: int, rows: int) -> None:
        self._side = side
        self._rows = rows
        self._spaces: dict[int, _Space] = {}
        self.lost = False
        """True when the row numbers make no sense as those of a batch."""

    def add(self, step: Matches, measures: Sequence[Measure]) -> None:
        """Count what each arriving row has matched in a step."""
        index, rows = step.index[self._side], step.rows[self._side]
        if index is None or rows is None or len(index) == 0 or self.lost:
            return
        # Row numbers of a batch count from 0; those of a store from wherever the batch was put.
        holder = rows.batch if isinstance(rows, BatchRows) else rows
        first = 0 if isinstance(rows, BatchRows) else int(index.min())
        space = self._spaces.get(id(holder))
        if space is None:
            nothing: list[tuple[Counts, Floats | None]] = [
                (np.zeros(0, dtype=np.int64), None if measure.values is None else np.zeros(0)) for measure in measures
            ]
            space = self._spaces[id(holder)] = _Space(holder, first, nothing)
        elif first < space.first:
            more = space.first - first
            space.sums = [
                (np.pad(counts, (more, 0)), None if values is None else np.pad(values, (more, 0)))
                for counts, values in space.sums
            ]
            space.first = first
        index = index - space.first if space.first else index
        space.sums = [_added(sums, index, measure) for sums, measure in zip(space.sums, measures, strict=True)]
        self.lost = max(len(counts) for counts, _ in space.sums) > 2 * self._rows + 1024

    def sums(self, number: int) -> tuple[Counts, Floats | None]:
        """Of each row that has a match, in some order; rows without may be among them."""
        found = [space.sums[number] for space in self._spaces.values()]
        if len(found) == 1:
            return found[0]
        counts = [one for one, _ in found] or [np.zeros(0, dtype=np.int64)]
        values = [one for _, one in found if one is not None]
        return np.concatenate(counts), np.concatenate(values) if values else None

    def between(self, number: int, ends: Counts) -> tuple[Counts, Floats | None]:
        """Of the rows up to each of ``ends`` (positions in the batch) since the end before."""
        counts, values = np.zeros(len(ends), dtype=np.int64), np.zeros(len(ends))
        with_values = False
        for space in self._spaces.values():
            found, worth = space.sums[number]
            counts += _pieces(found, ends)
            if worth is not None:
                values += _pieces(worth, ends)
                with_values = True
        return counts, values if with_values else None


def _added(sums: tuple[Counts, Floats | None], index: Counts, measure: Measure) -> tuple[Counts, Floats | None]:
    index, worth = measure.rows(index), measure.worth()
    counts, values = sums
    found: Counts = np.bincount(index, minlength=len(counts))
    found[: len(counts)] += counts
    if worth is None or values is None:
        return found, None
    more: Floats = np.bincount(index, weights=worth, minlength=len(values)).astype(np.float64, copy=False)
    more[: len(values)] += values
    return found, more


def _pieces(found: Numbers, ends: Counts) -> Numbers:
    sums = np.concatenate((np.zeros(1, dtype=found.dtype), np.cumsum(found)))
    pieces: Numbers = np.diff(sums[np.minimum(ends, len(found))], prepend=0)
    pieces[-1] += sums[-1] - sums[min(int(ends[-1]), len(found))]
    return pieces
