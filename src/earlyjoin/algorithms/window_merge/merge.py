"""Sorted runs of two sides or more are merged, and joined on the way, window by window.

::

    load pages in the order of their smallest words, while there is room
        │   rows below the smallest word that is not in memory are complete: a window
        ▼
    join its groups of equal words ──▶ rows without a match go out ──▶ write it to the merged runs ──▶ load …
        │
        └ no row is complete, or one word does not fit: nested blocks of its pages (HotWord)

PSMJ (RPJ section 2.2) and PMJ (section 3.1.2) merge row by row and find the smallest row each time; a window is as much
of that as fits, so that sorting, joining and writing are done for many rows at once. Pages come in the same order, and
each is read once, but for those with a hot word. A merge may stop after every step: where the cursors stand, the bound
of the window and the cursor over its groups say it all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.protocol import Context, Step
from earlyjoin.algorithms.window_merge.groups import GroupJoin, Ordered, Workspace
from earlyjoin.algorithms.window_merge.hot_word import HotWord
from earlyjoin.algorithms.window_merge.matching import Matching
from earlyjoin.algorithms.window_merge.merged_rows import MergedRows
from earlyjoin.algorithms.window_merge.run_cursor import Piece, RunCursor, SortedPages, Word
from earlyjoin.algorithms.window_merge.window import WindowSide
from earlyjoin.state.budget import Account

_ROW_NBYTES = 48
"""Bytes of a row in a window beside its copy: its word, label and place in the order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeMemory:
    """What a merge takes memory from."""

    pages: Account
    too_large: Callable[[int], Exception]
    """The error for a page that does not fit."""
    windows: Account | None = None
    """For the rows of windows; None: what a page costs is enough for its rows in a window, too."""
    most_page_nbytes: int | None = None
    """What pages may fill while there is something to join without more of them; None: as much as there is."""


class WindowMerge:
    """Call ``step`` until ``done``. A side without ``outputs`` is not written."""

    def __init__(
        self,
        runs: Sequence[Sequence[SortedPages]],
        schemas: Sequence[pa.Schema],
        outputs: Sequence[MergedRows | None],
        matching: Matching,
        context: Context,
        workspace: Workspace,
        memory: MergeMemory,
    ) -> None:
        self.done = False
        self.schemas, self.outputs, self.matching, self.memory = schemas, outputs, matching, memory
        self.cursors = [[RunCursor(pages, memory.pages) for pages in side] for side in runs]
        self.hot: HotWord | None = None
        self._context, self._workspace = context, workspace
        self._window: list[WindowSide | None] | None = None
        self._bound: Word | None = None
        self._join: GroupJoin | None = None
        self._left_out = [0] * len(self.cursors)

    @property
    def joins(self) -> bool:
        """Is it in the middle of groups?"""
        return self._join is not None or (self.hot is not None and self.hot.joins)

    def step(self) -> Step:
        """One bounded piece of work."""
        if self.hot is not None:
            step = self.hot.step()
            if self.hot.done:
                self.hot = None
            return step
        if self._window is not None:
            return self._window_step(self._window)
        if not self._load_one():
            self._begin_window()
        return None

    def _all_cursors(self) -> list[RunCursor]:
        return [cursor for side in self.cursors for cursor in side]

    # Pages

    def _next_cursor(self) -> RunCursor | None:
        """The one whose next page has the smallest word; None when all pages are in memory."""
        following, smallest = None, None
        for cursor in self._all_cursors():
            word = cursor.next_word
            if word is not None and (smallest is None or word < smallest):
                following, smallest = cursor, word
        return following

    def _load_one(self) -> bool:
        """Read the next page; False when there is none, or no room for it."""
        cursor = self._next_cursor()
        if cursor is None:
            return False
        most = self.memory.most_page_nbytes
        if most is not None and self.memory.pages.bytes > most and self._is_able(cursor.next_word):
            return False
        return cursor.load()

    def _is_able(self, bound: Word | None) -> bool:
        """Are there rows below the bound?"""
        words = [cursor.first_word for cursor in self._all_cursors()]
        return any(word is not None and (bound is None or word < bound) for word in words)

    # Windows

    def _begin_window(self) -> None:
        following = self._next_cursor()
        bound = None if following is None else following.next_word
        pieces = self._pieces(bound)
        if any(pieces):
            self._take(bound, pieces)
        elif bound is None:
            self._finish()
        else:
            self._begin_hot_word(bound)

    def _pieces(self, bound: Word | None) -> list[list[Piece]]:
        return [[piece for cursor in side for piece in cursor.below(bound)] for side in self.cursors]

    def _take(self, bound: Word | None, pieces: list[list[Piece]]) -> None:
        """Make a window of the pieces, or of those below a lower bound; a word that does not fit alone is hot."""
        while not self._book(pieces):
            words = np.unique(np.concatenate([page.words[start:stop] for page, start, stop in chain(*pieces)]))
            if len(words) == 1:
                self._begin_hot_word(words[0].item())
                return
            bound = words[len(words) // 2].item()
            pieces = self._pieces(bound)
        self._bound = bound
        self._open(pieces)
        assert self._window is not None
        for number, side in enumerate(self._window):
            if side is not None:
                self.matching.refuse_repeated(number, side, None)  # equal words are in one window

    def _book(self, pieces: list[list[Piece]]) -> bool:
        account = self.memory.windows
        if account is None:
            return True
        shares = [page.nbytes * (stop - start) / len(page.words) for page, start, stop in chain(*pieces)]
        rows = sum(len(piece) for side in pieces for piece in side)
        return account.try_reserve(int(sum(shares)) + _ROW_NBYTES * rows)

    def _open(self, pieces: list[list[Piece]]) -> None:
        self._window = [WindowSide.of(schema, mine) for schema, mine in zip(self.schemas, pieces, strict=True)]
        self._join, self._left_out = self.join_of(self._window), [0] * len(self.cursors)

    def join_of(self, sides: Sequence[WindowSide | None]) -> GroupJoin | None:
        """A join of rows of all sides; None where a side has none."""
        there = [side for side in sides if side is not None]
        if len(there) < len(sides):
            return None
        ordered = [Ordered(side.order, side.words) for side in there]
        return GroupJoin(ordered, self._workspace, self._context, lambda index: self.matching.found(there, index))

    def _window_step(self, window: list[WindowSide | None]) -> Step:
        if self._join is not None:
            step = self._join.step()
            if self._join.done:
                self._join = None
            return step
        for number, side in enumerate(window):
            if side is not None and self._left_out[number] < len(side):
                step, self._left_out[number] = self.matching.unmatched(number, side, self._left_out[number])
                if step is not None:
                    return step
        for number, side in enumerate(window):
            self.write(number, side)
        self._close_window()
        for cursor in self._all_cursors():
            cursor.use(self._bound)
        return None

    def write(self, number: int, side: WindowSide | None) -> None:
        """Rows that have been joined go to the merged run."""
        output = self.outputs[number]
        if output is not None and side is not None:
            output.write(side, *self.matching.to_write(number, side))

    def write_out(self) -> None:
        """Let the rows that wait to be written go."""
        for output in self.outputs:
            if output is not None:
                output.write_out()

    def _close_window(self) -> None:
        self._window = self._join = None
        if self.memory.windows is not None:
            self.memory.windows.clear()

    def _begin_hot_word(self, word: Word) -> None:
        for cursor in self._all_cursors():
            cursor.put_back()
        self.hot = HotWord(self, word)

    # The end

    def _finish(self) -> None:
        for cursor in self._all_cursors():
            cursor.close()
        self.done = True

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        held = sum(cursor.nbytes for cursor in self._all_cursors())
        held += sum(output.nbytes for output in self.outputs if output is not None)
        held += self.memory.windows.bytes if self.memory.windows is not None else 0
        return held + (self.hot.nbytes if self.hot is not None else 0)

    def close(self) -> None:
        """Give memory back and close files."""
        if self.hot is not None:
            self.hot.close()
        self._close_window()
        for cursor in self._all_cursors():
            cursor.close()
        self.hot = None

    # State

    def save(self) -> dict[str, Any]:
        """Plain values; pages are read again. What waits to be written is not in them."""
        return {
            "places": [[(cursor.page, cursor.offset, cursor.loaded) for cursor in side] for side in self.cursors],
            "bound": self._bound,
            "window": self._window is not None,
            "join": self._join.save() if self._join is not None else None,
            "left_out": list(self._left_out),
            "hot": self.hot.save() if self.hot is not None else None,
        }

    def load(self, values: dict[str, Any]) -> None:
        """Bring a new merge of the same runs to where a saved one stood."""
        for side, places in zip(self.cursors, values["places"], strict=True):
            for cursor, (page, offset, loaded) in zip(side, places, strict=True):
                cursor.page, cursor.offset = page, offset
                for _ in range(loaded):
                    if not cursor.load():
                        raise AssertionError("pages that were in memory do not fit any more")
        self._bound = values["bound"]
        if values["window"]:
            pieces = self._pieces(self._bound)
            if not self._book(pieces):
                raise AssertionError("rows that were in memory do not fit any more")
            self._open(pieces)
            self._left_out = list(values["left_out"])
            if values["join"] is None:
                self._join = None
            elif self._join is not None:
                self._join.load(values["join"])
        if values["hot"] is not None:
            self.hot = HotWord(self, values["hot"]["word"])
            self.hot.load(values["hot"])
