"""Conjunctions: flattening, merging equalities, who drives."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from earlyjoin.errors import InputError
from earlyjoin.predicates import (
    BoundBand,
    BoundEqual,
    BoundNear,
    Capability,
    Condition,
    Conjunction,
    Equal,
    Filter,
    band,
    bind,
    equal,
    intersects,
    less,
    near,
    not_equal,
    overlaps,
    where,
)

SCHEMA = pa.schema({"a": pa.int64(), "b": pa.int64(), "s": pa.string(), "x": pa.float64()})


def test_flattens_and_merges_equalities() -> None:
    rest = band("x", eps=1) & equal("b", null_safe=True)
    both = equal("a") & (less("a") & where(pc.field("a") > 1)) & rest & equal("a", "b")
    assert both.predicates == (
        Equal(("a", "b", "a"), ("a", "b", "b"), (False, True, False), ("a", "b")),
        less("a"),
        band("x", eps=1),
    )
    assert [str(f) for f in both.filters] == ["(a > 1)"]
    assert str(both) == (
        "left.a = right.a AND left.b <=> right.b AND left.a = right.b AND left.a < right.a"
        " AND |left.x - right.x| <= 1 AND (a > 1)"
    )


def test_bind_of_one_and_of_many() -> None:
    single = bind(equal("a"), SCHEMA, SCHEMA)
    assert single.shared == ("a",)
    assert single.text == "left.a = right.a"
    assert len(single.parts) == 1
    several = bind(less("a") & equal("s"), SCHEMA, SCHEMA)
    assert [part.text for part in several.parts] == ["left.a < right.a", "left.s = right.s"]
    assert several.shared == ("s",)
    assert bind(less("a"), SCHEMA, SCHEMA).shared == ()


def test_equality_drives_first() -> None:
    bound = bind(not_equal("b") & less("a") & near("x", eps=1) & band("x", eps=1) & equal("s"), SCHEMA, SCHEMA)
    cases = [
        (Capability.HASHABLE, "left.s = right.s"),
        (Capability.SORTABLE, "left.s = right.s"),
        (Capability.BANDED, "|left.x - right.x| <= 1"),
        (Capability.SWEEPABLE, "left.s = right.s"),
        (Capability.NONE, "left.s = right.s"),
        (Capability.SORTABLE | Capability.BANDED, "|left.x - right.x| <= 1"),
    ]
    for capability, text in cases:
        found = bound.driver(capability)
        assert found is not None
        driver, rest = found
        assert driver.text == text
        assert [part.text for part in rest] == [part.text for part in bound.parts if part is not driver]


def test_order_of_drivers() -> None:
    conditions: list[Condition] = [not_equal("a"), less("a"), near("x", eps=1), overlaps(("a", "b"))]
    expected = [
        "left.a <> right.a",
        "left.a < right.a",
        "distance((left.x), (right.x)) <= 1.0",
        "distance((left.x), (right.x)) <= 1.0",
    ]
    for count, text in enumerate(expected, start=1):
        found = Conjunction.of(*conditions[:count]).bind(SCHEMA, SCHEMA).driver(Capability.SWEEPABLE)
        assert found is not None
        assert found[0].text == text


def test_no_part_can_drive() -> None:
    assert bind(less("s"), SCHEMA, SCHEMA).driver(Capability.SORTABLE) is None
    assert bind(band("a", eps=1), SCHEMA, SCHEMA).driver(Capability.HASHABLE) is None


def test_only_filters() -> None:
    bound = bind(where(pc.field("a") > 1), SCHEMA, SCHEMA)
    assert bound.parts == ()
    assert len(bound.filters) == 1
    assert bound.driver(Capability.NONE) is None


def test_filter_combines_from_either_side() -> None:
    condition = where(pc.field("a") > 1)
    assert isinstance(condition, Filter)
    assert (condition & equal("a")).predicates == (equal("a"),)
    assert (condition & condition).filters == (condition, condition)


def test_what_is_no_condition() -> None:
    with pytest.raises(InputError, match="at least one condition"):
        Conjunction.of()
    with pytest.raises(InputError, match="expected a predicate such as"):
        Conjunction.of("a = b")  # type: ignore[arg-type]


def test_pickles() -> None:
    rectangle = intersects(("x", "x", "x", "x"))
    condition = equal("a") & band("x", eps="0.5") & near("x", eps=1) & less("s") & rectangle & where(pc.field("a") > 1)
    again = pickle.loads(pickle.dumps(condition))
    assert again == condition
    bound = pickle.loads(pickle.dumps(bind(condition, SCHEMA, SCHEMA)))
    assert bound == bind(condition, SCHEMA, SCHEMA)
    assert {BoundEqual, BoundBand, BoundNear} <= {type(part) for part in bound.parts}
