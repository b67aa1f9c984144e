"""A join as a list of steps, run on an operator with every invariant checked after every step."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from conformance.conditions import Kind, Row
from earlyjoin.algorithms import protocol, registry
from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.options import GivenOptions
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.algorithms.protocol import Context, Operator, Plan, Slice
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.clock import LogicalClock
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.snapshot import Snapshot

Step = tuple[str, int, int, int]
"""("arrive", side, start, stop), ("react", steps, 0, 0), ("end", side, 0, 0), ("finish", 0, 0, 0)."""


@dataclass(frozen=True)
class Scenario:
    """Inputs, how they are cut and interleaved, and what the operator has to work with."""

    how: JoinType
    rows: tuple[list[Row], list[Row]]
    steps: list[Step]
    memory: MemoryLimit
    operator_share: float
    output_rows: int
    rows_expected: tuple[int | None, ...] | None = None


@st.composite
def scenarios(draw: st.DrawFn, kind: Kind, spills: bool) -> Scenario:
    """Random data, skew, nulls, cuts, interleavings, react slices and budgets down to a few rows."""
    row = st.fixed_dictionaries(
        {name: values for name, (_, values) in kind.columns.items()} | {"pad": st.sampled_from([None, "", "x", "long"])}
    )
    rows = []
    for side in range(2):
        length = draw(st.integers(0, 30))  # left to itself, a list is mostly too short to fill a memory
        drawn = draw(st.lists(row, min_size=length, max_size=length), label=f"side {side}")
        # Some rows of several kilobytes: budgets in bytes must spill too.
        pads = [r["pad"] if r["pad"] != "long" else "long" * 700 for r in drawn]
        rows.append([r | {"id": number, "pad": pad} for number, (r, pad) in enumerate(zip(drawn, pads, strict=True))])
    steps = draw(interleavings(len(rows[0]), len(rows[1])))
    if not spills:
        memory = MemoryLimit(bytes=2**22)
    else:
        memory = draw(
            st.sampled_from([8, 8, 9, 12, 16, 30]).map(lambda n: MemoryLimit(rows=n))
            | st.sampled_from([2**16, 2**17, 2**20]).map(lambda n: MemoryLimit(bytes=n))
        )
    # Half of 8 rows: the runtime takes a part of every budget for itself.
    share = draw(st.sampled_from([0.5, 1.0])) if memory.rows is not None else 1.0
    how = draw(st.sampled_from(list(JoinType)))
    sizes = tuple(map(len, rows))
    wrong = st.tuples(*[st.none() | st.integers(0, 40)] * 2)
    rows_expected = draw(st.sampled_from([None, sizes, sizes]) | wrong, label="rows expected")
    output_rows = draw(st.sampled_from([1, 2, 7, 500]))
    return Scenario(how, (rows[0], rows[1]), steps, memory, share, output_rows, rows_expected)


@st.composite
def interleavings(draw: st.DrawFn, left: int, right: int) -> list[Step]:
    """Arrivals of both sides in any order and batch size, with reactive slices in between."""
    position, ended, lengths = [0, 0], [False, False], (left, right)
    steps: list[Step] = []
    while not all(ended):
        side = draw(st.sampled_from([s for s in (0, 1) if not ended[s]]))
        if position[side] >= lengths[side]:
            steps.append(("end", side, 0, 0))
            ended[side] = True
        else:
            stop = min(lengths[side], position[side] + draw(st.integers(1, 8)))
            steps.append(("arrive", side, position[side], stop))
            position[side] = stop
        if draw(st.booleans()):
            steps.append(("react", draw(st.integers(1, 6)), 0, 0))
    return [*steps, ("finish", 0, 0, 0)]


def expected(kind: Kind, scenario: Scenario) -> Counter[tuple[int | None, int | None]]:
    """The nested loop: pairs of row ids."""
    left, right = scenario.rows
    pairs = [(a["id"], b["id"]) for a in left for b in right if kind.holds(a, b)]
    matched = ({a for a, _ in pairs}, {b for _, b in pairs})
    how = scenario.how
    if how is JoinType.SEMI:
        return Counter((a["id"], None) for a in left if a["id"] in matched[0])
    if how is JoinType.ANTI:
        return Counter((a["id"], None) for a in left if a["id"] not in matched[0])
    result: Counter[tuple[int | None, int | None]] = Counter(pairs)
    if how.gives_unmatched(0):
        result.update((a["id"], None) for a in left if a["id"] not in matched[0])
    if how.gives_unmatched(1):
        result.update((None, b["id"]) for b in right if b["id"] not in matched[1])
    return result


class Run:
    """An operator at work on a scenario."""

    def __init__(
        self, algorithm: str, kind: Kind, scenario: Scenario, directory: Path, options: GivenOptions = None
    ) -> None:
        self.scenario = scenario
        self.options = registry.options_of(algorithm, options)
        self.batches = [_batch(rows, kind.schema) for rows in scenario.rows]
        self.plan: Plan = make_plan(kind.condition, kind.schema, kind.schema, how=scenario.how)
        self.directory = directory
        self.algorithm = algorithm
        self.output: list[Row] = []
        self.context = self._context()
        self.operator: Operator = registry.create(algorithm, self.plan, self.context)

    def _context(self) -> Context:
        whole = Budget(self.scenario.memory)
        budget = whole if self.scenario.operator_share == 1.0 else whole.split(self.scenario.operator_share)[0]
        return Context(
            budget=budget,
            spill=SpillDirectory(self.directory),
            output_rows=self.scenario.output_rows,
            rows_expected=self.scenario.rows_expected,
            options=self.options,
        )

    def whole(self) -> list[Row]:
        """Run every step; returns the output rows in order."""
        for _ in self.yields():
            pass
        self.close()
        return self.output

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
        self.check()
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
        self.output += self.plan.output.build(matches.rows, matches.index).to_pylist()

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
        self.restore(saved, counters, ticks)

    def restore(self, saved: Path, counters: dict[str, object], next_tick: int) -> None:
        """Take over a saved state."""
        self.context = self._context()
        self.context.counters = Counters.from_dict(counters)
        self.context.ticks = LogicalClock(next_tick)
        self.operator = registry.create(self.algorithm, self.plan, self.context)
        self.operator.restore(Snapshot.load(saved))
        self.check()


def verify(kind: Kind, scenario: Scenario, output: list[Row]) -> None:
    """The output is the nested loop's, row by row and value by value."""
    ids = Counter((row["id"], row.get("id_right")) for row in output)
    assert ids == expected(kind, scenario)
    for row in output:
        for side, suffix in ((0, ""), (1, "_right")):
            number = row.get(f"id{suffix}")
            if number is not None:
                assert row[f"pad{suffix}"] == scenario.rows[side][number]["pad"]


def check(algorithm: str, kind: Kind, scenario: Scenario, options: GivenOptions = None) -> list[Row]:
    """Run a scenario and check all of it."""
    with tempfile.TemporaryDirectory() as directory:
        output = Run(algorithm, kind, scenario, Path(directory), options).whole()
    verify(kind, scenario, output)
    return output


def examples(count: int) -> settings:
    """So many examples of a property; EARLYJOIN_EXAMPLES times as many in a long run."""
    times = int(os.environ.get("EARLYJOIN_EXAMPLES", "1"))
    return settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=count * times)


def check_moved(
    algorithm: str, kind: Kind, scenario: Scenario, moves: set[int], options: GivenOptions = None
) -> list[Row]:
    """Run a scenario, on another operator after each of the given steps, and check all of it."""
    with tempfile.TemporaryDirectory() as spill, tempfile.TemporaryDirectory() as saved:
        run = Run(algorithm, kind, scenario, Path(spill), options)
        going, count = run.yields(), 0
        while (step := next(going, None)) is not None:
            if count in moves:
                run.moved(Path(saved) / str(count))
                going = run.resumed(step)
            count += 1
        run.close()
    verify(kind, scenario, run.output)
    return run.output


def _batch(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def able(kind: Kind) -> list[str]:
    """The registered algorithms that declare they can do the kind's inner join."""
    plan = make_plan(kind.condition, kind.schema, kind.schema)
    return registry.names_that_can(plan)


def values_of(scenario: Scenario) -> dict[str, Any]:
    """The scenario as plain values, for another process."""
    return {
        "how": scenario.how.value,
        "rows": list(scenario.rows),
        "steps": scenario.steps,
        "memory": {"bytes": scenario.memory.bytes, "rows": scenario.memory.rows},
        "operator_share": scenario.operator_share,
        "output_rows": scenario.output_rows,
        "rows_expected": scenario.rows_expected,
    }


def scenario_of(values: dict[str, Any]) -> Scenario:
    """The inverse of ``values_of``."""
    return Scenario(
        JoinType(values["how"]),
        (values["rows"][0], values["rows"][1]),
        [tuple(step) for step in values["steps"]],
        MemoryLimit(**values["memory"]),
        values["operator_share"],
        values["output_rows"],
        tuple(values["rows_expected"]) if values["rows_expected"] is not None else None,
    )
