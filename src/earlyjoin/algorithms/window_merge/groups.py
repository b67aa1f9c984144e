"""Joins the sorted rows of any number of sides on equality: group by group, the cross product of each in bounded steps.

::

    next words of the shortest side ──▶ where they lie on all sides: boxes ──▶ combinations, as many as a batch holds
        ▲                                (words that a side lacks drop out)       │ not joined before, keys really equal
        └──────────────────────────────── boxes exhausted ◀───────────────────────┘

A box is a place and a length on each side: a hot key of a million rows takes no more room than any other. What has gone
out is a cursor over the boxes, which can be saved between any two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from earlyjoin.algorithms.protocol import Context, Step
from earlyjoin.kernels.combinations import combinations
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state import joined
from earlyjoin.state.budget import Account

Int32 = npt.NDArray[np.int32]

_MOST_WORDS = 65536


@dataclass(frozen=True, slots=True)
class Ordered:
    """Rows of one side in the order of their words."""

    order: Int64
    """Row numbers, ascending by word."""
    words: npt.NDArray[Any]
    """The words in that order."""
    old: Int32 | None = None
    """For rows in memory: how many rows before each place of the order were joined before; one entry more than rows."""


class Workspace:
    """Memory for the boxes of some words and for the combinations of one step, taken once and used again.

    Without an account it counts as part of what rows take. Words take more where some rows of them have met (``old``).
    """

    def __init__(
        self,
        sides: int,
        output_rows: int,
        account: Account | None = None,
        nbytes: int | None = None,
        *,
        some_have_met: bool = False,
    ) -> None:
        word_nbytes = 8 * (2 + 3 * sides) + (8 * 6 * sides * sides if some_have_met else 0)
        row_nbytes = 8 * (3 * sides + 2)
        self.words, self.room = _MOST_WORDS, output_rows
        if nbytes is not None:
            self.words = int(np.clip(nbytes // 2 // word_nbytes, 1, _MOST_WORDS))
            self.room = int(np.clip(nbytes // 2 // row_nbytes, 1, output_rows))
        self.nbytes = 0
        self._account = account
        if account is not None:
            self.nbytes = self.words * word_nbytes + self.room * row_nbytes
            account.reserve(self.nbytes)
        self.out = np.empty((sides, self.room), dtype=np.int64)

    def close(self) -> None:
        """Give the memory back."""
        if self._account is not None:
            self._account.clear()


class GroupJoin:
    """Call ``step`` until ``done``. ``give`` gets combinations of rows with equal words, and says what goes out."""

    def __init__(
        self,
        sides: Sequence[Ordered],
        workspace: Workspace,
        context: Context,
        give: Callable[[tuple[Int64, ...]], Step],
    ) -> None:
        self.done = any(len(side.order) == 0 for side in sides)
        self.page_rows = workspace.words
        self._sides, self._workspace, self._context, self._give = sides, workspace, context, give
        self._shortest = min(range(len(sides)), key=lambda number: len(sides[number].order))
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
        if self.done:
            return None
        if self._boxes is None:
            self._boxes = self._find_boxes()
            self._cursor[:] = 0
        starts, counts = self._boxes
        out = self._workspace.out
        if self._context.output_rows < out.shape[1]:  # the memory was made smaller
            out = out[:, : self._context.output_rows]
        found = combinations(starts, counts, self._cursor, out)
        self._context.counters.comparisons += found
        if self._cursor[0] >= len(starts):
            self._boxes = None
            self.done = self._next >= len(self._sides[self._shortest].order)
        if not found:
            return None
        return self._give(tuple(side.order[out[number, :found]] for number, side in enumerate(self._sides)))

    def _find_boxes(self) -> tuple[Int64, Int64]:
        self._first = self._next
        lead = self._sides[self._shortest].words
        piece = lead[self._first : self._first + self._workspace.words]
        places = np.flatnonzero(np.append(True, piece[1:] != piece[:-1]))
        words = piece[places]
        self._next = int(np.searchsorted(lead, words[-1], side="right"))
        starts = np.empty((len(words), len(self._sides)), dtype=np.int64)
        starts[:, self._shortest] = self._first + places
        stops = np.empty_like(starts)
        stops[:, self._shortest] = self._first + np.append(places[1:], self._next - self._first)
        for number, side in enumerate(self._sides):
            if number == self._shortest:
                continue
            at = np.searchsorted(side.words, words, side="left")
            there = side.words[np.minimum(at, len(side.words) - 1)] == words
            if not there.all():
                words, at, starts, stops = words[there], at[there], starts[there], stops[there]
            starts[:, number], stops[:, number] = at, np.searchsorted(side.words, words, side="right")
        if self._sides[0].old is None:
            return starts, stops - starts
        old = np.empty_like(starts)
        for number, side in enumerate(self._sides):
            assert side.old is not None
            old[:, number] = side.old[stops[:, number]] - side.old[starts[:, number]]
        return joined.unjoined_boxes(starts, stops - starts, old)

    def save(self) -> dict[str, Any]:
        """Where it stands, as plain values."""
        cursor = None if self._boxes is None else [int(place) for place in self._cursor]
        return {"first": self._first, "next": self._next, "cursor": cursor}

    def load(self, values: dict[str, Any]) -> None:
        """Bring a new join of the same rows to where the saved one stood."""
        self._next = values["next"]
        if values["cursor"] is not None:
            self._next = values["first"]
            self._boxes = self._find_boxes()
            self._cursor[:] = values["cursor"]

    def close(self) -> None:
        """Give the memory back."""
        self._workspace.close()
