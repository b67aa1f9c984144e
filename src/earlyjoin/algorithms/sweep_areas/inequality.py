"""<, <=, >, >= and <> (PMJ section 3.2: any predicate with a remove condition): order by the word.

The matches of a querying word are all elements before it, behind it, or both. Elements that must be larger than what
queries them go when they lie below the frontier; all others match something larger that may still come, and stay.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from earlyjoin.algorithms.sweep_areas.base import SweepCursor, SweepWords
from earlyjoin.algorithms.sweep_areas.elements import Elements, StoredArea, flags, matchable
from earlyjoin.algorithms.sweep_areas.wide import WideElements, asking
from earlyjoin.kernels import sweep_ranges, sweep_wide
from earlyjoin.predicates.base import LEFT
from earlyjoin.predicates.comparison import Operator
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.budget import Account

_FLIPPED: dict[Operator, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "<>": "<>"}
_BORDERS: dict[Operator, tuple[int, int]] = {"<": (1, 3), "<=": (2, 3), ">": (0, 2), ">=": (0, 1), "<>": (1, 2)}
"""For elements that stand on the left of the operator: what the kernels take as ``lower`` and ``upper``."""


def _seen_from(side: int, op: Operator) -> Operator:
    """The operator with the elements of ``side`` on its left."""
    return op if side == LEFT else _FLIPPED[op]


class OrderArea(StoredArea[Elements]):
    """One sorted column of one-word keys."""

    def __init__(self, account: Account, side: int, op: Operator) -> None:
        own = _seen_from(side, op)
        self._borders = _BORDERS[own]
        self._expires = own in (">", ">=")
        self._elements = Elements(account, (np.int64, None), (np.int64, None))

    def insert(self, keys: Keys, words: SweepWords, handles: Int64) -> None:
        keys, handles = matchable(keys, handles)
        self._elements.append(keys.words[:, 0], handles)

    def query(self, keys: Keys, cursor: SweepCursor, out_handles: Int64, out_rows: Int64) -> int:
        words, handles, queries = self._elements.column(0), self._elements.column(1), cast(Int64, keys.words[:, 0])
        found, cursor.row, cursor.place = sweep_ranges.order_pairs(
            words, handles, queries, flags(keys.valid), *self._borders, cursor.row, cursor.place, out_handles, out_rows
        )
        return found

    def expire(self, frontier: int | float) -> None:
        if self._expires:
            words = self._elements.column(0)
            self._elements.drop(sweep_ranges.first_within(words, np.int64(frontier), np.int64(0), 0))

    @property
    def handles(self) -> Int64:
        return self._elements.column(1)


class WideOrderArea(StoredArea[WideElements]):
    """Keys of several words or with bytes: swept by the first word; elements that share it are kept sorted by all."""

    def __init__(self, account: Account, side: int, op: Operator, width: int) -> None:
        own = _seen_from(side, op)
        self._borders = _BORDERS[own]
        self._expires = own in (">", ">=")
        self._elements = WideElements(account, width)

    def insert(self, keys: Keys, words: SweepWords, handles: Int64) -> None:
        keys, handles = matchable(keys, handles)
        old = len(self._elements)
        self._elements.append(keys.words[:, 0], keys, handles)
        sweep_wide.sort_in(self._elements.stored(), old)

    def query(self, keys: Keys, cursor: SweepCursor, out_handles: Int64, out_rows: Int64) -> int:
        found, cursor.row, cursor.place = sweep_wide.order_pairs(
            self._elements.stored(), asking(keys), *self._borders, cursor.row, cursor.place, out_handles, out_rows
        )
        return found

    def expire(self, frontier: int | float) -> None:
        if self._expires:
            sweep = self._elements.stored()[0]
            self._elements.drop(sweep_ranges.first_within(sweep, np.int64(frontier), np.int64(0), 0))

    @property
    def handles(self) -> Int64:
        return self._elements.handles
