"""Joins the sorted rows of any number of sides on equality: group by group, the cross product of each in bounded steps.

::

    next words of the shortest side ──▶ where they lie on all sides: boxes ──▶ combinations, as many as a batch holds
        ▲                                (words that a side lacks drop out)       │ not joined before, keys really equal
        └──────────────────────────────── boxes exhausted ◀───────────────────────┘

A box is a place and a length on each side: a hot key of a million rows takes no more room than any other. What has gone
out is a cursor over the boxes, which can be saved between any two steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from earlyjoin.algorithms.protocol import Matches, Step
from earlyjoin.kernels.combinations import combinations
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state import joined
from earlyjoin.state.budget import Account
from earlyjoin.state.counters import Counters
from earlyjoin.state.rows.store import Rows
from earlyjoin.state.snapshot import Snapshot

Int32 = npt.NDArray[np.int32]

_MOST_WORDS = 8192


@dataclass(frozen=True, slots=True)
class Ordered:
    """Rows of one side in the order of their words."""

    rows: Rows
    order: Int64
    """Row numbers, ascending by word."""
    words: npt.NDArray[Any]
    """The words in that order."""
    keys: Keys | None
    """By row number."""
    old: Int32 | None = None
    """For rows in memory: how many rows before each place of the order were joined before; one entry more than rows."""
    labels: Int32 | None = None
    """For rows from disk: the number of the run that each row came from."""

    @property
    def keys_of_rows(self) -> Keys:
        """The keys; there are rows."""
        assert self.keys is not None
        return self.keys


class Workspace:
    """Memory for the boxes of some words and for the combinations of one step, reserved once and used again."""

    def __init__(self, sides: int, output_rows: int, account: Account, nbytes: int | None) -> None:
        word_nbytes = 8 * (1 + 3 * sides) + 8 * 6 * sides * sides
        row_nbytes = 8 * (3 * sides + 2)
        self.words, self.room = _MOST_WORDS, output_rows
        if nbytes is not None:
            self.words = int(np.clip(nbytes // 2 // word_nbytes, 1, _MOST_WORDS))
            self.room = int(np.clip(nbytes // 2 // row_nbytes, 1, output_rows))
        self.nbytes = self.words * word_nbytes + self.room * row_nbytes
        self._account = account
        account.reserve(self.nbytes)
        self.out = np.empty((sides, self.room), dtype=np.int64)

    def close(self) -> None:
        """Give the memory back."""
        self._account.clear()


class GroupJoin:
    """Call ``step`` until ``done``. ``key`` compares what words alone do not decide; None when they do."""

    def __init__(
        self, sides: Sequence[Ordered], key: BoundPredicate | None, workspace: Workspace, counters: Counters
    ) -> None:
        self.done = any(len(side.order) == 0 for side in sides)
        self.page_rows = workspace.words
        self._sides, self._key, self._workspace, self._counters = sides, key, workspace, counters
        self._shortest = min(sides, key=lambda side: len(side.order))
        self._first = self._next = 0
        """The places, on the shortest side, of the words whose boxes are in hand and of those behind them."""
        self._boxes: tuple[Int64, Int64] | None = None
        self._cursor = np.zeros(1 + len(sides), dtype=np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes really held; the orders belong to the code that sorted the rows."""
        return self._workspace.nbytes

    def step(self) -> Step:
        """The combinations that the next words give, as many as there is room for."""
        if self._boxes is None:
            if self._next >= len(self._shortest.order):
                self.done = True
                return None
            self._boxes = self._find_boxes()
            self._cursor[:] = 0
        starts, counts = self._boxes
        out = self._workspace.out
        found = combinations(starts, counts, self._cursor, out)
        self._counters.comparisons += found
        index = tuple(side.order[out[number, :found]] for number, side in enumerate(self._sides))
        if self._cursor[0] >= len(starts):
            self._boxes = None
        return self._settled(index)

    def _find_boxes(self) -> tuple[Int64, Int64]:
        self._first = self._next
        lead = self._shortest.words
        piece = lead[self._first : self._first + self._workspace.words]
        words = piece[np.append(True, piece[1:] != piece[:-1])]
        self._next = int(np.searchsorted(lead, words[-1], side="right"))
        starts = np.column_stack([np.searchsorted(side.words, words, side="left") for side in self._sides])
        stops = np.column_stack([np.searchsorted(side.words, words, side="right") for side in self._sides])
        filled = (stops > starts).all(axis=1)
        starts, stops = starts[filled], stops[filled]
        if self._sides[0].old is None:
            return starts, stops - starts
        old = np.empty_like(starts)
        for number, side in enumerate(self._sides):
            assert side.old is not None
            old[:, number] = side.old[stops[:, number]] - side.old[starts[:, number]]
        return joined.unjoined_boxes(starts, stops - starts, old)

    def _settled(self, index: tuple[Int64, ...]) -> Step:
        """Those combinations that are results and were not given out before."""
        kept: Bool = np.ones(len(index[0]), dtype=np.bool_)
        sides = list(zip(self._sides, index, strict=True))
        labels: list[Any] = [side.labels[rows] for side, rows in sides if side.labels is not None]
        if labels:
            kept &= ~joined.same_run(*labels)
        if self._key is not None:
            first = self._sides[0].keys_of_rows
            for side, rows in sides[1:]:
                kept &= self._key.holds(first, index[0], side.keys_of_rows, rows)
        if not kept.all():
            index = tuple(rows[kept] for rows in index)
        return Matches(tuple(side.rows for side in self._sides), index) if len(index[0]) else None

    def save(self, snapshot: Snapshot, name: str) -> dict[str, Any]:
        """Where it stands; returns the plain values that ``load`` needs."""
        cursor = None if self._boxes is None else [int(place) for place in self._cursor]
        return {"first": self._first, "next": self._next, "cursor": cursor}

    def load(self, snapshot: Snapshot, name: str, values: dict[str, Any]) -> None:
        """Bring a new join of the same rows to where the saved one stood."""
        self._next = values["next"]
        if values["cursor"] is not None:
            self._next = values["first"]
            self._boxes = self._find_boxes()
            self._cursor[:] = values["cursor"]

    def close(self) -> None:
        """Give the memory back."""
        self._workspace.close()
