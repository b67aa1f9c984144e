"""Exact counts on the real data in the directory that EARLYJOIN_DATA names; skipped where there is none."""

from __future__ import annotations

import numpy as np
import pytest

import earlyjoin.predicates as predicates
from sweep import speed

pytestmark = pytest.mark.skipif(
    not speed.DATA.exists(), reason="EARLYJOIN_DATA does not name a directory with the real data sets"
)


def test_flights_from_two_airports_that_are_in_the_air_together() -> None:
    condition = predicates.overlaps(("start", "end"), closed=False)
    assert speed.count_sweep(condition, *speed.flights()) == 10_243_337


def test_roads_that_meet_water() -> None:
    condition = predicates.intersects(("xmin", "ymin", "xmax", "ymax"))
    assert speed.count_sweep(condition, *speed.rectangles()) == 18_000


def test_roads_that_meet_roads() -> None:
    condition = predicates.intersects(("xmin", "ymin", "xmax", "ymax"))
    roads = speed.rectangles()[0]
    assert speed.count_sweep(condition, roads, roads) == 1_242_290


def test_buys_and_sells_within_five_cents() -> None:
    assert speed.count_sweep(predicates.band("price", eps=499), *speed.trades()) == 70_013_625


def test_buys_and_sells_at_one_price() -> None:
    assert speed.count_sweep(predicates.equal("price"), *speed.trades()) == 8_056_431


@pytest.mark.parametrize("eps", [0.0, 1.5, 3.0])
def test_letters_that_look_alike(eps: float) -> None:
    table = speed.letters()
    points = np.stack([column.to_numpy() for column in table.columns], axis=1).astype(np.float64)
    some = np.arange(0, len(points), 20)
    expected = sum(np.count_nonzero(((points - points[row]) ** 2).sum(axis=1) <= eps * eps) for row in some)
    assert speed.count_sweep(predicates.near(table.column_names, eps=eps), table.take(some), table) == expected
