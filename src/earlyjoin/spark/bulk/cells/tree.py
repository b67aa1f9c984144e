"""The partition tree: inner nodes send rows to their children, leaves are cells, or small matrices of cells.

::

    Classes   by how far a home row reaches      home: one child     guest: all children, with boxes of their own
    Hashed    by what must be equal              home: one child     guest: one child
    Ranges    by the point on an axis            home: one child     guest: the children that its box touches
    Leaf      a matrix of cells (1 × 1: a cell)  home: one row       guest: one column, by salts

Any two rows that match meet in exactly one cell: at every inner node the guest goes, among others, where the home row
goes, and a row and a column of a matrix cross once (the 1-Bucket scheme of Okcan and Riedewald, SIGMOD 2011, for what
no axis can tell apart: a hot value, or a condition such as <>). Salts must be a function of the row: a task that is
run again sends every row to the same cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from earlyjoin.errors import EarlyJoinError
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.spark.bulk.cells.axes import Points
from earlyjoin.spark.bulk.cells.space import Guests, Homes, Reach

Placed = tuple[Int64, Int64]
"""Row numbers and the cells they go to, pair by pair."""


class Node(ABC):
    """A part of the tree. Its cells are numbered from ``first`` on, which the caller gives."""

    cells: int
    """Number of cells below."""
    splits: bool
    """Does a leaf below need salts?"""
    whole: bool
    """Does every home row go to one cell only?"""
    whole_guests: bool
    """Does every guest go to one cell only?"""

    @abstractmethod
    def homes(self, rows: Homes, chosen: Int64, first: int) -> list[Placed]:
        """Where home rows go."""

    @abstractmethod
    def guests(self, rows: Guests, chosen: Int64, reach: Reach, first: int) -> list[Placed]:
        """Where guests go, when home rows below here reach so far at most."""


@dataclass(frozen=True)
class Leaf(Node):
    """``rows`` × ``columns`` cells: a home row is in one row of the matrix, a guest in one column."""

    rows: int = 1
    columns: int = 1

    @property
    def cells(self) -> int:  # type: ignore[override]
        return self.rows * self.columns

    @property
    def splits(self) -> bool:  # type: ignore[override]
        return self.cells > 1

    @property
    def whole(self) -> bool:  # type: ignore[override]
        return self.columns == 1

    @property
    def whole_guests(self) -> bool:  # type: ignore[override]
        return self.rows == 1

    def homes(self, rows: Homes, chosen: Int64, first: int) -> list[Placed]:
        row = _drawn(rows, chosen, self.rows, first)
        return [(chosen, first + row * self.columns + column) for column in range(self.columns)]

    def guests(self, rows: Guests, chosen: Int64, reach: Reach, first: int) -> list[Placed]:
        column = _drawn(rows, chosen, self.columns, first)
        return [(chosen, first + row * self.columns + column) for row in range(self.rows)]


class _Inner(Node):
    children: tuple[Node, ...]

    @cached_property
    def cells(self) -> int:  # type: ignore[override]
        return sum(child.cells for child in self.children)

    @cached_property
    def splits(self) -> bool:  # type: ignore[override]
        return any(child.splits for child in self.children)

    @cached_property
    def whole(self) -> bool:  # type: ignore[override]
        return all(child.whole for child in self.children)

    @cached_property
    def whole_guests(self) -> bool:  # type: ignore[override]
        return len(self.children) == 1 and self.children[0].whole_guests

    @cached_property
    def _firsts(self) -> Int64:
        """The number of each child's first cell, counted from this node's first."""
        return np.cumsum([0, *(child.cells for child in self.children)], dtype=np.int64)

    def _down_homes(self, rows: Homes, chosen: Int64, child: Int64, first: int) -> list[Placed]:
        if self.cells == len(self.children):  # every child is one cell
            return [(chosen, first + child)]
        placed: list[Placed] = []
        for number, some in _by_child(chosen, child):
            placed += self.children[number].homes(rows, some, first + int(self._firsts[number]))
        return placed

    def _down_guests(self, rows: Guests, chosen: Int64, child: Int64, reach: Reach, first: int) -> list[Placed]:
        if self.cells == len(self.children):
            return [(chosen, first + child)]
        placed: list[Placed] = []
        for number, some in _by_child(chosen, child):
            placed += self.children[number].guests(rows, some, reach, first + int(self._firsts[number]))
        return placed


@dataclass(frozen=True)
class Ranges(_Inner):
    """Ranges of an axis: child k has the points from splitter k - 1 on, up to but without splitter k."""

    axis: int
    splitters: Points
    children: tuple[Node, ...]

    def homes(self, rows: Homes, chosen: Int64, first: int) -> list[Placed]:
        return self._down_homes(rows, chosen, self.child(rows.points(self.axis)[chosen]), first)

    def guests(self, rows: Guests, chosen: Int64, reach: Reach, first: int) -> list[Placed]:
        low, high = (self.child(ends[chosen]) for ends in rows.box(self.axis, reach))
        count = np.maximum(0, high - low + 1)
        start = np.cumsum(count) - count
        child = np.repeat(low - start, count) + np.arange(int(count.sum()), dtype=np.int64)
        return self._down_guests(rows, np.repeat(chosen, count), child, reach, first)

    def child(self, points: Points) -> Int64:
        """The child that has a point."""
        return np.searchsorted(self.splitters, points, side="right").astype(np.int64)


@dataclass(frozen=True)
class Hashed(_Inner):
    """Buckets of a hash of what must be equal."""

    children: tuple[Node, ...]

    @cached_property
    def whole_guests(self) -> bool:  # type: ignore[override]
        return all(child.whole_guests for child in self.children)

    def homes(self, rows: Homes, chosen: Int64, first: int) -> list[Placed]:
        return self._down_homes(rows, chosen, self.child(rows, chosen), first)

    def guests(self, rows: Guests, chosen: Int64, reach: Reach, first: int) -> list[Placed]:
        return self._down_guests(rows, chosen, self.child(rows, chosen), reach, first)

    def child(self, rows: Homes | Guests, chosen: Int64) -> Int64:
        """The bucket of each row."""
        return (rows.hashes[chosen] % np.uint64(len(self.children))).astype(np.int64)


@dataclass(frozen=True)
class Classes(_Inner):
    """Classes of home rows by how far they reach: a few long intervals do not make the boxes of all guests long."""

    reaches: tuple[Reach, ...]
    """For each child the largest extents of its home rows, ascending."""
    children: tuple[Node, ...]

    def homes(self, rows: Homes, chosen: Int64, first: int) -> list[Placed]:
        child = np.full(len(chosen), -1, dtype=np.int64)
        for number in reversed(range(len(self.children))):
            limits = np.array(self.reaches[number], dtype=np.uint64)
            child[np.all(rows.extents[chosen] <= limits, axis=1)] = number
        if (child < 0).any():
            raise EarlyJoinError(
                "an interval or rectangle is longer than any that was there when the inputs were looked at first: "
                "an input gives other rows each time it is read; write it to a table and join that"
            )
        return self._down_homes(rows, chosen, child, first)

    def guests(self, rows: Guests, chosen: Int64, reach: Reach, first: int) -> list[Placed]:
        placed: list[Placed] = []
        for number, child in enumerate(self.children):
            placed += child.guests(rows, chosen, self.reaches[number], first + int(self._firsts[number]))
        return placed


def assign(tree: Node, rows: Homes | Guests, *, keep_unmatchable: bool = False) -> Placed:
    """The cells of all rows of a batch: row numbers and cells, pair by pair, in the order of the cells.

    Rows that match nothing go nowhere, unless home rows that match nothing have to go out: then to any one cell.
    """
    everyone = np.arange(len(rows), dtype=np.int64)
    able = everyone if rows.valid is None else np.flatnonzero(rows.valid)
    placed = tree.homes(rows, able, 0) if isinstance(rows, Homes) else tree.guests(rows, able, rows.no_reach, 0)
    if keep_unmatchable and rows.valid is not None:
        lonely = np.flatnonzero(~rows.valid)
        if len(lonely):
            placed.append((lonely, _drawn(rows, lonely, tree.cells, 0)))
    numbers = np.concatenate([row for row, _ in placed]) if placed else everyone[:0]
    cells = np.concatenate([cell for _, cell in placed]) if placed else everyone[:0]
    order = np.argsort(cells, kind="stable")
    return numbers[order], cells[order]


def _by_child(chosen: Int64, child: Int64) -> list[tuple[int, Int64]]:
    """The rows of each child that has any."""
    order = np.argsort(child, kind="stable")
    numbers, starts = np.unique(child[order], return_index=True)
    return list(zip(numbers.tolist(), np.split(chosen[order], starts[1:]), strict=True)) if len(numbers) else []


def _drawn(rows: Homes | Guests, chosen: Int64, choices: int, cell: int) -> Int64:
    """One of ``choices`` for each row, by its salt."""
    if choices == 1:
        return np.zeros(len(chosen), dtype=np.int64)
    return (rows.salts(chosen, cell) % np.uint64(choices)).astype(np.int64)
