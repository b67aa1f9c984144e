"""Exact counts on the real data in the directory that EARLYJOIN_DATA names; skipped where there is none."""

from __future__ import annotations

import numpy as np
import pytest

import earlyjoin.predicates as predicates
from sweep import real_data

pytestmark = pytest.mark.skipif(
    not real_data.DATA.exists(), reason="EARLYJOIN_DATA does not name a directory with the real data sets"
)


MEETS = predicates.intersects(("xmin", "ymin", "xmax", "ymax"))
CASES = {
    "flights in the air together": (
        predicates.overlaps(("start", "end"), closed=False),
        real_data.flights,
        10_243_337,
    ),
    "roads that meet water": (MEETS, real_data.rectangles, 18_000),
    "roads that meet roads": (MEETS, lambda: (real_data.rectangles()[0],) * 2, 1_242_290),
    "buys and sells within five cents": (predicates.band("price", eps=499), real_data.trades, 70_013_625),
    "buys and sells at one price": (predicates.equal("price"), real_data.trades, 8_056_431),
}


@pytest.mark.parametrize("name", CASES)
def test_sweeps_count_exactly(name: str) -> None:
    condition, tables, expected = CASES[name]
    assert real_data.count_sweep(condition, *tables()) == expected


@pytest.mark.parametrize("memory", ["16MB", "1GB"])
@pytest.mark.parametrize("name", CASES)
def test_progressive_merge_join_counts_exactly_with_and_without_spilling(name: str, memory: str) -> None:
    condition, tables, expected = CASES[name]
    assert real_data.count_join(condition, *tables(), memory) == expected


@pytest.mark.parametrize("eps", [0.0, 1.5, 3.0])
def test_letters_that_look_alike(eps: float) -> None:
    table = real_data.letters()
    points = np.stack([column.to_numpy() for column in table.columns], axis=1).astype(np.float64)
    some = np.arange(0, len(points), 20)
    expected = sum(np.count_nonzero(((points - points[row]) ** 2).sum(axis=1) <= eps * eps) for row in some)
    condition = predicates.near(table.column_names, eps=eps)
    assert real_data.count_sweep(condition, table.take(some), table) == expected
    assert real_data.count_join(condition, table.take(some), table, "4MB") == expected
