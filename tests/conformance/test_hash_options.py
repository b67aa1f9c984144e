"""The hash family with its options drawn at random: the invariants hold for all of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.conditions import KINDS, Kind
from conformance.scenario import Scenario, able, check, check_moved, examples, scenarios
from earlyjoin.algorithms import registry
from earlyjoin.algorithms.hash_join.flush_policies import HASH_MERGE_POLICIES
from earlyjoin.algorithms.hash_join.operator import PartitionedHashJoin
from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.state.budget import MemoryLimit

ALGORITHMS = [name for name in registry.names() if issubclass(registry.get(name), PartitionedHashJoin)]
CASES = [
    pytest.param(name, kind, id=f"{name}-{kind.name}") for kind in KINDS for name in ALGORITHMS if name in able(kind)
]


@st.composite
def choices(draw: st.DrawFn, algorithm: str) -> dict[str, Any]:
    """Options of an algorithm."""
    options: dict[str, Any] = {
        "partitions": draw(st.sampled_from([None, 1, 2, 5])),
        "page_rows": draw(st.sampled_from([None, 1, 3])),
        "build_side": draw(st.sampled_from([None, "left", "right"])),
        "hand_over": draw(st.sampled_from(["step", "task", "task"])),
    }
    if algorithm.startswith(("hmj", "rpj")):
        options["fan_in"] = draw(st.sampled_from([2, 3, 10]))
    if algorithm == "hmj":
        options["flush"] = draw(st.sampled_from(sorted(HASH_MERGE_POLICIES)))
    if algorithm.startswith("rpj"):
        options["flush_fraction"] = draw(st.sampled_from([None, 0.01, 0.5, 1.0]))
        options["sequential_cost"] = draw(st.sampled_from([0.01, 10.0]))
    return options


@pytest.mark.parametrize(("algorithm", "kind"), CASES)
@given(data=st.data())
@examples(4)
def test_same_rows_as_the_nested_loop(algorithm: str, kind: Kind, data: st.DataObject) -> None:
    scenario, options = data.draw(scenarios(kind, spills=True)), data.draw(choices(algorithm), label="options")
    check(algorithm, kind, scenario, options)


@pytest.mark.parametrize(("algorithm", "kind"), CASES)
@given(data=st.data())
@examples(2)
def test_snapshot_and_restore_at_any_step(algorithm: str, kind: Kind, data: st.DataObject) -> None:
    scenario, options = data.draw(scenarios(kind, spills=True)), data.draw(choices(algorithm), label="options")
    moves = data.draw(st.sets(st.integers(0, 80), max_size=3), label="snapshot after these steps")
    check_moved(algorithm, kind, scenario, moves, options)


def test_no_task_on_runs_that_merges_have_emptied() -> None:
    """Found by a long run: a memory-disk task was chosen though merges had left no run to read."""
    keys = ([None] * 12 + [0, 0] + [None] * 6, [None] * 17 + [0, 2] + [None] * 9)
    rows = tuple([{"k": key, "pad": None, "id": number} for number, key in enumerate(side)] for side in keys)
    steps = [
        ("arrive", 0, 0, 6), ("arrive", 1, 0, 4), ("arrive", 0, 6, 7), ("react", 1, 0, 0), ("arrive", 0, 7, 14),
        ("arrive", 1, 4, 11), ("arrive", 1, 11, 19), ("react", 5, 0, 0), ("arrive", 0, 14, 15), ("arrive", 0, 15, 20),
        ("arrive", 1, 19, 25), ("react", 1, 0, 0), ("arrive", 1, 25, 28), ("end", 0, 0, 0), ("end", 1, 0, 0),
        ("finish", 0, 0, 0),
    ]  # fmt: skip
    scenario = Scenario(JoinType.SEMI, (rows[0], rows[1]), steps, MemoryLimit(rows=8), 1.0, 1)
    kind = next(kind for kind in KINDS if kind.name == "equal_null_safe")
    check_moved(
        "rpj", kind, scenario, set(), {"partitions": 1, "hand_over": "task", "fan_in": 2, "sequential_cost": 0.01}
    )
