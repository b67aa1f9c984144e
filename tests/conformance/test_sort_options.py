"""The sort family with its options drawn at random: the invariants hold for all of them."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.conditions import KINDS, Kind
from conformance.scenario import able, check, check_moved, examples, scenarios
from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.merge_join.settings import SortOptions

CASES = [pytest.param(kind, id=kind.name) for kind in KINDS if "pmj" in able(kind)]
choices = st.builds(
    SortOptions,
    fan_in=st.sampled_from([2, 3, 10]),
    split=st.sampled_from([None, 0.1, 0.3, 0.8]),
    replacement_selection=st.booleans(),
)


@pytest.mark.parametrize("kind", CASES)
@given(data=st.data())
@examples(6)
def test_same_rows_as_the_nested_loop(kind: Kind, data: st.DataObject) -> None:
    scenario, options = data.draw(scenarios(kind, spills=True)), data.draw(choices, label="options")
    check(data.draw(st.sampled_from(["pmj", "pmj", "pmj", "smj", "smj-semi"])), kind, scenario, options)


@pytest.mark.parametrize("kind", CASES)
@given(data=st.data())
@examples(2)
def test_snapshot_and_restore_at_any_step(kind: Kind, data: st.DataObject) -> None:
    scenario, options = data.draw(scenarios(kind, spills=True)), data.draw(choices, label="options")
    moves = data.draw(st.sets(st.integers(0, 80), max_size=3), label="snapshot after these steps")
    check_moved("pmj", kind, scenario, moves, options)


@pytest.mark.parametrize("name", ["equal", "equal_float", "equal_and_where", "band"])
@given(data=st.data())
@examples(6)
def test_sorted_output_at_any_budget_and_with_snapshots(name: str, data: st.DataObject) -> None:
    kind = next(kind for kind in KINDS if kind.name == name)
    scenario = replace(data.draw(scenarios(kind, spills=True)), how=JoinType.INNER)
    options = replace(data.draw(choices, label="options"), sorted_output=True)
    moves = data.draw(st.sets(st.integers(0, 80), max_size=2), label="snapshot after these steps")
    output = check_moved("pmj", kind, scenario, moves, options)
    key = next(iter(kind.columns))
    keys = pa.array([row[key] for row in output], kind.columns[key][0])
    assert keys.take(pc.sort_indices(keys)).equals(keys) or _same_values(keys)


def _same_values(keys: pa.Array) -> bool:
    """In order where 0.0 equals -0.0 and a NaN is the largest."""
    values = [math.inf if math.isnan(key) else key for key in keys.to_pylist()]
    return values == sorted(values)
