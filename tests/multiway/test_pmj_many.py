"""Progressive merge join of many inputs: the naive oracle, budgets, snapshots, hot keys, and the exactly-once rules."""

from __future__ import annotations

import itertools
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.protocol import Context, Slice
from earlyjoin.algorithms.window_merge.merge import WindowMerge
from earlyjoin.errors import BudgetExceeded, UnsupportedError
from earlyjoin.kernels import hashing
from earlyjoin.state import joined
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.disk.spill import SpillDirectory
from multiway.scenario import KINDS, VALUES, Run, Scenario, expected, in_turns, scenarios

relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=15)


def fixed(
    kind: str = "integer",
    *,
    sides: int = 3,
    rows: int = 40,
    memory: MemoryLimit | None = None,
    react: int = 0,
    seed: int = 1,
    values: list[Any] | None = None,
    output_rows: int = 64,
    batch: int = 5,
) -> Scenario:
    """A scenario of some size that spills, and reacts where ``react`` says how much."""
    rng = random.Random(seed)
    columns = {name: values if values is not None else VALUES[name] for name in KINDS[kind][0]}
    data = [
        [{name: rng.choice(v) for name, v in columns.items()} | {"id": n, "pad": "p" * (n % 7)} for n in range(rows)]
        for _ in range(sides)
    ]
    steps = in_turns([rows] * sides, batch, react=react)
    return Scenario(kind, data, steps, memory or MemoryLimit(rows=12), output_rows)


@pytest.fixture
def binary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge trees as deep as they get."""
    monkeypatch.setattr("multiway.scenario.FAN_IN", 2)


def stage_of(operator: Any) -> str:
    """What an operator is at."""
    if operator._merge is None:
        return "joining" if operator._joining is not None else "gathering"
    merge = operator._merge.sweep.merge
    what = "a merge" if merge.hot is None else "a hot key"
    return f"joining {what}" if merge.joins else "merging" if merge.hot is None else "hot key"


@pytest.mark.parametrize("sides", [3, 4])
@given(data=st.data())
@relaxed
def test_same_as_the_naive_join(sides: int, data: st.DataObject) -> None:
    scenario = data.draw(scenarios(sides))
    with tempfile.TemporaryDirectory() as directory:
        assert Counter(Run(scenario, Path(directory)).whole()) == expected(scenario)


@pytest.mark.usefixtures("binary")
@given(data=st.data())
@relaxed
def test_same_as_the_naive_join_with_deep_merge_trees(data: st.DataObject) -> None:
    scenario = data.draw(scenarios(3))
    with tempfile.TemporaryDirectory() as directory:
        assert Counter(Run(scenario, Path(directory)).whole()) == expected(scenario)


@pytest.mark.parametrize("memory", [MemoryLimit(rows=8), MemoryLimit(rows=100), MemoryLimit(bytes=2**16)])
@pytest.mark.parametrize("kind", ["spread", "equal", "few", "one empty", "all empty"])
@pytest.mark.usefixtures("binary")
def test_deep_merge_trees(tmp_path: Path, memory: MemoryLimit, kind: str) -> None:
    values = {"spread": list(range(25)), "equal": [7], "few": [1, 1, 1, 2, None]}.get(kind, [0, 1])
    scenario = fixed(rows=10 if memory.rows == 8 else 24, memory=memory, values=values, react=3)
    if kind == "one empty":
        scenario.rows[1].clear()
    if kind == "all empty":
        for side in scenario.rows:
            side.clear()
    scenario = Scenario("integer", scenario.rows, in_turns([len(r) for r in scenario.rows], 5, react=3), memory)
    assert Counter(Run(scenario, tmp_path).whole()) == expected(scenario)


@pytest.mark.parametrize("kind", ["integer", "string"])
@pytest.mark.parametrize("react", [0, 2])
def test_restored_at_every_step(tmp_path: Path, kind: str, react: int) -> None:
    """Arriving, joining in memory, merging, in the middle of a hot key: saved and restored after every step."""
    scenario = fixed(kind, rows=9, memory=MemoryLimit(rows=9), react=react, output_rows=4, batch=1)
    (tmp_path / "spill").mkdir()
    run = Run(scenario, tmp_path / "spill")
    going, moves, stages = run.yields(), 0, set()
    while (step := next(going, None)) is not None:
        moves += 1
        stages.add(stage_of(run.operator))
        run.moved(tmp_path / f"saved-{moves}")
        going = run.resumed(step)
    run.close()
    assert stages >= {"gathering", "joining", "merging", "joining a merge", "hot key", "joining a hot key"}
    assert Counter(run.found) == expected(scenario)


@given(data=st.data())
@settings(relaxed, max_examples=8)
def test_restored_at_some_step(data: st.DataObject) -> None:
    scenario = data.draw(scenarios(3))
    after = data.draw(st.integers(1, 60), label="steps before the move")
    with tempfile.TemporaryDirectory() as directory:
        (spill := Path(directory) / "spill").mkdir()
        run = Run(scenario, spill)
        for number, step in enumerate(run.yields(), start=1):
            if number == after:
                run.moved(Path(directory) / "saved")
                for _ in run.resumed(step):
                    pass
                break
        run.close()
    assert Counter(run.found) == expected(scenario)


def test_deterministic(tmp_path: Path) -> None:
    outputs, counters = [], []
    for _ in range(2):
        run = Run(fixed("string", rows=16, react=2), tmp_path)
        outputs.append(run.whole())
        counters.append(run.context.counters.to_dict())
    assert outputs[0] == outputs[1]
    assert counters[0] == counters[1]


def test_keys_with_equal_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "hash_bytes", lambda offsets, data: np.zeros(len(offsets) - 1, dtype=np.int64))
    scenario = fixed("string", rows=20)
    assert Counter(Run(scenario, tmp_path).whole()) == expected(scenario)


@pytest.mark.parametrize("mutation", ["dropped", "inverted"])
def test_a_broken_rule_for_runs_is_noticed(tmp_path: Path, mutation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = joined.same_run

    def broken(*runs: Any) -> Any:
        return np.zeros(len(runs[0]), dtype=np.bool_) if mutation == "dropped" else ~right(*runs)

    monkeypatch.setattr(joined, "same_run", broken)
    scenario = fixed(values=[0, 1, 2, 3])
    assert Counter(Run(scenario, tmp_path).whole()) != expected(scenario)


def test_a_broken_rule_for_rows_in_memory_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "unjoined_boxes", lambda starts, counts, old: (starts, counts))
    scenario = fixed(rows=60, memory=MemoryLimit(bytes=2**20), values=list(range(20)))
    assert Counter(Run(scenario, tmp_path).whole()) != expected(scenario)


def test_first_results_come_before_memory_is_full(tmp_path: Path) -> None:
    scenario = fixed(rows=50, memory=MemoryLimit(bytes=2**20), values=list(range(10)))
    run = Run(scenario, tmp_path)
    arrivals = [step for step, (name, *_) in enumerate(scenario.steps) if name == "arrive"]
    first = next(step for step in run.yields() if run.found)
    assert first in arrivals[: len(arrivals) // 2]
    run.close()


def test_merges_when_inputs_are_silent(tmp_path: Path) -> None:
    scenario = fixed(rows=30, memory=MemoryLimit(rows=16), values=list(range(8)))
    run = Run(scenario, tmp_path)
    for number, (name, *_) in enumerate(scenario.steps):
        if name == "arrive":
            for matches in run._call(scenario.steps[number]):
                run._take(matches)
    before = len(run.found)
    assert run.operator.has_reactive_work()
    while run.operator.has_reactive_work():
        for matches in run.operator.react(Slice(4)):
            run._take(matches)
    assert len(run.found) > before
    for matches in run.operator.finish():
        run._take(matches)
    run.close()
    assert Counter(run.found) == expected(scenario)


@pytest.mark.parametrize("memory", ["256KiB", "64MB"])
def test_a_hot_key_is_given_out_in_bounded_steps(tmp_path: Path, memory: str) -> None:
    """10,000 rows of one key in each of three inputs: 10^12 results, of which some are taken."""
    scenario = Scenario("integer", [[], [], []], [], MemoryLimit.parse(memory), 1000)
    budget = Budget(scenario.memory)
    context = Context(budget=budget, spill=SpillDirectory(tmp_path), output_rows=1000)
    operator = registry.create("pmj", scenario.plan, context)
    columns = {"k": np.zeros(10_000, dtype=np.int64), "id": np.arange(10_000), "pad": ["x"] * 10_000}
    batch = pa.RecordBatch.from_pydict(columns, schema=scenario.schema)
    arrivals = ((side, start) for start in range(0, 10_000, 100) for side in range(3))
    found, steps = 0, (step for side, start in arrivals for step in operator.arrive(side, batch.slice(start, 100)))
    for step in itertools.islice(steps, 10_000):
        found += len(step) if step is not None else 0
        assert step is None or len(step) <= 1000
        assert operator.held_bytes() <= budget.used_bytes <= (scenario.memory.bytes or 0)
    assert found > 1_000_000
    operator.close()
    context.spill.close()


def test_a_hot_key_larger_than_memory_is_merged_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hot = []
    begin = WindowMerge._begin_hot_word
    monkeypatch.setattr(WindowMerge, "_begin_hot_word", lambda self, word: (hot.append(word), begin(self, word))[1])
    scenario = fixed(rows=16, memory=MemoryLimit(rows=16), values=[5, 5, 5, 6])
    assert Counter(Run(scenario, tmp_path).whole()) == expected(scenario)
    assert 5 in hot


def test_what_is_refused(tmp_path: Path) -> None:
    scenario = fixed()
    context = Context(budget=Budget(MemoryLimit(rows=8)), spill=SpillDirectory(tmp_path))
    for name in ("shj", "nested", "smj"):
        with pytest.raises(UnsupportedError, match=r"at most 2 inputs, not 3; choose one of: auto, pmj$"):
            registry.create(name, scenario.plan, context)
    part = Budget(MemoryLimit(rows=8)).split(0.5)[0]
    with pytest.raises(BudgetExceeded, match=r"8 rows is too small to join 4 inputs.*at least 16 rows"):
        registry.create("pmj", fixed(sides=4).plan, Context(budget=part, spill=context.spill))


def test_a_row_larger_than_the_memory(tmp_path: Path) -> None:
    scenario = fixed(rows=6, memory=MemoryLimit(bytes=2**16))
    for side in scenario.rows:
        side[3]["pad"] = "x" * 2**17
    with pytest.raises(BudgetExceeded, match=r"is too large for what the memory of|no room for one more row"):
        Run(scenario, tmp_path).whole()
