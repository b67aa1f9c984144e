"""Every registered algorithm × every condition and join type it declares: the invariants of the design."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.conditions import KINDS, Kind, Row
from conformance.scenario import Run, Scenario, able, check, check_moved, examples, scenarios, values_of, verify
from earlyjoin.algorithms import registry
from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.state import joined
from earlyjoin.state.budget import MemoryLimit

CASES = [pytest.param(name, kind, id=f"{name}-{kind.name}") for kind in KINDS for name in able(kind)]
by_name = {kind.name: kind for kind in KINDS}
REPEATED = [case for case in CASES if case.values[1].name in ("equal_string", "equal_and_band", "band", "not_equal")]
"""What is done depends on the kind by the index and the sweep order alone: one kind for each."""


def spills(algorithm: str) -> bool:
    return registry.get(algorithm).description.spills


def test_every_algorithm_is_covered() -> None:
    assert {case.values[0] for case in CASES} == set(registry.names())


@pytest.mark.parametrize(("algorithm", "kind"), CASES)
@given(data=st.data())
@examples(8)
def test_same_rows_as_the_nested_loop(algorithm: str, kind: Kind, data: st.DataObject) -> None:
    scenario = data.draw(scenarios(kind, spills(algorithm)))
    if scenario.how in registry.get(algorithm).description.join_types:
        check(algorithm, kind, scenario)


@pytest.mark.parametrize(("algorithm", "kind"), CASES)
@given(data=st.data())
@examples(4)
def test_snapshot_and_restore_at_any_step(algorithm: str, kind: Kind, data: st.DataObject) -> None:
    scenario = data.draw(scenarios(kind, spills(algorithm)))
    moves = data.draw(st.sets(st.integers(0, 80), max_size=3), label="snapshot after these steps")
    check_moved(algorithm, kind, scenario, moves)


@pytest.mark.parametrize(("algorithm", "kind"), REPEATED)
@given(data=st.data())
@examples(6)
def test_deterministic(algorithm: str, kind: Kind, data: st.DataObject) -> None:
    scenario = data.draw(scenarios(kind, spills(algorithm)))
    outputs, counters = [], []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as directory:
            run = Run(algorithm, kind, scenario, Path(directory))
            outputs.append([(row["id"], row.get("id_right")) for row in run.whole()])
            counters.append(run.context.counters.to_dict())
    assert outputs[0] == outputs[1]
    assert counters[0] == counters[1]


def fixed(how: JoinType, *, rows: int, memory: MemoryLimit, seed: int) -> Scenario:
    """A scenario of some size that spills and reacts."""
    rng = random.Random(seed)
    sides = [
        [
            {"k": rng.choice([None, 0, 0, 1, 2, 3, 4, 5]), "id": number, "pad": "p" * rng.randint(0, 9)}
            for number in range(rows)
        ]
        for _ in range(2)
    ]
    steps, position = [], [0, 0]
    while min(position) < rows:
        side = rng.choice([s for s in (0, 1) if position[s] < rows])
        stop = min(rows, position[side] + rng.randint(1, 9))
        steps.append(("arrive", side, position[side], stop))
        position[side] = stop
        if rng.random() < 0.3:
            steps.append(("react", rng.randint(1, 5), 0, 0))
    steps += [("end", 0, 0, 0), ("end", 1, 0, 0), ("finish", 0, 0, 0)]
    return Scenario(how, (sides[0], sides[1]), steps, memory, 1.0, 16)


def test_restored_in_another_process(tmp_path: Path) -> None:
    """One process for all of them: what it takes to start one is most of the time."""
    saved = {
        tmp_path / f"{algorithm}-{how}": _saved(algorithm, how, tmp_path / f"{algorithm}-{how}")
        for algorithm in registry.names()
        for how in (JoinType.INNER, JoinType.FULL, JoinType.SEMI)
    }
    other = Path(__file__).with_name("go_on.py")
    subprocess.run([sys.executable, str(other), *map(str, saved)], check=True, timeout=300)
    for directory, (scenario, before) in saved.items():
        verify(by_name["equal"], scenario, before + json.loads((directory / "output.json").read_text()))


def _saved(algorithm: str, how: JoinType, directory: Path) -> tuple[Scenario, list[Row]]:
    """An operator saved after some steps; the scenario, and what came out before."""
    kind = by_name["equal"]
    memory = MemoryLimit(rows=16) if spills(algorithm) else MemoryLimit(bytes=2**22)
    scenario = fixed(how, rows=60, memory=memory, seed=3)
    (spill := directory / "spill").mkdir(parents=True)
    run = Run(algorithm, kind, scenario, spill)
    going = run.yields()
    steps = [next(going) for _ in range(20)]
    run.operator.snapshot().save(directory / "saved")
    script = {
        "algorithm": algorithm,
        "kind": kind.name,
        "scenario": values_of(scenario),
        "counters": run.context.counters.to_dict(),
        "next_tick": run.context.ticks.next_tick,
        "step": steps[-1],
    }
    (directory / "script.json").write_text(json.dumps(script))
    run.close()
    return scenario, run.output


def never(*arguments: object) -> object:
    """A rule dropped: nothing was ever joined before."""
    flat = [end for argument in arguments for end in (argument if isinstance(argument, tuple) else (argument,))]
    return np.zeros(np.broadcast(*flat).shape, dtype=np.bool_)


@pytest.mark.parametrize("mutation", ["dropped", "inverted"])
@pytest.mark.parametrize(
    ("algorithm", "rule"),
    [
        ("nested", "resided_together"),
        ("pmj", "same_run"),
        ("xjoin", "resided_together"),
        ("ehj", "early_hash_joined"),
        ("hmj", "resided_together"),
        ("rpj", "resided_together"),
    ],
)
def test_a_broken_exactly_once_rule_is_noticed(
    algorithm: str, rule: str, mutation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = fixed(JoinType.INNER, rows=40, memory=MemoryLimit(rows=12), seed=1)
    check(algorithm, by_name["equal"], scenario)
    right = getattr(joined, rule)
    monkeypatch.setattr(joined, rule, never if mutation == "dropped" else lambda *arguments: ~right(*arguments))
    with pytest.raises(AssertionError):
        check(algorithm, by_name["equal"], scenario)


@pytest.mark.parametrize("algorithm", [name for name in registry.names() if spills(name)])
@pytest.mark.parametrize("output_rows", [1, 3])
def test_arrivals_interrupt_reactive_work_in_the_middle_of_a_hot_key(algorithm: str, output_rows: int) -> None:
    """Regression: candidates found by reactive work were taken for those of the batch that arrived next."""
    rows = [[{"k": 0, "id": number, "pad": str(number)} for number in range(48)] for _ in range(2)]
    steps: list[tuple[str, int, int, int]] = []
    for start in range(0, 48, 6):
        for side in (0, 1):
            steps += [("arrive", side, start, start + 6), ("react", 2 + start % 5, 0, 0)]
    steps += [("end", 0, 0, 0), ("end", 1, 0, 0), ("finish", 0, 0, 0)]
    scenario = Scenario(JoinType.FULL, (rows[0], rows[1]), steps, MemoryLimit(rows=16), 1.0, output_rows)
    check(algorithm, by_name["equal"], scenario)


def test_what_a_merge_had_written_is_saved_once() -> None:
    """Found by a long run: a second snapshot still had the files of a merge that was through by then."""
    keys = ([None] * 11 + [0, 1, 3], [None] * 5 + [0] + [None] * 18)
    rows = tuple([{"k": key, "t": None, "pad": None, "id": number} for number, key in enumerate(side)] for side in keys)
    steps = [
        ("arrive", 0, 0, 2), ("arrive", 0, 2, 8), ("arrive", 0, 8, 14), ("react", 4, 0, 0), ("arrive", 1, 0, 6),
        ("react", 1, 0, 0), ("end", 0, 0, 0), ("arrive", 1, 6, 8), ("arrive", 1, 8, 14), ("react", 1, 0, 0),
        ("arrive", 1, 14, 19), ("arrive", 1, 19, 24), ("end", 1, 0, 0), ("finish", 0, 0, 0),
    ]  # fmt: skip
    scenario = Scenario(JoinType.INNER, (rows[0], rows[1]), steps, MemoryLimit(rows=8), 0.5, 1)
    for moves in ({29, 38}, {19, 34}):
        check_moved("hmj", by_name["equal_and_band"], scenario, moves)
