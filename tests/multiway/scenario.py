"""Joins of many inputs as lists of steps, run on an operator with every invariant checked after every step."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from earlyjoin.algorithms import protocol, registry
from earlyjoin.algorithms.planning import plan_for
from earlyjoin.algorithms.protocol import Context, Operator, Plan, Slice
from earlyjoin.predicates.multiway import multi_equal
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.clock import LogicalClock
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.snapshot import Snapshot

Row = dict[str, Any]
Step = tuple[str, int, int, int]
"""("arrive", side, start, stop), ("react", steps, 0, 0), ("end", side, 0, 0), ("finish", 0, 0, 0)."""

KINDS: dict[str, tuple[dict[str, pa.DataType], bool]] = {
    "integer": ({"k": pa.int64()}, False),
    "string": ({"s": pa.string()}, False),
    "composite": ({"k": pa.int64(), "s": pa.string_view()}, False),
    "null safe": ({"k": pa.int64(), "s": pa.string()}, True),
    "float": ({"f": pa.float64()}, False),
}
VALUES = {
    "k": [None, 0, 0, 0, 0, 1, 2, 3, -7],
    "s": [None, "", "a", "a", "a", "b", "longer than twelve bytes"],
    "f": [None, 0.0, -0.0, 0.5, 0.5, float("inf")],
}
NAMES = ("a", "b", "c", "d", "e")


FAN_IN = 10
"""Most runs of a side that one merge takes."""


@dataclass(frozen=True)
class Scenario:
    """Inputs, how they are cut and interleaved, and what the operator has to work with."""

    kind: str
    rows: list[list[Row]]
    steps: list[Step]
    memory: MemoryLimit
    output_rows: int = 64

    @property
    def keys(self) -> list[str]:
        return list(KINDS[self.kind][0])

    @property
    def null_safe(self) -> bool:
        return KINDS[self.kind][1]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*KINDS[self.kind][0].items(), ("id", pa.int64()), ("pad", pa.string())])

    @property
    def plan(self) -> Plan:
        names = NAMES[: len(self.rows)]
        return plan_for(multi_equal(names, self.keys, null_safe=self.null_safe), [self.schema] * len(names))


def naive(rows: Sequence[Sequence[Row]], keys: Sequence[str], *, null_safe: bool = False) -> Counter[tuple[int, ...]]:
    """Every combination of rows, one of each input, that agrees in all keys."""

    def agree(combination: tuple[Row, ...]) -> bool:
        for key in keys:
            values = [row[key] for row in combination]
            if (None in values and not null_safe) or any(value != values[0] for value in values):
                return False
        return True

    return Counter(tuple(row["id"] for row in one) for one in itertools.product(*rows) if agree(one))


@st.composite
def scenarios(draw: st.DrawFn, sides: int) -> Scenario:
    """Random data, skew, nulls, empty inputs, cuts, interleavings, react slices and budgets down to a few rows."""
    kind = draw(st.sampled_from(list(KINDS)))
    columns = {name: st.sampled_from(VALUES[name]) for name in KINDS[kind][0]}
    row = st.fixed_dictionaries(columns | {"pad": st.sampled_from([None, "", "x", "long"])})
    rows = []
    for side in range(sides):
        length = draw(st.integers(0, 24 if sides == 3 else 12))
        drawn = draw(st.lists(row, min_size=length, max_size=length), label=f"side {side}")
        rows.append(
            [r | {"id": n, "pad": "long" * 700 if r["pad"] == "long" else r["pad"]} for n, r in enumerate(drawn)]
        )
    memory = draw(
        st.sampled_from([8, 9, 12, 16, 40]).map(lambda n: MemoryLimit(rows=n))
        | st.sampled_from([2**16, 2**17, 2**20]).map(lambda n: MemoryLimit(bytes=n))
    )
    steps = draw(interleavings([len(side) for side in rows]))
    return Scenario(kind, rows, steps, memory, draw(st.sampled_from([1, 2, 7, 500])))


@st.composite
def interleavings(draw: st.DrawFn, lengths: list[int]) -> list[Step]:
    """Arrivals of all sides in any order and batch size, with reactive slices in between."""
    position, open_sides = [0] * len(lengths), list(range(len(lengths)))
    steps: list[Step] = []
    while open_sides:
        side = draw(st.sampled_from(open_sides))
        if position[side] >= lengths[side]:
            steps.append(("end", side, 0, 0))
            open_sides.remove(side)
        else:
            stop = min(lengths[side], position[side] + draw(st.integers(1, 8)))
            steps.append(("arrive", side, position[side], stop))
            position[side] = stop
        if draw(st.booleans()):
            steps.append(("react", draw(st.integers(1, 6)), 0, 0))
    return [*steps, ("finish", 0, 0, 0)]


def in_turns(lengths: Sequence[int], batch: int, *, react: int = 0) -> list[Step]:
    """Batches of all sides by turns."""
    steps: list[Step] = []
    for start in range(0, max(lengths, default=0), batch):
        for side, length in enumerate(lengths):
            if start < length:
                steps.append(("arrive", side, start, min(length, start + batch)))
                if react:
                    steps.append(("react", react, 0, 0))
    return [*steps, *(("end", side, 0, 0) for side in range(len(lengths))), ("finish", 0, 0, 0)]


class Run:
    """An operator at work on a scenario."""

    def __init__(self, scenario: Scenario, directory: Path) -> None:
        self.scenario, self.directory = scenario, directory
        self.batches = [pa.RecordBatch.from_pylist(rows, schema=scenario.schema) for rows in scenario.rows]
        self.plan = scenario.plan
        self.found: list[tuple[int, ...]] = []
        self.context = self._context()
        self.operator: Operator = registry.create("pmj", self.plan, self.context)

    def _context(self) -> Context:
        budget = Budget(self.scenario.memory)
        options = registry.options_of("pmj", {"fan_in": FAN_IN})
        rows = self.scenario.output_rows
        return Context(budget=budget, spill=SpillDirectory(self.directory), output_rows=rows, options=options)

    def whole(self) -> list[tuple[int, ...]]:
        """Run every step; returns ids of the rows in each result, in order."""
        for _ in self.yields():
            pass
        self.close()
        return self.found

    def yields(self, first_step: int = 0) -> Iterator[int]:
        """Run from a step on; gives the number of the scenario's step after every step of the operator."""
        for number in range(first_step, len(self.scenario.steps)):
            for matches in self._call(self.scenario.steps[number]):
                self._take(matches)
                yield number
            self.check()

    def resumed(self, step: int) -> Iterator[int]:
        """Finish an interrupted call, then run the steps after it."""
        for matches in self.operator.resume():
            self._take(matches)
            yield step
        yield from self.yields(step + 1)

    def _call(self, step: Step) -> Iterator[protocol.Step]:
        name, first, start, stop = step
        if name == "arrive":
            return self.operator.arrive(first, self.batches[first].slice(start, stop - start))
        if name == "react":
            return self.operator.react(Slice(first))
        return self.operator.end(first) if name == "end" else self.operator.finish()

    def _take(self, matches: protocol.Step) -> None:
        self.check()
        if matches is None:
            return
        assert 0 < len(matches) <= self.scenario.output_rows, "an output batch is empty or too long"
        for row in self.plan.output.build(matches.rows, matches.index).to_pylist():
            ids = tuple(row[f"id_{name}"] for name in self.plan.names)
            for side, (name, number) in enumerate(zip(self.plan.names, ids, strict=True)):
                assert row[f"pad_{name}"] == self.scenario.rows[side][number]["pad"]
            self.found.append(ids)

    def check(self) -> None:
        """What must hold at any moment."""
        budget, limit = self.context.budget, self.context.budget.limit
        if limit.bytes is not None:
            assert budget.peak_bytes <= limit.bytes
            assert self.operator.held_bytes() <= budget.used_bytes, "holds more than it has booked"
        else:
            assert limit.rows is not None
            assert budget.peak_rows <= limit.rows

    def close(self) -> None:
        """Everything must be given back."""
        self.operator.close()
        assert (self.context.budget.used_bytes, self.context.budget.used_rows) == (0, 0), "memory was not given back"
        assert not any(path.suffix in (".pages", ".flags") for path in self.directory.rglob("*")), "run files are left"
        self.context.spill.close()
        assert not any(self.directory.iterdir()), "the spill directory is left"

    def moved(self, saved: Path) -> None:
        """Save the state, and go on with a new operator that restores it."""
        self.operator.snapshot().save(saved)
        counters, ticks = self.context.counters.to_dict(), self.context.ticks.next_tick
        self.close()
        self.context = self._context()
        self.context.counters = Counters.from_dict(counters)
        self.context.ticks = LogicalClock(ticks)
        self.operator = registry.create("pmj", self.plan, self.context)
        self.operator.restore(Snapshot.load(saved))
        self.check()


def expected(scenario: Scenario) -> Counter[tuple[int, ...]]:
    return naive(scenario.rows, scenario.keys, null_safe=scenario.null_safe)
