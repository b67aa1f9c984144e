"""One word with more pages than fit into memory: nested blocks (PSMJ does not say what happens then).

::

    for each block of left pages that fits:  for each right page:  join
    then for each page of both sides:        repeated keys of a one-side are refused, rows without a match go out,
                                             rows are written, the page is used
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from earlyjoin.algorithms.hash_join.merging.chunk import Chunk, ChunkSide, Piece, joined_keys
from earlyjoin.algorithms.hash_join.one_side import repeated_key, repeated_row
from earlyjoin.algorithms.protocol import Step
from earlyjoin.predicates.encoding.keys import Keys

if TYPE_CHECKING:
    from earlyjoin.algorithms.hash_join.merging.merge_input import MergeInput, Word
    from earlyjoin.algorithms.hash_join.merging.partition_merge import PartitionMerge

Place = tuple[int, int]
"""An input of a side, and a page of it."""


class HotWord:
    """Call ``step`` until ``done``."""

    def __init__(self, merge: PartitionMerge, word: Word) -> None:
        self._merge, self._word, self.done = merge, word, False
        self._pages: tuple[list[Place], list[Place]] = tuple(  # type: ignore[assignment]
            [(number, page) for number, entry in enumerate(inputs) for page in entry.pages_with(word)]
            for inputs in merge.inputs
        )
        self._block = self._block_stop = self._right = self._pair = 0
        self._left: ChunkSide | None = None
        self._chunk: Chunk | None = None
        self._costs: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        self._held_nbytes = [0, 0]
        self._leaving: tuple[int, int] | None = None
        self._piece: Piece | None = None
        self._left_out = 0
        self._once: Keys | None = None
        """Keys of the one-side with this word that have been seen: as a rule there is one."""
        if not (self._pages[0] and self._pages[1]):
            self._leaving = (0, 0)

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return sum(self._held_nbytes)

    def step(self) -> Step:
        """Some pairs of a chunk, the next chunk, or the next page that leaves."""
        if self._leaving is not None:
            return self._leave(*self._leaving)
        if self._chunk is None:
            self._load()
            return None
        step = None
        if self._pair < self._chunk.total:
            step, self._pair = self._merge.join(self._chunk, self._pair)
        else:
            self._next_pages()
        return step

    # Joining

    def _load(self) -> None:
        """The next right page; before the first, as many left pages as fit beside the largest right page."""
        files = self._merge.work.table.files
        if self._left is None:
            if self._block == self._block_stop:
                self._block_stop = self._block + self._fitting()
            places = self._pages[0][self._block : self._block_stop]
            self._left = ChunkSide.of(files[0].schema, [self._take(0, place) for place in places])
            if self._left is None:  # a page may begin below the word and end above it
                self._right = len(self._pages[1]) - 1
                self._next_pages()
                return
        right = ChunkSide.of(files[1].schema, [self._take(1, self._pages[1][self._right])])
        self._chunk, self._pair = Chunk(self._left, right), 0

    def _fitting(self) -> int:
        account, costs = self._merge.account, [self._cost(1, place) for place in self._pages[1]]
        reserved = [(max(nbytes for nbytes, _ in costs), max(rows for _, rows in costs))]
        if not account.try_reserve(*reserved[0]):
            raise self._merge.too_large(reserved[0][0])
        for place in self._pages[0][self._block :]:
            cost = self._cost(0, place)
            if not account.try_reserve(*cost):
                break
            reserved.append(cost)
        for cost in reserved:
            account.release(*cost)
        if len(reserved) == 1:
            raise self._merge.too_large(self._cost(0, self._pages[0][self._block])[0])
        return len(reserved) - 1

    def _next_pages(self) -> None:
        self._let_go(1)
        self._right += 1
        if self._right == len(self._pages[1]):
            self._let_go(0)
            self._block, self._right = self._block_stop, 0
        if self._block == len(self._pages[0]):
            self._leaving = (0, 0)

    # Leaving

    def _leave(self, side: int, at: int) -> Step:
        if at == len(self._pages[side]):
            self._leaving = (1, 0) if side == 0 else None
            self.done = side == 1
            return None
        place = self._pages[side][at]
        if self._piece is None or self._chunk is None:
            self._piece = self._take(side, place)
            self._refuse_repeated(side, self._piece)
            mine = ChunkSide.of(self._merge.work.table.files[side].schema, [self._piece])
            self._chunk = Chunk(mine, None) if side == 0 else Chunk(None, mine)
        mine = self._chunk.sides[side]
        if mine is not None and self._left_out < len(mine):
            step, self._left_out = self._merge.unmatched(side, mine, self._left_out)
            if step is not None:
                return step
        self._merge.write(side, mine)
        self._entry(side, place).use_word(place[1], self._piece)
        self._let_go(side)
        self._left_out, self._leaving, self._piece = 0, (side, at + 1), None
        return None

    def _refuse_repeated(self, side: int, piece: Piece) -> None:
        """A key of the one-side must not have been seen on an earlier page, or before on this one."""
        if side != self._merge.work.one_side or not len(piece):
            return
        key, new = self._merge.work.table.key, piece.page.keys.slice(piece.start, piece.stop)
        keys = joined_keys([new] if self._once is None else [self._once, new])
        row = repeated_row(key, keys, np.arange(len(keys)), np.zeros(len(keys), dtype=np.int64))
        if row is not None:
            raise repeated_key(key, side, piece.page.rows.batch, piece.stop - len(keys) + row)
        self._once = keys

    # Memory

    def _entry(self, side: int, place: Place) -> MergeInput:
        return self._merge.inputs[side][place[0]]

    def _cost(self, side: int, place: Place) -> tuple[int, int]:
        return self._entry(side, place).cost(place[1])

    def _take(self, side: int, place: Place) -> Piece:
        cost = self._cost(side, place)
        if not self._merge.account.try_reserve(*cost):
            raise self._merge.too_large(cost[0])
        self._costs[side].append(cost)
        piece = self._entry(side, place).with_word(place[1], self._word)
        self._held_nbytes[side] += piece.page.nbytes + piece.words.nbytes
        return piece

    def _let_go(self, side: int) -> None:
        """Forget the pages of a side, and the chunk that they are part of."""
        for cost in self._costs[side]:
            self._merge.account.release(*cost)
        self._costs[side].clear()
        self._held_nbytes[side] = 0
        self._chunk = None
        if side == 0:
            self._left = None

    def close(self) -> None:
        """Give memory back."""
        for side in (0, 1):
            self._let_go(side)

    # State

    def save(self) -> dict[str, Any]:
        """Plain values; pages are read again."""
        return {
            "word": self._word,
            "pages": self._pages,
            "block": [self._block, self._block_stop, self._right, self._pair],
            "in_hand": self._chunk is not None,
            "leaving": self._leaving,
            "left_out": self._left_out,
        }

    def load(self, values: dict[str, Any]) -> None:
        """Take over what ``save`` gave."""
        left, right = ([(number, page) for number, page in side] for side in values["pages"])
        self._pages = (left, right)
        self._block, self._block_stop, self._right, pair = values["block"]
        self._leaving = tuple(values["leaving"]) if values["leaving"] is not None else None
        self._left_out = values["left_out"]
        if values["in_hand"] and self._leaving is None:
            self._load()
            self._pair = pair
        if self._leaving is not None and self._leaving[0] == self._merge.work.one_side:
            side, at = self._leaving
            for place in self._pages[side][:at]:
                self._refuse_repeated(side, self._take(side, place))
                self._let_go(side)
