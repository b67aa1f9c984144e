"""Every pair that matches meets in exactly one cell, whatever the data and the tree."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import earlyjoin as ej
from conformance.conditions import KINDS, Kind
from earlyjoin.errors import EarlyJoinError
from earlyjoin.predicates import bind
from earlyjoin.predicates.conjunction import BoundConjunction
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.spark.bulk.cells import Classes, Hashed, Leaf, Node, Ranges, Sample, Sizes, Space, assign, grow

NEVER: Callable[[Any, Any], bool] = lambda a, b: False  # noqa: E731 - what holds is asked of the bound predicates
ENDS = st.none() | st.sampled_from([0.0, 0.5, 2.0, math.inf, math.nan])
CLOSE = st.none() | st.sampled_from([0.1, 0.2, 0.30000000000000004, 0.4, -1.0, math.inf])
ALIKE = st.none() | st.sampled_from(["", "a", "abcdefgh", "abcdefghi", "b"])
SMALL = st.none() | st.integers(-5, 5)
MORE = [
    Kind(
        "overlaps_open",
        ej.overlaps(("k", "t"), closed=False),
        NEVER,
        {"k": (pa.int64(), SMALL), "t": (pa.float64(), ENDS)},
    ),
    Kind("band_float", ej.band("f", eps=0.1), NEVER, {"f": (pa.float64(), CLOSE)}),
    Kind("less_string", ej.less("s"), NEVER, {"s": (pa.string(), ALIKE)}),
    Kind("band_and_less", ej.band("k", eps=2) & ej.less("t"), NEVER, {name: (pa.int64(), SMALL) for name in "kt"}),
]


def salts(rows: Int64, cell: int) -> Any:
    return (rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(cell)) >> np.uint64(7)


def batch(kind: Kind, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    schema = pa.schema([pa.field(name, type_) for name, (type_, _) in kind.columns.items()])
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def matching(condition: BoundConjunction, left: pa.RecordBatch, right: pa.RecordBatch) -> set[tuple[int, int]]:
    """All pairs for which all predicates hold."""
    i, j = (a.ravel() for a in np.meshgrid(np.arange(len(left)), np.arange(len(right)), indexing="ij"))
    holds = np.ones(len(i), dtype=np.bool_)
    for part in condition.parts:
        holds &= part.holds(part.encode(0, left), i, part.encode(1, right), j)
    return set(zip(i[holds].tolist(), j[holds].tolist(), strict=True))


def meetings(space: Space, tree: Node, homes: pa.RecordBatch, guests: pa.RecordBatch) -> dict[tuple[int, int], int]:
    """How many cells each pair (home, guest) has in common."""
    result: dict[tuple[int, int], int] = {}
    here, there = assign(tree, space.homes(homes, salts)), assign(tree, space.guests(guests, salts))
    for placed in (here, there):
        assert len(set(zip(*map(np.ndarray.tolist, placed), strict=True))) == len(placed[0]), "a row is in a cell twice"
        assert len(placed[1]) == 0 or (placed[1].min() >= 0 and placed[1].max() < tree.cells)
        assert (np.diff(placed[1]) >= 0).all()
    for h, cell in zip(*here, strict=True):
        for g in there[0][there[1] == cell]:
            result[int(h), int(g)] = result.get((int(h), int(g)), 0) + 1
    return result


@st.composite
def trees(draw: st.DrawFn, space: Space, homes: pa.RecordBatch, depth: int = 3) -> Node:
    """Any tree: splitters are values that occur, and values beside them."""
    kinds = ["leaf"]
    if depth and len(homes):
        kinds += ["ranges"] * (2 if space.places else 0) + (["hashed"] if space.equality is not None else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "leaf":
        return Leaf(draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    some: Callable[[], Node] = lambda: draw(trees(space, homes, depth - 1))  # noqa: E731
    if kind == "hashed":
        return Hashed(tuple(some() for _ in range(draw(st.integers(2, 4)))))
    axis = draw(st.integers(0, len(space.places) - 1))
    points = space.homes(homes).points(axis)
    places = np.unique(points[draw(st.lists(st.integers(0, len(points) - 1), min_size=1, max_size=3))])
    beside = np.nextafter(places, np.inf) if places.dtype == np.float64 else places + draw(st.integers(-1, 1))
    splitters = np.unique(beside[~np.isnan(beside)] if draw(st.booleans()) else places[~np.isnan(places)])
    return Ranges(axis, splitters, tuple(some() for _ in range(len(splitters) + 1)))


def with_classes(draw: st.DrawFn, space: Space, homes: pa.RecordBatch) -> Node:
    extents = space.homes(homes).extents
    if not extents.size or not any(axis.has_extent for _, axis in space.places):
        return draw(trees(space, homes))
    most = tuple(int(extent) for extent in extents.max(axis=0))
    short = tuple(int(extent) for extent in extents[draw(st.integers(0, len(extents) - 1))])
    reaches = (most,) if draw(st.booleans()) else (short, most)
    return Classes(reaches, tuple(draw(trees(space, homes)) for _ in reaches))


@pytest.mark.parametrize("home", [0, 1])
@pytest.mark.parametrize("kind", KINDS + MORE, ids=lambda kind: kind.name)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_matching_pair_meets_in_exactly_one_cell(kind: Kind, home: int, data: st.DataObject) -> None:
    rows = st.lists(st.fixed_dictionaries({name: values for name, (_, values) in kind.columns.items()}), max_size=14)
    sides = [batch(kind, data.draw(rows)) for _ in range(2)]
    condition = bind(kind.condition, sides[0].schema, sides[1].schema)
    space = Space.of(condition, home)
    tree = with_classes(data.draw, space, sides[home])
    met = meetings(space, tree, sides[home], sides[1 - home])
    assert set(met.values()) <= {1}
    for left, right in matching(condition, *sides):
        pair = (left, right) if home == 0 else (right, left)
        assert pair in met


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("kind", KINDS + MORE, ids=lambda kind: kind.name)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_grown_trees_keep_every_pair_too(kind: Kind, whole: bool, data: st.DataObject) -> None:
    rows = st.lists(
        st.fixed_dictionaries({name: values for name, (_, values) in kind.columns.items()}), min_size=5, max_size=30
    )
    sides = [batch(kind, data.draw(rows)) for _ in range(2)]
    condition = bind(kind.condition, sides[0].schema, sides[1].schema)
    space = Space.of(condition, 0)
    extents = space.homes(sides[0]).extents
    reach = tuple(int(extent) for extent in extents.max(axis=0))
    some = [side.slice(0, 1 + len(side) // 2) for side in sides]
    sizes = Sizes(rows=(1e4, 2e4), row_nbytes=(50, 50), cells=6, least_nbytes=1e3, memory_nbytes=1e5, whole=whole)
    grown = grow(space, Sample.of(space, some[0], some[1], reach), sizes)
    met = meetings(space, grown.tree, *sides)
    assert set(met.values()) <= {1}
    assert matching(condition, *sides) <= set(met)
    if whole:
        assert grown.tree.whole
        numbers, _ = assign(grown.tree, space.homes(sides[0], salts), keep_unmatchable=True)
        assert sorted(numbers.tolist()) == list(range(len(sides[0])))


def test_a_row_that_reaches_further_than_all_that_were_surveyed_is_an_error() -> None:
    schema = pa.schema([("k", pa.int64()), ("t", pa.int64())])
    condition = bind(ej.overlaps(("k", "t")), schema, schema)
    space = Space.of(condition, 0)
    tree = Classes(((5,),), (Leaf(),))
    fits, longer = ({"k": [0], "t": [end]} for end in (5, 6))
    assert len(assign(tree, space.homes(pa.RecordBatch.from_pydict(fits, schema=schema)))[0]) == 1
    with pytest.raises(EarlyJoinError, match="write it to a table"):
        assign(tree, space.homes(pa.RecordBatch.from_pydict(longer, schema=schema)))


def test_boxes_of_intervals_stop_at_the_ends_of_the_range() -> None:
    schema = pa.schema([("k", pa.int64()), ("t", pa.int64())])
    space = Space.of(bind(ej.overlaps(("k", "t")), schema, schema), 0)
    guests = space.guests(pa.RecordBatch.from_pydict({"k": [-(2**63), -(2**63) + 3, 0], "t": [1, 2, 3]}, schema=schema))
    low, high = guests.box(0, (5,))
    assert low.tolist() == [-(2**63), -(2**63), -5]
    assert high.tolist() == [1, 2, 3]
    assert guests.box(0, (2**64 - 1,))[0].tolist() == [-(2**63)] * 3
