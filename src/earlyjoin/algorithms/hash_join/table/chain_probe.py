"""A probe that may be interrupted by inserts into the part that it probes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from earlyjoin.algorithms.hash_join.table.memory_part import MemoryPart
from earlyjoin.kernels.hash_index import NOT_STARTED
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.hash_index import Cursor


@dataclass(slots=True)
class ChainProbe:
    """How far some probing rows have come through a memory part.

    When rows were inserted while a probing row was in the middle of its chain, the chain is walked again and the pairs
    that were given out are left out: new rows stand before old ones in a chain, and old ones keep their order.
    """

    cursor: Cursor = field(default_factory=Cursor)
    generation: int = -1
    given: int = 0
    """Pairs of the present row that were given out."""
    drop: int = 0
    """Pairs of the present row that are to be left out."""

    def over(self, rows: int) -> bool:
        """Have all probing rows been through?"""
        return self.cursor.row >= rows

    def behind(self, rows: int) -> ChainProbe:
        """The probe of the rows behind these; it may have come further, where more of them were held at once."""
        done = self.cursor.row - rows
        return replace(self, cursor=Cursor(done, self.cursor.node)) if done > 0 else ChainProbe()

    def next(
        self, part: MemoryPart, probing: Keys, out: Int64, *, before: int | None = None, once: bool = False
    ) -> tuple[Int64, Int64, int]:
        """Pairs (probing row, stored row) and the comparisons made; only stored rows that arrived ``before``."""
        cursor, row = self.cursor, self.cursor.row
        if cursor.node != NOT_STARTED and self.generation not in (-1, part.generation):
            # Dead rows are passed over by themselves, and dropping by number would count them.
            cursor.node, self.drop = NOT_STARTED, 0 if part.expendable else self.given
        self.generation = part.generation
        found, comparisons = part.probe(probing, cursor, out[0], out[1], once=once)
        i, j = out[0, :found].copy(), out[1, :found].copy()
        if before is not None:
            old = part.arrivals[j] < before
            i, j = i[old], j[old]
        if self.drop:
            dropped = min(self.drop, int(np.searchsorted(i, row, side="right")))
            i, j, self.drop = i[dropped:], j[dropped:], self.drop - dropped
        if cursor.row != row:
            self.given = self.drop = 0
        self.given += int(np.count_nonzero(i == cursor.row))
        return i, j, comparisons

    def copy(self) -> ChainProbe:
        """One that goes its own way."""
        return replace(self, cursor=Cursor(self.cursor.row, self.cursor.node))

    def save(self) -> dict[str, Any]:
        """Plain values for a snapshot."""
        return {"row": int(self.cursor.row), "node": int(self.cursor.node), "given": self.given, "drop": self.drop}

    @classmethod
    def load(cls, values: dict[str, Any]) -> ChainProbe:
        """Take over what ``save`` gave; the restored part has the same chains."""
        return cls(Cursor(values["row"], values["node"]), -1, values["given"], values["drop"])
