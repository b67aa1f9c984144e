"""A block of a sweep asks the areas of blocks of the other side (PMJ section 3.4: all but those of its own run)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from earlyjoin.algorithms.merge_join.blocks import Block
from earlyjoin.algorithms.sweep_areas import SweepCursor
from earlyjoin.predicates.encoding.keys import Bool, Int64
from earlyjoin.state import joined
from earlyjoin.state.counters import Counters
from earlyjoin.state.rows.stacked import StackedRows
from earlyjoin.state.rows.store import Rows

_MOST_ASKED = 16
"""Areas that one step asks: also a query that finds nothing is a bounded step."""


Stay = tuple[Int64, Int64]
"""When rows came into memory, and when they left it."""


class BlockQuery:
    """Its opponents are asked one after the other; area ``next`` has answered for the rows before ``row``.

    The rows of all opponents are numbered as one, so that what was found in many of them goes out in one batch.
    """

    def __init__(self, block: Block, opponents: list[Block], next_: int = 0, row: int = 0) -> None:
        self.block, self.opponents, self.next, self.row = block, opponents, next_, row
        self._stacked: StackedRows | None = None
        # Blocks of rows in memory all point into the same rows.
        if any(opponent.rows is not opponents[0].rows for opponent in opponents):
            self._stacked = StackedRows([opponent.rows for opponent in opponents])

    @property
    def rows(self) -> Rows:
        """The rows of the opponents."""
        return self._stacked if self._stacked is not None else self.opponents[0].rows

    @property
    def over(self) -> bool:
        """Have all opponents answered?"""
        return self.next >= len(self.opponents)

    def ask(self, out: tuple[Int64, Int64], counters: Counters) -> tuple[Int64, Int64]:
        """Pairs of rows of the block and of the opponents: as many as ``out``, which is written over, has room for."""
        here, there = [], []
        room = len(out[0])
        for _ in range(_MOST_ASKED):
            asked = self.next
            mine, theirs = self._ask_next(out, room, counters)
            here.append(mine)
            there.append(theirs)
            room -= len(mine)
            if self.over or self.next == asked or room == 0:
                break
        return np.concatenate(here), np.concatenate(there)

    def _ask_next(self, out: tuple[Int64, Int64], room: int, counters: Counters) -> tuple[Int64, Int64]:
        opponent, keys = self.opponents[self.next], self.block.keys
        assert opponent.area is not None
        assert keys is not None
        cursor, handles, rows = SweepCursor(self.row), out[0][:room], out[1][:room]
        count = opponent.area.query(keys, cursor, handles, rows)
        # Pairs of a row that is not finished are found again: so a row number alone says how far a query has come.
        whole = rows[:count] < cursor.row
        here, there = self.block.swept[rows[:count][whole]], opponent.swept[handles[:count][whole]]
        if self.block.stay is not None and opponent.stay is not None:
            here, there = _not_together(self.block.stay, here, opponent.stay, there)
        if self._stacked is not None:
            there += self._stacked.starts[self.next]
        counters.comparisons += cursor.row - self.row
        self.row = cursor.row
        if self.row >= len(keys):
            self.next, self.row = self.next + 1, 0
        return here, there

    def by_opponent(self, there: Int64) -> Iterator[tuple[Block, Int64]]:
        """The opponents whose rows these are, and their own numbers for them; one stands for all with the same rows."""
        if self._stacked is None:
            yield self.opponents[0], there
        else:
            for number, rows, _ in self._stacked.pieces(there):
                yield self.opponents[number], rows

    def opponents_matched(self) -> Bool | None:
        """The flags of the opponents' rows, None when nobody asks; ``return_matched`` takes them back."""
        if self._stacked is None or self.opponents[0].matched is None:
            return self.opponents[0].matched
        return np.concatenate([opponent.matched for opponent in self.opponents if opponent.matched is not None])

    def return_matched(self, flags: Bool | None) -> None:
        """Give the blocks their flags back."""
        if self._stacked is not None and flags is not None:
            starts = self._stacked.starts
            for opponent, start, stop in zip(self.opponents, starts[:-1], starts[1:], strict=True):
                if opponent.matched is not None:
                    opponent.matched[:] = flags[start:stop]


def _not_together(mine: Stay, here: Int64, theirs: Stay, there: Int64) -> tuple[Int64, Int64]:
    """The pairs of rows that were never in memory at the same time: the others were joined there."""
    together = joined.resided_together((mine[0][here], mine[1][here]), (theirs[0][there], theirs[1][there]))
    return here[~together], there[~together]
