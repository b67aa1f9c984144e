"""One word with more rows than fit into memory: nested blocks of its pages (no paper says what happens then).

::

    for each block of pages of the first side:  for each block of the second:  …  for each page of the last:  join
    then for each page of every side:  repeated keys of a one-side are refused, rows without a match go out,
                                       rows are written, the page is used

A block is as many pages as fit beside a page of every further side. A page of each side in memory is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from earlyjoin.algorithms.protocol import Step
from earlyjoin.algorithms.window_merge.groups import GroupJoin
from earlyjoin.algorithms.window_merge.run_cursor import Cost, Piece, RunCursor, Word
from earlyjoin.algorithms.window_merge.window import WindowSide
from earlyjoin.predicates.encoding.keys import Keys

if TYPE_CHECKING:
    from earlyjoin.algorithms.window_merge.merge import WindowMerge

Place = tuple[int, int]
"""A cursor of a side, and a page of its run."""


class HotWord:
    """Call ``step`` until ``done``."""

    def __init__(self, merge: WindowMerge, word: Word) -> None:
        self._merge, self._word, self.done = merge, word, False
        self._pages: list[list[Place]] = [
            [(number, page) for number, cursor in enumerate(side) for page in cursor.pages_with(word)]
            for side in merge.cursors
        ]
        sides = len(self._pages)
        self._last = sides - 1
        self._first, self._stop = [0] * sides, [0] * sides
        """The pages of each side's block."""
        self._rows: list[WindowSide | None] = [None] * sides
        """The rows of the blocks that are in memory."""
        self._join: GroupJoin | None = None
        self._costs: list[list[Cost]] = [[] for _ in range(sides)]
        self._held_nbytes = [0] * sides
        self._leaving: Place | None = None if all(self._pages) else (0, 0)
        """The side and the place in its pages of what leaves; None while blocks are joined."""
        self._piece: Piece | None = None
        self._left_out = 0
        self._once: Keys | None = None
        """Keys of the one-side with this word that have been seen: as a rule there is one."""

    @property
    def joins(self) -> bool:
        """Is it in the middle of blocks?"""
        return self._join is not None

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return sum(self._held_nbytes)

    def step(self) -> Step:
        """Some combinations of the blocks, the next blocks, or the next page that leaves."""
        if self._leaving is not None:
            return self._leave(*self._leaving)
        if self._join is None:
            self._load()
            return None
        step = self._join.step()
        if self._join.done:
            self._turn(self._last)
        return step

    # Joining

    def _load(self) -> None:
        """The next block of every side that has none in memory."""
        for side, places in enumerate(self._pages):
            if self._rows[side] is not None:
                continue
            if self._stop[side] == self._first[side]:
                self._stop[side] = self._first[side] + self._fitting(side)
            mine = [self._take(side, place) for place in places[self._first[side] : self._stop[side]]]
            self._rows[side] = WindowSide.of(self._merge.schemas[side], mine)
            if self._rows[side] is None:  # a page may begin below the word and end above it
                self._turn(side)
                return
        self._join = self._merge.join_of(self._rows)

    def _fitting(self, side: int) -> int:
        """Pages of the next block: as many as fit beside the largest page of each side behind, which also get some."""
        if side == self._last:
            return 1
        account, reserved = self._merge.memory.pages, []
        for behind in range(side + 1, self._last + 1):
            costs = [self._cost(behind, place) for place in self._pages[behind]]
            reserved.append((max(nbytes for nbytes, _ in costs), max(rows for _, rows in costs)))
            self._reserve(reserved[-1])
        costs = [self._cost(side, place) for place in self._pages[side][self._first[side] :]]
        self._reserve(costs[0])
        fitting = 1
        while fitting < len(costs) and account.try_reserve(*costs[fitting]):
            fitting += 1
        for cost in [*reserved, *costs[:fitting]]:
            account.release(*cost)
        return max(1, fitting // (self._last - side))

    def _reserve(self, cost: Cost) -> None:
        """Book what the merge cannot do without."""
        if not self._merge.memory.pages.try_reserve(*cost):
            self._merge.write_out()
            if not self._merge.memory.pages.try_reserve(*cost):
                raise self._merge.memory.too_large(cost[0])

    def _turn(self, side: int) -> None:
        """On to the next block of a side; those behind it begin again. The last one turns fastest."""
        for behind in range(side, self._last + 1):
            self._let_go(behind)
        self._first[side] = self._stop[side]
        for behind in range(side + 1, self._last + 1):
            self._first[behind] = self._stop[behind] = 0
        if self._first[side] == len(self._pages[side]):
            if side == 0:
                self._leaving = (0, 0)
            else:
                self._turn(side - 1)

    # Leaving

    def _leave(self, side: int, at: int) -> Step:
        if at == len(self._pages[side]):
            self._leaving = (side + 1, 0)
            self.done = side == self._last
            return None
        merge, place = self._merge, self._pages[side][at]
        if self._piece is None:
            self._piece = self._take(side, place)
            self._rows[side] = WindowSide.of(merge.schemas[side], [self._piece])
            self._see(side, self._rows[side])
        mine = self._rows[side]
        if mine is not None and self._left_out < len(mine):
            step, self._left_out = merge.matching.unmatched(side, mine, self._left_out)
            if step is not None:
                return step
        merge.write(side, mine)
        self._cursor(side, place).use_word(place[1], self._piece)
        self._let_go(side)
        self._left_out, self._leaving, self._piece = 0, (side, at + 1), None
        return None

    def _see(self, side: int, mine: WindowSide | None) -> None:
        """A key of the one-side must not have been seen on an earlier page, or before on this one."""
        if mine is not None:
            self._once = self._merge.matching.refuse_repeated(side, mine, self._once)

    # Memory

    def _cursor(self, side: int, place: Place) -> RunCursor:
        return self._merge.cursors[side][place[0]]

    def _cost(self, side: int, place: Place) -> Cost:
        """Of a page and of its rows put together with others."""
        pages = self._cursor(side, place).pages
        nbytes, rows = pages.cost(place[1])
        return nbytes + (0 if self._merge.memory.windows is None else pages.payload_nbytes(place[1])), rows

    def _take(self, side: int, place: Place) -> Piece:
        cost = self._cost(side, place)
        self._reserve(cost)
        self._costs[side].append(cost)
        piece = self._cursor(side, place).with_word(place[1], self._word)
        self._held_nbytes[side] += piece.page.nbytes
        return piece

    def _let_go(self, side: int) -> None:
        """Forget the pages of a side, and the join that they are part of."""
        for cost in self._costs[side]:
            self._merge.memory.pages.release(*cost)
        self._costs[side].clear()
        self._held_nbytes[side] = 0
        self._rows[side] = self._join = None

    def close(self) -> None:
        """Give memory back."""
        for side in range(len(self._pages)):
            self._let_go(side)

    # State

    def save(self) -> dict[str, Any]:
        """Plain values; pages are read again."""
        return {
            "word": self._word,
            "pages": self._pages,
            "first": list(self._first),
            "stop": list(self._stop),
            "join": self._join.save() if self._join is not None else None,
            "leaving": self._leaving,
            "left_out": self._left_out,
        }

    def load(self, values: dict[str, Any]) -> None:
        """Take over what ``save`` gave."""
        self._pages = [[(number, page) for number, page in side] for side in values["pages"]]
        self._first, self._stop = list(values["first"]), list(values["stop"])
        self._leaving = tuple(values["leaving"]) if values["leaving"] is not None else None
        self._left_out = values["left_out"]
        if values["join"] is not None:
            self._load()
            assert self._join is not None
            self._join.load(values["join"])
        if self._leaving is not None:
            self._see_again(*self._leaving)

    def _see_again(self, side: int, stop: int) -> None:
        """Keys of pages that have left, if anybody asks for them."""
        if side == self._merge.matching.one_side:
            for place in self._pages[side][:stop]:
                self._see(side, WindowSide.of(self._merge.schemas[side], [self._take(side, place)]))
                self._let_go(side)
