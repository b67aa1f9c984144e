"""The sweep over sorted sequences of both sides, page by page (PMJ sections 3.1 and 3.4).

::

    next page, by smallest word ──▶ expire areas, write rows behind the frontier ──▶ query areas of the other side
        ▲                                                                              │ (not those of its own label)
        └────────────────────── insert it into a sweep area of its own ◀───────────────┘
    memory short: park a block (forget it, note where it stood) ──▶ after the sweep: parked blocks meet the rest

The paper keeps one sweep area for each run and asks all but a row's own run's. Here an area holds one page of a run, so
that memory is taken and given back by the page. Pages pass by in the order of their smallest word, which makes that
word a frontier: no later page has anything below it. Of two pages the later one asks the area of the earlier one.

Parking is the block nesting of section 3.4: a hot key or a wide band can hold more pages than memory has room for. A
parked page notes the place in the order from which on it has not met the other side; when the sweep is over, as many
parked pages as fit are read again and meet the pages from there on. No pair is met twice, none is left out, and two
pages in memory are enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from earlyjoin.algorithms.matching.settlement import Settlement, one_sided
from earlyjoin.algorithms.merge_join.block_query import BlockQuery
from earlyjoin.algorithms.merge_join.blocks import Block, Sequence, page_order
from earlyjoin.algorithms.merge_join.merge_output import MergeOutput
from earlyjoin.algorithms.merge_join.sorted_runs import too_large
from earlyjoin.algorithms.protocol import Context, Plan, Step
from earlyjoin.algorithms.sweep_areas import AreaMaker
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state import joined
from earlyjoin.state.budget import Budget

_FOUND_NBYTES = 4 * 8
"""Bytes of a pair that a query has found: two numbers, and their copies on the way out."""
_FOUND_PART = 16
"""Part of the memory, one in so many, that pairs may take for the sake of large output batches."""
_SMALL_FOUND_PART, _SMALL_FOUND_BYTES = 4, 32 * 1024
"""Of a very small memory they get a larger part: batches of a few dozen rows cost more time than joining them."""


@dataclass(slots=True)
class Debt:
    """A parked page and the place from which on it has not met the other side."""

    sequence: int
    page: int
    start: int


class BlockSweep:
    """Joins sorted sequences; pairs of sequences with the same label are skipped. Call ``step`` until ``done``."""

    def __init__(
        self,
        plan: Plan,
        context: Context,
        budget: Budget,
        settle: Settlement,
        make_area: AreaMaker,
        sequences: list[Sequence],
        *,
        output: MergeOutput | None = None,
        pairs: bool = True,
        unmatched: bool = False,
    ) -> None:
        self.done = False
        self._how = plan.how
        self._context, self._settle, self._make_area = context, settle, make_area
        self._sequences, self._output, self.pairs, self._unmatched = sequences, output, pairs, unmatched
        self._budget = budget
        self._pages = budget.account("pages")
        self._areas = budget.account("sweep areas")
        self._order_pages()
        self.at = 0
        self.paying = False
        self.held: list[Block] = []
        self.query: BlockQuery | None = None
        self.found: tuple[Int64, Int64] | None = None
        """Pairs of the query that have not gone out yet: rows of its block, rows of its opponents."""
        self.debts: list[Debt] = []
        self.late: list[tuple[int, int]] = []
        self.leaving: list[Block] = []
        self.leaving_at = 0
        self.page_rows = max((sequence.page_rows for sequence in sequences), default=0)
        most = self._most_found()
        self._out = (np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64))

    def _most_found(self) -> int:
        """Pairs that one query may find, with memory reserved for them: a full batch of output if that is cheap."""
        # One more than an area can hold: then a query always gets past a row.
        least, memory = 1 + self.page_rows, self._budget.limit.bytes
        cheap = self._context.output_rows
        if memory is not None:
            cheap = max(memory // _FOUND_PART, min(memory // _SMALL_FOUND_PART, _SMALL_FOUND_BYTES)) // _FOUND_NBYTES
        most = max(least, min(self._context.output_rows, cheap))
        self._pages.reserve(_FOUND_NBYTES * most)
        return most

    def _order_pages(self) -> None:
        """All pages by smallest word, and where the last one of each side stands."""
        self._words, self._sequence, self._page = page_order(self._sequences)
        sides = np.asarray([s.side for s in self._sequences], dtype=np.int64)[self._sequence]
        places = [np.flatnonzero(sides == side) for side in (0, 1)]
        self._last_place = [int(place[-1]) if len(place) else -1 for place in places]

    def step(self) -> Step:
        """One bounded piece of work."""
        if self.query is not None and self.found is not None:
            return self._give_found(self.query, *self.found)
        if self.leaving:
            return self._give_unmatched(self.leaving[0])
        if self.query is not None:
            return self._ask(self.query)
        if self.paying:
            self._advance_paying()
        elif self.at < len(self._words):
            self._advance()
        elif self.held:
            self._write(None)
            self._drop_all()
        elif self.debts:
            self._begin_paying()
        elif self.late:
            block = self._load(*self.late.pop())
            self._keep(block)
            self._forget_keys(block)
            self.leaving.append(block)
        else:
            self.done = True
        return None

    # Passing by

    def _advance(self) -> None:
        """The next page comes: what is over goes, then it is read."""
        self._pass_frontier(self._words[self.at].item())
        if self.leaving:
            return  # they give room
        block = self._read(self.at)
        opponents = [held for held in self.held if self._meet(held, block)] if self.pairs else []
        self.query = BlockQuery(block, opponents)

    def _pass_frontier(self, frontier: int | float) -> None:
        for block in self.held:
            if block.area is not None:
                block.area.expire(frontier)
                if len(block.area) == 0:
                    self._forget_area(block)
        self._drop_finished()  # before writing, which needs room
        self._write(frontier)
        self._drop_finished()

    def _write(self, frontier: int | float | None) -> None:
        """Send the rows behind the frontier (None: all) to the merged runs."""
        if self._output is None:
            return
        for side in (0, 1):
            blocks = [block for block in self.held if block.side == side]
            while True:
                try:
                    self._output.write(side, blocks, frontier)
                    break
                except BudgetExceeded:
                    if not self._park_one():
                        raise

    def _is_written(self, block: Block) -> bool:
        return self._output is None or block.written >= len(block.words)

    def _read(self, place: int) -> Block:
        """The page at a place of the order, with room made for it."""
        block = self._load(int(self._sequence[place]), int(self._page[place]))
        while not self._pages.try_reserve(block.payload_nbytes + block.keys_nbytes, block.payload_rows):
            if not self._park_one():
                raise too_large(block.nbytes / max(1, len(block.words)), self._budget)
        return block

    def _load(self, sequence: int, page: int) -> Block:
        return self._sequences[sequence].load(sequence, page)

    def _meet(self, held: Block, block: Block) -> bool:
        if held.area is None or held.side == block.side or held.start > self.at or len(block.swept) == 0:
            return False
        return not joined.same_run(held.label, block.label)

    def _ask(self, query: BlockQuery) -> Step:
        """Query areas as far as the output buffers go, or end the query."""
        if query.over:
            self._end_query(query.block)
            return None
        found = query.ask(self._out, self._context.counters)
        return self._give_found(query, *found) if len(found[0]) else None

    def _end_query(self, block: Block) -> None:
        """The block has met all earlier ones; now it waits for later ones."""
        self.query = None
        self.at += 1
        if self.paying:
            self._forget_keys(block)
            self._let_go(block)
            return
        if self.pairs and len(block.swept) and self.at <= self._last_place[1 - block.side]:
            block.start = self.at
            if not self._make_room_for_area(block):
                self._park(block)
        self._forget_keys(block)
        self.held.append(block)

    def _make_room_for_area(self, block: Block) -> bool:
        assert block.keys is not None
        area = self._make_area(block.side, self._areas)
        try:
            area.insert(block.keys, block.swept_words, np.arange(len(block.swept), dtype=np.int64))
        except BudgetExceeded:
            area.clear()
            return False
        block.area = area
        return True

    # Parking

    def _park_one(self) -> bool:
        """Make room: the block that came last and gives back most; False when there is none."""
        able = [block for block in self.held if block.area is not None]
        if self.paying and len(able) < 2:
            return False
        if not able:
            return False
        written = [block for block in able if self._is_written(block)]
        block = (written or able)[-1]
        block.start = max(block.start, self.at)
        self._park(block)
        if self.paying:
            self.held.remove(block)
            self._let_go(block)
        elif self._is_written(block):
            self._drop(block)
        return True

    def give_back(self, enough: Callable[[], bool]) -> None:
        """Park blocks until that is enough; in the middle of a query nothing is given back."""
        if self.query is None and self.found is None and not self.leaving:
            while not enough() and self._park_one():
                pass

    def _park(self, block: Block) -> None:
        self.debts.append(Debt(block.sequence, block.page, block.start))
        self._forget_area(block)

    def _begin_paying(self) -> None:
        """Read as many parked pages as fit, those first that stood still first."""
        self.debts.sort(key=lambda debt: (debt.start, debt.sequence, debt.page))
        while self.debts:
            debt = self.debts[0]
            block = self._load(debt.sequence, debt.page)
            fits = self._pages.try_reserve(block.payload_nbytes + block.keys_nbytes, block.payload_rows)
            if fits and not self._make_room_for_area(block):
                self._pages.release(block.payload_nbytes + block.keys_nbytes, block.payload_rows)
                fits = False
            if not fits:
                if not self.held:
                    raise too_large(block.nbytes / max(1, len(block.words)), self._budget)
                break
            self._forget_keys(block)
            block.start = debt.start
            self.held.append(block)
            self.debts.pop(0)
        self.at = min(block.start for block in self.held)
        self.paying = True

    def _advance_paying(self) -> None:
        """The next page that a parked one has to meet."""
        while self.at < len(self._words):
            for block in [held for held in self.held if held.start <= self.at]:
                assert block.area is not None
                block.area.expire(self._words[self.at].item())
                if len(block.area) == 0:
                    self.held.remove(block)
                    self._forget_area(block)
                    self._let_go(block)
            if not self.held:
                break
            number = int(self._sequence[self.at])
            sequence = self._sequences[number]
            wanted = [held for held in self.held if held.start <= self.at and held.side != sequence.side]
            if any(not joined.same_run(held.label, sequence.label) for held in wanted):
                block = self._read(self.at)
                self.query = BlockQuery(block, [held for held in self.held if self._meet(held, block)])
                return
            self.at += 1
        for block in self.held:
            self._forget_area(block)
            self._let_go(block)
        self.held = []
        self.paying, self.at = False, len(self._words)

    # Leaving

    def _drop_finished(self) -> None:
        for block in [held for held in self.held if held.area is None and self._is_written(held)]:
            self._drop(block)

    def _drop_all(self) -> None:
        for block in list(self.held):
            if block.area is not None:
                self._forget_area(block)
            self._drop(block)

    def _drop(self, block: Block) -> None:
        """A block has met all it can meet, unless parked blocks have still to meet it."""
        self.held.remove(block)
        if not (self._unmatched and self._how.gives_unmatched(block.side)):
            self._let_go(block)
        elif self.debts:
            self.late.append((block.sequence, block.page))
            self._let_go(block)
        else:
            self.leaving.append(block)

    def _give_unmatched(self, block: Block) -> Step:
        """Some rows of a block that never matched."""
        assert block.matched is not None
        numbers = self.leaving_at + np.flatnonzero(~block.matched[self.leaving_at :])[: self._context.output_rows]
        step = one_sided(block.side, block.rows, numbers)
        if step is not None:
            self.leaving_at = int(numbers[-1]) + 1
        if step is None or self.leaving_at >= len(block.words):
            self.leaving.pop(0)
            self.leaving_at = 0
            self._let_go(block)
        return step

    def _give_found(self, query: BlockQuery, here: Int64, there: Int64) -> Step:
        """As many pairs as may go out at once."""
        most = self._context.output_rows
        self.found = (here[most:], there[most:]) if len(here) > most else None
        here, there = here[:most], there[:most]
        touched = [(query.block, here), *query.by_opponent(there)]
        if self.paying:  # a parked page may come by once more, to meet parked pages of the other side
            for block, index in touched:
                self._sequences[block.sequence].refresh(block, index)
        flags = query.opponents_matched()
        sides = ((query.block.rows, here, query.block.matched), (query.rows, there, flags))
        left, right = sides if query.block.side == 0 else sides[::-1]
        step = self._settle((left[0], right[0]), left[1], right[1], (left[2], right[2]))
        query.return_matched(flags)
        for block, index in touched:
            if block.matched is not None:
                self._sequences[block.sequence].mark(block, index[block.matched[index]])
        return step

    # Memory

    def _keep(self, block: Block) -> None:
        self._pages.reserve(block.payload_nbytes + block.keys_nbytes, block.payload_rows)

    def _forget_keys(self, block: Block) -> None:
        self._pages.release(block.keys_nbytes)
        block.keys = None

    def _forget_area(self, block: Block) -> None:
        if block.area is not None:
            block.area.clear()
            block.area = None

    def _let_go(self, block: Block) -> None:
        self._pages.release(block.payload_nbytes, block.payload_rows)

    def reload(
        self,
        sequence: int,
        page: int,
        start: int,
        written: int,
        *,
        swept: Int64,
        live: Int64 | None,
        with_keys: bool,
    ) -> Block:
        """A block as it was: its page, the rows that are swept, those ``live`` in an area (None: it had none)."""
        block = self._sequences[sequence].load(sequence, page, swept)
        block.start, block.written = start, written
        self._keep(block)
        if live is not None:
            assert block.keys is not None
            block.area = self._make_area(block.side, self._areas)
            block.area.insert(block.keys.take(live), block.swept_words[live], live)
        if not with_keys:
            self._forget_keys(block)
        return block

    @property
    def held_blocks(self) -> list[Block]:
        """Every block in memory."""
        return [*self.held, *([self.query.block] if self.query is not None else []), *self.leaving]

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        output = self._output.nbytes if self._output is not None else 0
        return sum(block.nbytes for block in self.held_blocks) + _FOUND_NBYTES * len(self._out[0]) + output

    def close(self) -> None:
        """Give everything back."""
        for block in self.held_blocks:
            self._forget_area(block)
        self.held, self.leaving, self.query, self.found = [], [], None, None
        self._pages.clear()
        for sequence in self._sequences:
            sequence.close()
