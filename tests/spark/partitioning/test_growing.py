"""Trees fit the data: even cells, matrices for hot values, classes for long intervals, one cell for little work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.predicates import bind
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.spark.bulk.cells import Classes, Hashed, Leaf, Ranges, Sample, Sizes, Space, assign, grow
from earlyjoin.spark.bulk.cells.driving import candidates
from earlyjoin.spark.bulk.cells.growing import Grown

RANDOM = np.random.default_rng(7)
ROWS = 20_000


def uniform(rows: int = ROWS) -> Any:
    return RANDOM.uniform(0, 1e6, rows)


def hot(share: float) -> Any:
    return np.where(RANDOM.random(ROWS) < share, 5e5, uniform())


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def grown(
    on: Condition, left: pa.RecordBatch, right: pa.RecordBatch, *, times: int = 100, whole: bool = False
) -> Grown:
    """From a sample of 2000 rows, for inputs so many times as large, and 6 cells wanted."""
    space = Space.of(bind(on, left.schema, right.schema), 0)
    reach = tuple(int(extent) for extent in space.homes(left).extents.max(axis=0, initial=0))
    sizes = Sizes(rows=(ROWS * times, ROWS * times), row_nbytes=(40, 40), cells=6, whole=whole)
    return grow(space, Sample.of(space, left.slice(0, 2000), right.slice(0, 2000), reach), sizes)


def salts(rows: Any, cell: int) -> Any:
    return rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(9)


def loads(on: Condition, found: Grown, left: pa.RecordBatch, right: pa.RecordBatch) -> Any:
    space = Space.of(bind(on, left.schema, right.schema), 0)
    here = assign(found.tree, space.homes(left, salts))[1]
    there = assign(found.tree, space.guests(right, salts))[1]
    return sum(np.bincount(cells, minlength=found.tree.cells) for cells in (here, there))


def test_a_uniform_band_has_even_ranges_and_hardly_any_copies() -> None:
    on, left, right = ej.band("x", eps=20.0), batch(x=uniform()), batch(x=uniform())
    found = grown(on, left, right)
    work = loads(on, found, left, right)
    assert isinstance(found.tree, Ranges)
    assert 6 <= found.tree.cells <= 20
    assert work.max() < 1.5 * work.mean()
    assert work.sum() < 1.02 * 2 * ROWS


@pytest.mark.parametrize("whole", [False, True])
def test_a_hot_value_is_split(whole: bool) -> None:
    on, left, right = ej.band("x", eps=20.0), batch(x=hot(0.3)), batch(x=hot(0.3))
    found = grown(on, left, right, whole=whole)
    assert found.tree.splits
    assert found.tree.whole or not whole
    space = Space.of(bind(on, left.schema, right.schema), 0)
    cells = assign(found.tree, space.homes(left, salts))
    crowd = np.unique(cells[1][np.isin(cells[0], np.flatnonzero(left.column("x").to_numpy() == 5e5))])
    assert len(crowd) >= 4


def test_little_work_is_one_cell() -> None:
    found = grown(ej.band("x", eps=20.0), batch(x=uniform()), batch(x=uniform()), times=1)
    assert found.tree == Leaf()


def test_few_long_intervals_are_a_class_of_their_own() -> None:
    starts = uniform()
    ends = starts + np.where(np.arange(ROWS) % 200 == 0, 4e5, 5.0)
    left, right = batch(s=starts, e=ends), batch(s=starts + 1, e=starts + 3)
    on = ej.overlaps(("s", "e"))
    found = grown(on, left, right)
    assert isinstance(found.tree, Classes)
    assert len(found.tree.children) == 2
    assert loads(on, found, left, right).sum() < 2.5 * 2 * ROWS


def test_a_plane_is_cut_along_an_axis_that_copies_little() -> None:
    x, y = uniform(), RANDOM.uniform(0, 100, ROWS)
    rows = batch(x=x, y=y, x2=x + 1, y2=y + 60)
    found = grown(ej.intersects(("x", "y", "x2", "y2")), rows, rows)
    assert isinstance(found.tree, Classes)
    assert isinstance(found.tree.children[0], Ranges)
    assert found.tree.children[0].axis == 0


def test_not_equal_is_a_matrix() -> None:
    found = grown(ej.not_equal("x"), batch(x=uniform()), batch(x=uniform()))
    assert isinstance(found.tree, Leaf)
    assert found.tree.rows > 1
    assert found.tree.columns > 1


def test_an_equality_is_hashed_and_few_keys_let_the_band_drive() -> None:
    many, few = (batch(k=RANDOM.integers(0, keys, ROWS), x=uniform()) for keys in (10**6, 5))
    on = ej.equal("k") & ej.band("x", eps=20.0)
    assert isinstance(grown(on, many, many).tree, Hashed)
    space = Space.of(bind(on, many.schema, many.schema), 0)
    sizes = Sizes(rows=(1e6, 1e6), row_nbytes=(40, 40), cells=6)
    for rows, driver in ((many, None), (few, 1)):
        sample = Sample.of(space, rows.slice(0, 2000), rows.slice(2000, 2000), space.no_reach)
        assert candidates(space, sample, sizes, 6).best == driver
