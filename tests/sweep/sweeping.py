"""A sweep of two sides step by step, with everything checked that section 3.2 of the PMJ paper asks for."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.sweep_areas import AreaMaker, SortedRun, SweepArea, SweepCursor, SweepOrder, make_sweep
from earlyjoin.predicates.base import BoundPredicate, Predicate
from earlyjoin.predicates.encoding.keys import Keys
from earlyjoin.state.budget import Budget, MemoryLimit

Pair = tuple[int, int]


@dataclass
class Case:
    """A condition, the keys of both sides, and which pairs of rows match."""

    bound: BoundPredicate
    keys: tuple[Keys, Keys]
    matches: np.ndarray

    @classmethod
    def of(cls, condition: Predicate, left: pa.RecordBatch, right: pa.RecordBatch) -> Case:
        bound = condition.bind(left.schema, right.schema)
        keys = bound.encode(0, left), bound.encode(1, right)
        i, j = np.divmod(np.arange(len(keys[0]) * len(keys[1])), max(1, len(keys[1])))
        matches = bound.holds(keys[0], i, keys[1], j).reshape(len(keys[0]), len(keys[1]))
        return cls(bound, keys, matches)

    def pairs(self) -> list[Pair]:
        return [(int(i), int(j)) for i, j in zip(*np.nonzero(self.matches), strict=True)]


@dataclass
class Sweep:
    """Both sides on their way through two areas; which side is next, and how many rows, is drawn at random."""

    case: Case
    seed: int
    room: int
    found: list[Pair] = field(default_factory=list)

    def run(self) -> list[Pair]:
        choose = random.Random(self.seed)
        order, make_area = make_sweep(self.case.bound)
        self.accounts = [Budget(MemoryLimit(bytes=2**40)).account("area") for _ in range(2)]
        self.areas = [make_area(side, self.accounts[side]) for side in range(2)]
        self.runs = [whole_run(order, side, self.case.keys[side]) for side in range(2)]
        self.at = [0, 0]
        largest = choose.choice([1, 3, 50])
        while any(self.left_over(side) for side in range(2)):
            side = choose.choice([side for side in range(2) if self.left_over(side)])
            self.step(side, choose.randint(1, largest))
            if choose.random() < 0.7:
                self.expire()
        for area in self.areas:
            area.clear()
            assert area.nbytes == len(area) == 0
        self.check_memory()
        return sorted(self.found)

    def left_over(self, side: int) -> int:
        return len(self.runs[side]) - self.at[side]

    def step(self, side: int, count: int) -> None:
        run = self.runs[side]
        part = slice(self.at[side], min(self.at[side] + count, len(run)))
        self.at[side] = part.stop
        keys = run.keys.slice(part.start, part.stop)
        self.areas[side].insert(keys, run.words[part], run.handles[part])
        for element, row in query_all(self.areas[1 - side], keys, self.room):
            own = int(run.handles[part.start + row])
            self.found.append((own, element) if side == 0 else (element, own))
        self.check_memory()

    def expire(self) -> None:
        """Move the frontier as far as it may go; condition (1): what goes matches nothing from the frontier on."""
        nexts = [self.runs[side].words[self.at[side]] for side in range(2) if self.left_over(side)]
        if not nexts:
            return
        for side, area in enumerate(self.areas):
            area.expire(min(nexts).item())
            held = set(area.handles.tolist())
            assert len(held) == len(area)
            passed = self.runs[side].handles[: self.at[side]]
            gone = np.array([handle for handle in passed if handle not in held], dtype=np.int64)
            to_come = self.runs[1 - side].handles[self.at[1 - side] :]
            grid = self.case.matches[np.ix_(gone, to_come)] if side == 0 else self.case.matches[np.ix_(to_come, gone)]
            assert not grid.any()
        self.check_memory()

    def check_memory(self) -> None:
        for area, account in zip(self.areas, self.accounts, strict=True):
            assert area.nbytes == account.bytes


def whole_run(order: SweepOrder, side: int, keys: Keys) -> SortedRun:
    """All rows in sweep order, those that can match nothing among them, as an operator may have them."""
    words = order.words(side, keys)
    rows = np.argsort(words, kind="stable")
    return SortedRun(keys.take(rows), words[rows], rows)


def query_all(area: SweepArea, keys: Keys, room: int) -> list[Pair]:
    cursor = SweepCursor()
    handles, rows = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    pairs: list[Pair] = []
    while cursor.row < len(keys):
        before = cursor.row, cursor.place
        found = area.query(keys, cursor, handles, rows)
        assert found or (cursor.row, cursor.place) != before, "a query that stands still"
        pairs += zip(handles[:found].tolist(), rows[:found].tolist(), strict=True)
    return pairs


def filled(make_area: AreaMaker, order: SweepOrder, side: int, keys: Keys) -> SweepArea:
    area = make_area(side, Budget(MemoryLimit(bytes=2**40)).account("area"))
    run = whole_run(order, side, keys)
    area.insert(run.keys, run.words, run.handles)
    return area
