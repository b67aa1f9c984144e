"""Which algorithms exist, which can, and which is taken."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import earlyjoin as ej
from earlyjoin.algorithms import registry
from earlyjoin.algorithms.choice import choose
from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.nested_loop.operator import NestedLoopJoin
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.algorithms.protocol import Context, Description, Plan
from earlyjoin.algorithms.symmetric_hash.operator import SymmetricHashJoin
from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates.base import Capability
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.disk.spill import SpillDirectory

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64())])


def plan(condition: ej.predicates.conjunction.Condition, how: str = "inner") -> Plan:
    return make_plan(condition, SCHEMA, SCHEMA, how=how)


@pytest.fixture
def only_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else is registered by now: these two, whose answers are known."""
    monkeypatch.setattr(registry, "_registered", {"nested": NestedLoopJoin, "shj": SymmetricHashJoin})


def context(directory: Path) -> Context:
    return Context(budget=Budget(MemoryLimit(bytes=10**7)), spill=SpillDirectory(directory))


def test_unknown_names_list_those_that_exist() -> None:
    with pytest.raises(InputError, match="unknown algorithm 'quick'; choose one of: auto, ") as caught:
        registry.get("quick")
    for name in registry.names():
        assert name in str(caught.value)


def test_no_name_twice() -> None:
    with pytest.raises(ValueError, match="two algorithms are named 'shj'"):
        registry.register(SymmetricHashJoin)


@pytest.mark.parametrize(
    "condition", [ej.band("k", eps=1), ej.less("k"), ej.not_equal("k"), ej.where(pc.field("k") > 1)], ids=str
)
@pytest.mark.usefixtures("only_two")
def test_a_refusal_gives_the_reason_and_names_those_that_can(
    condition: ej.predicates.conjunction.Condition, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        registry.create("shj", plan(condition), context(tmp_path))
    message = str(caught.value)
    assert message.startswith("shj (symmetric hash join) cannot do this join: it needs an equality condition, and")
    assert plan(condition).condition.text in message
    assert message.endswith("choose one of: auto, nested")
    assert registry.names_that_can(plan(condition)) == ["nested"]


@pytest.mark.usefixtures("only_two")
def test_those_that_can() -> None:
    both = plan(ej.equal("k") & ej.band("t", eps=1))
    assert registry.names_that_can(both) == ["shj", "nested"], "in the order of their modules"
    assert registry.names_that_can(both, spills=True) == ["nested"]
    assert registry.names_that_can(both, spills=False) == ["shj"]
    driver, rest = registry.driver(both, SymmetricHashJoin.description)
    assert driver.capabilities & Capability.HASHABLE
    assert [part.text for part in rest] == [ej.band("t", eps=1).bind(SCHEMA, SCHEMA).text]
    with pytest.raises(UnsupportedError, match="shj cannot do this join"):
        registry.driver(plan(ej.less("k")), SymmetricHashJoin.description)


def test_reasons_of_join_types_and_inputs() -> None:
    narrow = Description(
        name="x",
        title="x",
        paper="x",
        needs=Capability.BANDED,
        spills=True,
        join_types=frozenset({JoinType.INNER}),
        most_sides=1,
    )
    equal = plan(ej.equal("k"))
    assert registry.refusal(equal, narrow) == "it joins at most 1 inputs, not 2"
    narrow = Description(
        name="x", title="x", paper="x", needs=Capability.BANDED, spills=True, join_types=frozenset({JoinType.INNER})
    )
    assert registry.refusal(plan(ej.band("k", eps=1), "left"), narrow) == "it has no left join"
    assert registry.refusal(equal, narrow) == "it needs a band condition, and left.k = right.k has none"
    assert registry.refusal(plan(ej.band("k", eps=1)), narrow) is None


LIMIT, ROWS = MemoryLimit(bytes=10**6), MemoryLimit(rows=1000)


@pytest.mark.parametrize(
    ("condition", "memory", "bytes_", "rows", "name", "words"),
    [
        (ej.equal("k"), LIMIT, 1000, None, "shj", "equality condition, inputs of up to about 1.0 kB fit into 1.0 MB"),
        (ej.equal("k"), LIMIT, None, None, "shj", "equality condition, input size unknown"),
        (ej.equal("k"), LIMIT, 10**9, None, "nested", "do not fit into 1.0 MB; it compares every pair of rows"),
        (ej.equal("k"), ROWS, None, 750, "shj", "750 input rows fit into 1,000 rows"),
        (ej.equal("k"), ROWS, None, 1001, "nested", "1,001 input rows do not fit into 1,000 rows"),
        (ej.equal("k"), ROWS, 10**9, None, "shj", "number of input rows unknown"),
        (ej.less("k"), LIMIT, 1000, None, "nested", "works for every condition, inputs of up to about 1.0 kB fit"),
    ],
)
@pytest.mark.usefixtures("only_two")
def test_auto(
    condition: ej.predicates.conjunction.Condition,
    memory: MemoryLimit,
    bytes_: int | None,
    rows: int | None,
    name: str,
    words: str,
) -> None:
    choice = choose(plan(condition), memory, bytes_, rows)
    assert choice.name == name
    assert words in choice.reason


@pytest.mark.usefixtures("only_two")
def test_auto_prefers_an_index_that_spills_to_the_nested_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    class Spilling(SymmetricHashJoin):
        description = Description(name="hashed", title="t", paper="p", needs=Capability.HASHABLE, spills=True)

    monkeypatch.setitem(registry._registered, "hashed", Spilling)
    assert choose(plan(ej.equal("k")), LIMIT, 10**9, None).name == "hashed"
    assert choose(plan(ej.equal("k")), LIMIT, None, None).name == "hashed", "unknown sizes may not fit"
    assert choose(plan(ej.equal("k")), LIMIT, 1000, None).name == "shj"


def test_auto_with_nothing_to_choose_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {"shj": SymmetricHashJoin})
    with pytest.raises(UnsupportedError, match=r"no algorithm can do a left join on left.k < right.k"):
        choose(plan(ej.less("k"), "left"), LIMIT, None, None)
    assert choose(plan(ej.equal("k")), LIMIT, 10**9, None).name == "shj"
