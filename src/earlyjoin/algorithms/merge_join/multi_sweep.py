"""The sweep over sorted runs of many sides (PMJ section 3.1.2, for more than two inputs and equality).

::

    fill: pages by smallest word, rows up to a cut move into the window ──▶ join: groups ──▶ leave: write ──▶ fill …
      └ one key has more rows than the memory ──▶ hot: write its rows, then chunk × chunk × … of its pages ──▶ fill

Pages pass by in the order of their smallest word. No page that is still to come has a word below the first word of the
next one, so all rows below that word are there: whole groups, which move into the window and are joined at once. All
rows up to ``low`` are done, on all sides; a page that reaches further stays open.

PAPER UNCLEAR: PMJ leaves more than two inputs to future work. Combinations take the place of pairs: one was produced
before if all its rows come from runs with one number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import numpy as np

from earlyjoin.algorithms.merge_join.blocks import Block, Sequence, page_order
from earlyjoin.algorithms.merge_join.group_join import GroupJoin, Workspace
from earlyjoin.algorithms.merge_join.multi_window import MultiOutput, Window
from earlyjoin.algorithms.merge_join.sorted_runs import PageLimit, SideKeys, too_large
from earlyjoin.algorithms.protocol import Context, Step
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.state.budget import Budget
from earlyjoin.state.snapshot import Snapshot

_WORK_PART = 8
"""Part of the memory, one in so many, for boxes and combinations."""
_PAGES_PART = 3
"""Part of the memory, one in so many, that pages may fill while there is something to join without more of them."""

Page = tuple[int, int]
"""A sequence and the number of a page in it."""


@dataclass(slots=True)
class Hot:
    """A key with more rows than fit, and the pages of each side in which they lie: nested loops over chunks of them."""

    word: int
    pages: list[list[Page]]
    writing: int = 0
    """The side whose rows are being written; behind the last one, chunks are joined."""
    first: list[int] = field(default_factory=list)
    """The first page of each side's chunk."""
    next: list[int] = field(default_factory=list)
    """The page behind each side's chunk."""


class MultiSweep:
    """Joins sorted runs of many sides, but for combinations of one label. Call ``step`` until ``done``."""

    def __init__(
        self,
        keys: list[SideKeys],
        context: Context,
        budget: Budget,
        sequences: list[Sequence],
        output: MultiOutput | None,
        page_limit: PageLimit,
        *,
        pairs: bool,
    ) -> None:
        self.done = False
        self.pairs = pairs
        self._sequences, self._context, self._budget = sequences, context, budget
        self._writes = output is not None
        self._key = key_to_compare(keys[0])
        self._words, self._sequence, self._page = page_order(sequences)
        self._pages = budget.account("pages")
        memory = budget.limit.bytes
        self._workspace = Workspace(
            len(keys), context.output_rows, budget.account("combinations"), memory // _WORK_PART if memory else None
        )
        self._window = Window(keys, budget, output, page_limit)
        self._at = 0
        self._low: int | None = None
        self._open: list[Block] = []
        self._unread: list[Page] = []
        """Open pages that are not in memory now."""
        self._filled = False
        self._join: GroupJoin | None = None
        self._hot: Hot | None = None

    @property
    def _sides(self) -> range:
        return range(len(self._window.sides))

    def step(self) -> Step:
        """One bounded piece of work."""
        if self._join is not None:
            step = self._join.step()
            if self._join.done:
                self._join = None
            return step
        if self._hot is not None:
            self._advance_hot(self._hot)
        elif self._filled:
            self._leave()
        else:
            self._fill()
        return None

    # Filling

    def _fill(self) -> None:
        """Move whole groups into the window, as many as fit."""
        self._read_pages()
        if not self._open:
            self._leave(last=True)
            self.done = True
            return
        first, bound = self._first_open_word(), self._next_word()
        if bound is not None and first >= bound:
            self._begin_hot(bound)
            return
        cut = max(int(block.words[stop - 1]) for block in self._open if (stop := _below(block, bound)) > block.written)
        while not self._move(cut):
            if cut == first:
                self._begin_hot(first)
                return
            cut = self._lower(cut)
        self._low, self._filled = cut, True
        self._begin_join()

    def _read_pages(self) -> None:
        """First the open ones, then more until the memory for pages is full and some rows can be joined."""
        while self._unread:
            if not self._read(*self._unread[0]):
                raise self._too_large()
            self._unread.pop(0)
        while self._at < len(self._words):
            able = bool(self._open) and self._first_open_word() < self._words[self._at]
            if able and self._budget.limit.bytes and self._pages.bytes > self._budget.limit.bytes // _PAGES_PART:
                return
            if not self._read(int(self._sequence[self._at]), int(self._page[self._at])):
                if not self._open:
                    raise self._too_large()
                return
            self._at += 1

    def _read(self, sequence: int, page: int) -> bool:
        """Read a page and open it if rows of it are left to do; False when it does not fit."""
        block = self._sequences[sequence].load(sequence, page)
        block.written = 0 if self._low is None else int(np.searchsorted(block.words, self._low, side="right"))
        block.payload_rows -= block.written
        if block.payload_rows == 0:
            return True
        if not self._pages.try_reserve(block.payload_nbytes + block.keys_nbytes, block.payload_rows):
            return False
        self._open.append(block)
        return True

    def _first_open_word(self) -> int:
        return min(int(block.words[block.written]) for block in self._open)

    def _next_word(self) -> int | None:
        return int(self._words[self._at]) if self._at < len(self._words) else None

    def _move(self, cut: int) -> bool:
        """Take the rows up to the cut out of the open pages; False, and nothing has changed, when they do not fit."""
        lengths, moved = self._window.lengths(), []
        try:
            for block in self._open:
                stop = int(np.searchsorted(block.words, cut, side="right"))
                if stop > block.written:
                    self._release_rows(block, stop - block.written)
                    moved.append((block, stop))
                    self._window.add(block, block.written, stop)
        except BudgetExceeded:
            self._window.truncate(lengths)
            for block, stop in moved:
                self._release_rows(block, block.written - stop)
            return False
        for block, stop in moved:
            block.written = stop
        for block in [block for block in self._open if block.written >= len(block.words)]:
            self._open.remove(block)
            self._let_go(block)
        return True

    def _lower(self, cut: int) -> int:
        """The word in the middle of those up to the cut: half of the rows, if no word has many."""
        words = np.concatenate(
            [block.words[block.written : np.searchsorted(block.words, cut, side="right")] for block in self._open]
        )
        middle = int(np.partition(words, len(words) // 2)[len(words) // 2])
        return middle if middle < cut else int(words.max(where=words < cut, initial=words.min()))

    def _begin_join(self) -> None:
        if self.pairs:
            join = GroupJoin(self._window.ordered(), self._key, self._workspace, self._context.counters)
            self._join = None if join.done else join

    def _leave(self, *, last: bool = False) -> None:
        self._filled = False
        for side in self._sides:
            self._window.leave(side, last=last)

    # A hot key

    def _begin_hot(self, word: int) -> None:
        """Close all pages and note those with rows of this word."""
        self._leave(last=True)
        hot = Hot(word, [[] for _ in self._sides])
        for block in self._open:
            if block.words[block.written] == word:
                hot.pages[block.side].append((block.sequence, block.page))
            self._unread.append((block.sequence, block.page))
            self._let_go(block)
        self._open = []
        while self._next_word() == word:
            page = int(self._sequence[self._at]), int(self._page[self._at])
            hot.pages[self._sequences[page[0]].side].append(page)
            self._unread.append(page)
            self._at += 1
        self._unread = [page for page in self._unread if not self._ends_with(page, word)]
        hot.first, hot.next = [0] * len(hot.pages), [0] * len(hot.pages)
        hot.writing = 0 if self._writes else len(hot.pages)
        self._hot = hot

    def _ends_with(self, page: Page, word: int) -> bool:
        """Is it known, from the page behind it, that nothing above this word is in a page?"""
        following = self._sequences[page[0]].first_words[page[1] + 1 : page[1] + 2]
        return len(following) > 0 and bool(following[0] == word)

    def _advance_hot(self, hot: Hot) -> None:
        if hot.writing < len(hot.pages):
            self._write_hot(hot)
        elif self.pairs and all(hot.pages) and self._next_chunks(hot):
            self._begin_join()
        else:
            for side in self._sides:
                self._window.clear(side)
            self._low, self._hot = hot.word, None

    def _write_hot(self, hot: Hot) -> None:
        side = hot.writing
        if hot.next[side] < len(hot.pages[side]):
            self._load_chunk(hot, side)
            self._window.leave(side, last=True)
        else:
            hot.next[side] = 0
            hot.writing += 1

    def _next_chunks(self, hot: Hot) -> bool:
        """Load the next combination of chunks, the last side turning fastest; False when there is none."""
        if not any(hot.next):
            for side in self._sides:
                self._load_chunk(hot, side)
            return True
        able = [side for side in self._sides if hot.next[side] < len(hot.pages[side])]
        if not able:
            return False
        self._load_chunk(hot, able[-1])
        for side in self._sides[able[-1] + 1 :]:
            if hot.first[side] > 0:
                hot.next[side] = 0
                self._load_chunk(hot, side)
        return True

    def _load_chunk(self, hot: Hot, side: int) -> None:
        """The rows of the hot key in the next pages of a side, as many as its share of the memory holds."""
        self._window.clear(side)
        hot.first[side] = hot.next[side]
        while hot.next[side] < len(hot.pages[side]) and not self._has_its_share(side):
            sequence, page = hot.pages[side][hot.next[side]]
            block = self._sequences[sequence].load(sequence, page)
            if not self._add_hot(block, hot.word):
                if hot.next[side] == hot.first[side]:
                    raise self._too_large(block)
                return
            hot.next[side] += 1

    def _add_hot(self, block: Block, word: int) -> bool:
        start, stop = (int(np.searchsorted(block.words, word, side=end)) for end in ("left", "right"))
        if not self._pages.try_reserve(block.payload_nbytes + block.keys_nbytes):
            return False
        lengths = self._window.lengths()
        try:
            self._window.add(block, start, stop)
        except BudgetExceeded:
            self._window.truncate(lengths)
            return False
        finally:
            self._pages.release(block.payload_nbytes + block.keys_nbytes)
        return True

    def _has_its_share(self, side: int) -> bool:
        held, limit, sides = self._window.sides[side], self._budget.limit, len(self._sides)
        if limit.rows is not None:
            return len(held) >= max(1, limit.rows // sides // 2)
        return len(held) > 0 and held.nbytes >= (limit.bytes or 0) // (2 * sides)

    # Memory

    def _release_rows(self, block: Block, rows: int) -> None:
        """Rows that move into the window are counted there."""
        self._pages.release(rows=rows)
        block.payload_rows -= rows

    def _let_go(self, block: Block) -> None:
        self._pages.release(block.payload_nbytes + block.keys_nbytes, block.payload_rows)

    def _too_large(self, block: Block | None = None) -> BudgetExceeded:
        page = block if block is not None else self._sequences[0].load(0, 0) if not self._open else self._open[-1]
        return too_large(page.nbytes / max(1, len(page.words)), self._budget)

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        pages = sum(block.payload_nbytes + block.keys_nbytes for block in self._open)
        return pages + self._window.nbytes + self._workspace.nbytes

    def give_back(self, enough: Callable[[], bool]) -> None:
        """Nothing: a merge of many inputs is finished first."""

    def close(self) -> None:
        """Give everything back."""
        self._open, self._join = [], None
        self._pages.clear()
        self._window.close()
        self._workspace.close()
        for sequence in self._sequences:
            sequence.close()

    # Snapshots

    def save(self, snapshot: Snapshot, name: str) -> dict[str, Any]:
        """Put it into a snapshot, without pages, which are read again; returns the plain values for ``load``."""
        return {
            "at": self._at,
            "low": self._low,
            "unread": [*((block.sequence, block.page) for block in self._open), *self._unread],
            "filled": self._filled,
            "hot": asdict(self._hot) if self._hot is not None else None,
            "window": self._window.save(snapshot, name),
            "join": self._join.save(snapshot, name) if self._join is not None else None,
        }

    def load(self, snapshot: Snapshot, name: str, values: dict[str, Any]) -> None:
        """Bring a new sweep over the same runs to where the saved one stood."""
        self._at, self._low, self._filled = values["at"], values["low"], values["filled"]
        self._unread = [(page[0], page[1]) for page in values["unread"]]
        self._window.load(snapshot, name, values["window"])
        if values["hot"] is not None:
            self._hot = Hot(**values["hot"])
            self._hot.pages = [[(page[0], page[1]) for page in side] for side in self._hot.pages]
        if values["join"] is not None:
            self._begin_join()
            cast(GroupJoin, self._join).load(snapshot, name, values["join"])


def key_to_compare(side: SideKeys) -> BoundPredicate | None:
    """The predicate, if equal words do not yet mean equal keys."""
    return None if side.order.by_value else side.key


def _below(block: Block, bound: int | None) -> int:
    """How many rows of a block are below a word, None meaning all."""
    return len(block.words) if bound is None else int(np.searchsorted(block.words, bound, side="left"))
