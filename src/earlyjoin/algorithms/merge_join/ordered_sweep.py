"""A join of two sorted sequences whose results come in the order of the left key (PMJ section 3.6, fourth point).

::

    next left page ──▶ fetch the right pages that its next rows may match ──▶ these rows ask all of them at once
        ▲                  │ they do not fit: fewer left rows                    └─ pairs by left row: go out
        │                  └ not even for one key: that key's rows meet the right pages one by one
        └───────────────── all rows of the page have asked

Only left rows ask, so pairs are found left row by left row. A left row has found all its pairs when every right page
within its reach was asked. Pairs of one left key come in any order, so a hot key may meet its right pages one by one:
the memory of a page of each side is enough, and the order still holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlyjoin.algorithms.matching.settlement import Settlement
from earlyjoin.algorithms.merge_join.blocks import Block, Sequence
from earlyjoin.algorithms.merge_join.sorted_runs import too_large
from earlyjoin.algorithms.protocol import Context, Plan, Step
from earlyjoin.algorithms.sweep_areas import AreaMaker, SweepCursor
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Budget
from earlyjoin.state.rows.stacked import StackedRows
from earlyjoin.state.rows.store import Rows
from earlyjoin.state.snapshot import Snapshot

_PAIR_NBYTES = 64
"""Bytes a pair while it is found and put into order."""


@dataclass(slots=True)
class Reach:
    """Which right words a left word may match: those no further than ``eps`` away."""

    eps: int | float

    def below(self, word: int | float) -> int | float:
        """The smallest."""
        return _clipped(word - self.eps - self._margin(word))

    def above(self, word: int | float) -> int | float:
        """The largest."""
        return _clipped(word + self.eps + self._margin(word))

    def _margin(self, word: int | float) -> int | float:
        """Floating subtraction rounds: look a little further than needed."""
        return 4 * float(np.spacing(abs(word) + self.eps)) if isinstance(word, float) else 0


def _clipped(word: int | float) -> int | float:
    """Inside the range of words."""
    limits = np.iinfo(np.int64)
    return word if isinstance(word, float) else min(max(word, int(limits.min)), int(limits.max))


class OrderedSweep:
    """Joins at most one sequence of each side. Call ``step`` until ``done``."""

    pairs = True

    def __init__(
        self,
        plan: Plan,
        context: Context,
        budget: Budget,
        settle: Settlement,
        make_area: AreaMaker,
        sequences: list[Sequence],
        eps: int | float,
    ) -> None:
        self.done = len(sequences) < 2
        self._context, self._settle, self._make_area, self._budget = context, settle, make_area, budget
        self._sequences = sequences
        self._reach = Reach(eps)
        self._pages, self._areas = budget.account("pages"), budget.account("sweep areas")
        self._finding = budget.account("pairs found")
        self._firsts = sequences[1].first_words if not self.done else np.empty(0, dtype=np.int64)
        self.page_rows = max((sequence.page_rows for sequence in sequences), default=0)
        most = self.page_rows + 1  # more than an area can hold: a query always gets past a row
        self._pages.reserve(16 * most)
        self._out = (np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64))
        self._page, self._at, self._stop = 0, 0, 0
        self._left: Block | None = None
        self._held: dict[int, Block] = {}
        self._found: tuple[Int64, Int64] | None = None
        self._hot: tuple[int, int] | None = None
        """A hot key at work: the right page it meets now, and the first of its left rows that has not asked it."""

    def step(self) -> Step:
        """One bounded piece of work."""
        left = self._left
        if self._found is not None and left is not None:
            return self._give(left, *self._found)
        if left is None:
            self._take_left_page()
        elif self._at >= len(left.swept):
            self._let_go_of_left(left)
        elif self._hot is not None:
            self._meet_next_page(left, *self._hot)
        elif not self._fetch(left):
            self._ask(left)
        return self._give(left, *self._found) if self._found is not None and left is not None else None

    # The left side

    def _take_left_page(self) -> None:
        if self.done or self._page >= len(self._sequences[0].first_words):
            self._forget_right()
            self.done = True
            return
        block = self._sequences[0].load(0, self._page)
        if not self._reserve(block):
            self._forget_right()  # they come back
            if not self._reserve(block):
                raise too_large(block.nbytes / max(1, len(block.words)), self._budget)
        self._left, self._at = block, 0

    def _let_go_of_left(self, left: Block) -> None:
        self._pages.release(left.payload_nbytes + left.keys_nbytes, left.payload_rows)
        self._left = None
        self._page += 1

    # The right side

    def _fetch(self, left: Block) -> bool:
        """Read a right page that is needed, or decide how many left rows may ask; False when they may."""
        words = left.swept_words
        first, stop = self._within_reach(words[self._at].item(), words[-1].item())
        for page in [page for page in self._held if page < first]:
            self._forget(page)
        missing = next((page for page in range(first, stop) if page not in self._held), None)
        if missing is None:
            self._stop = len(words)
            return False
        if self._hold(missing):
            return True
        # Rows that reach only what is there may ask.
        self._stop = int(np.searchsorted(words, self._reach.below(self._firsts[missing].item())))
        if self._stop <= self._at:
            self._forget_right()
            self._hot = (first, self._at)
            return True
        return False

    def _within_reach(self, low: int | float, high: int | float) -> tuple[int, int]:
        """The right pages that left words between two may match."""
        # The page before may end with words that belong to the next one's first.
        first = max(0, int(np.searchsorted(self._firsts, self._reach.below(low))) - 1)
        return first, int(np.searchsorted(self._firsts, self._reach.above(high), side="right"))

    def _hold(self, page: int) -> bool:
        """Read a right page into a sweep area of its own; False when it does not fit."""
        block = self._sequences[1].load(1, page)
        if not self._reserve(block):
            return False
        assert block.keys is not None
        block.area = self._make_area(1, self._areas)
        try:
            block.area.insert(block.keys, block.swept_words, np.arange(len(block.swept), dtype=np.int64))
        except BudgetExceeded:
            block.area.clear()
            self._pages.release(block.payload_nbytes + block.keys_nbytes, block.payload_rows)
            return False
        self._pages.release(block.keys_nbytes)
        block.keys = None
        self._held[page] = block
        return True

    def _reserve(self, block: Block) -> bool:
        return self._pages.try_reserve(block.payload_nbytes + block.keys_nbytes, block.payload_rows)

    def _forget(self, page: int) -> None:
        block = self._held.pop(page)
        assert block.area is not None
        block.area.clear()
        self._pages.release(block.payload_nbytes, block.payload_rows)

    def _forget_right(self) -> None:
        for page in list(self._held):
            self._forget(page)

    def give_back(self, enough: Callable[[], bool]) -> None:
        """Forget right pages, which come back when they are needed; not while pairs of them wait to go out."""
        if self._found is None and not enough():
            self._forget_right()

    # Pairs

    def _ask(self, left: Block) -> None:
        """Let left rows ask all right pages; those rows are done that came to their end in each of them."""
        assert left.keys is not None
        count = self._stop - self._at
        rows, numbers, start = [], [], 0
        for page in sorted(self._held):
            block = self._held[page]
            assert block.area is not None
            block.area.expire(left.swept_words[self._at].item())
            found, cursor = self._query(left, block, self._at, self._at + count)
            if not self._finding.try_reserve(_PAIR_NBYTES * len(found[0])):
                self._finding.clear()
                self._ask_fewer(left, count)
                return
            count = min(count, cursor)
            rows.append(found[0])
            numbers.append(start + found[1])
            start += len(block.rows)
        row = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
        number = np.concatenate(numbers) if numbers else row
        order = np.argsort(row, kind="stable")
        order = order[: int(np.searchsorted(row[order], count))]
        if len(order):
            self._found = (left.swept[self._at + row[order]], number[order])
        else:
            self._finding.clear()
        self._at += count

    def _ask_fewer(self, left: Block, count: int) -> None:
        """The pairs do not fit: ask with half of the rows, and if it is one row, page by page."""
        if count > 1:
            self._stop = self._at + count // 2
            self._ask(left)
            return
        first, _ = self._within_reach(*2 * (left.swept_words[self._at].item(),))
        self._forget_right()
        self._hot = (first, self._at)

    def _query(self, left: Block, block: Block, first: int, stop: int) -> tuple[tuple[Int64, Int64], int]:
        """Pairs of left rows (counted from ``first``) and rows of the block, and how many left rows are through."""
        assert left.keys is not None
        assert block.area is not None
        cursor, (handles, rows) = SweepCursor(0), self._out
        count = block.area.query(left.keys.slice(first, stop), cursor, handles, rows)
        self._context.counters.comparisons += cursor.row
        whole = rows[:count] < cursor.row
        return (rows[:count][whole], block.swept[handles[:count][whole]]), cursor.row

    def _meet_next_page(self, left: Block, page: int, row: int) -> None:
        """The left rows with one word meet one right page after the other."""
        word = left.swept_words[self._at].item()
        stop = int(np.searchsorted(left.swept_words, word, side="right"))
        if page >= self._within_reach(word, word)[1]:
            self._forget_right()
            self._hot, self._at = None, stop
        elif page not in self._held:
            self._forget_right()
            if not self._hold(page):
                raise too_large(left.nbytes / max(1, len(left.words)), self._budget)
        else:
            (rows, numbers), through = self._query(left, self._held[page], row, stop)
            if len(rows):
                self._found = (left.swept[row + rows], numbers)
            row += through
            self._hot = (page, row) if row < stop else (page + 1, self._at)

    def _give(self, left: Block, i: Int64, j: Int64) -> Step:
        """As many pairs as may go out at once."""
        most = self._context.output_rows
        self._found = (i[most:], j[most:]) if len(i) > most else None
        if self._found is None:
            self._finding.clear()
        parts = [self._held[page].rows for page in sorted(self._held)]
        right: Rows = StackedRows(parts) if len(parts) > 1 else parts[0]
        return self._settle((left.rows, right), i[:most], j[:most], (None, None))

    # State

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        blocks = [*self._held.values(), *([self._left] if self._left is not None else [])]
        found = self._found[0].nbytes + self._found[1].nbytes if self._found is not None and self._finding.bytes else 0
        return sum(block.nbytes for block in blocks) + 16 * len(self._out[0]) + found

    def close(self) -> None:
        """Give everything back."""
        self._forget_right()
        self._left = self._found = None
        self._pages.clear()
        self._finding.clear()
        for sequence in self._sequences:
            sequence.close()

    def save(self, snapshot: Snapshot, name: str) -> dict[str, Any]:
        """Where it stands; pages are read again."""
        if self._found is not None:
            snapshot.arrays[f"{name}-found-0"], snapshot.arrays[f"{name}-found-1"] = self._found
        return {
            "page": self._page,
            "at": self._at,
            "left": self._left is not None,
            "held": sorted(self._held),
            "hot": list(self._hot) if self._hot is not None else None,
        }

    def load(self, snapshot: Snapshot, name: str, values: dict[str, Any]) -> None:
        """The inverse of ``save``."""
        self._page = values["page"]
        if values["left"]:
            self._take_left_page()
        self._at = values["at"]
        for page in values["held"]:
            if not self._hold(page):
                raise AssertionError("a page that was in memory does not fit")
        self._hot = (values["hot"][0], values["hot"][1]) if values["hot"] is not None else None
        if f"{name}-found-0" in snapshot.arrays:
            self._found = (snapshot.arrays[f"{name}-found-0"], snapshot.arrays[f"{name}-found-1"])
