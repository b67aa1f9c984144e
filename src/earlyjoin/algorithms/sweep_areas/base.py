"""Sweep areas (PMJ section 3): the state of one side while both sides pass by in one order.

Five verbs: insert, query, expire, clear, and ``len``. Elements come in ascending order of their *sweep word*. An area
holds the elements of one side that may still match something to come; a query finds those that match given elements
of the other side. Two conditions make a join over sweep areas complete (section 3.2): whatever matches is found by a
query, and nothing is expired that could match an element at or behind the frontier.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from earlyjoin.predicates.encoding.keys import Int64, Keys

SweepWords = npt.NDArray[np.int64] | npt.NDArray[np.float64]


@dataclass(slots=True)
class SweepCursor:
    """How far a query has come: a row of the querying keys, and a place that the area chose within its matches."""

    row: int = 0
    place: int = -1


class SweepOrder(ABC):
    """The order in which the elements of both sides pass by, the same for every run of a join."""

    @abstractmethod
    def words(self, side: int, keys: Keys) -> SweepWords:
        """One word for each row to sort by, ascending; rows that match nothing (``valid`` False) may get any word."""

    by_value = True
    """Whether keys in the order of their words are in the order of their values, as a sorted output needs."""

    def state(self) -> dict[str, Any]:
        """What was chosen from the first keys given to :meth:`words`, as plain values; empty without a choice."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:  # noqa: B027 - most orders have nothing to restore
        """Take over the choice that another order of the same predicate had made."""


class SweepArea(ABC):
    """Elements of one side. Handles are the caller's names for elements: row numbers, run ids packed with them."""

    @abstractmethod
    def insert(self, keys: Keys, words: SweepWords, handles: Int64) -> None:
        """Add elements, ascending by ``words``, none below the frontier; on BudgetExceeded nothing has changed."""

    @abstractmethod
    def query(self, keys: Keys, cursor: SweepCursor, out_handles: Int64, out_rows: Int64) -> int:
        """Find the elements that match keys of the other side, from the cursor on, until the output is full.

        Fills handles of elements and rows of ``keys``, moves the cursor and returns how many pairs were found; the
        query is over when ``cursor.row`` is ``len(keys)``. Every pair that satisfies the predicate is found once, and
        no other pair. Between the start and the end of a query the area must not be changed.
        """

    @abstractmethod
    def expire(self, frontier: int | float) -> None:
        """No element below ``frontier`` will come or query any more: forget what can match nothing from there on."""

    @abstractmethod
    def clear(self) -> None:
        """Forget everything and give the memory back."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes held."""

    @property
    @abstractmethod
    def handles(self) -> Int64:
        """The handles of the elements held, in no particular order; a view that is valid until the next change."""
