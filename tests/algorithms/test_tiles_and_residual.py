"""The walk over all pairs, and the rest of a condition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import earlyjoin as ej
from earlyjoin.algorithms.matching.residual import Residual
from earlyjoin.algorithms.nested_loop.tiles import Tiles
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.state.rows.store import BatchRows


@given(rows_i=st.integers(0, 30), rows_j=st.integers(0, 30), most=st.integers(1, 70))
def test_every_pair_once_in_bounded_tiles(rows_i: int, rows_j: int, most: int) -> None:
    tiles, pairs, count = Tiles(), [], 0
    while (tile := Tiles(tiles.i, tiles.j)) and (found := tiles.next(rows_i, rows_j, most)) is not None:
        i, j = found
        assert 0 < len(i) == len(j) <= most
        assert i.dtype == j.dtype == np.int64
        # A walk that goes on elsewhere from the same place gives the same.
        again = tile.next(rows_i, rows_j, most)
        assert again is not None
        assert np.array_equal(again[0], i)
        pairs += zip(i.tolist(), j.tolist(), strict=True)
        count += 1
    assert sorted(pairs) == [(i, j) for i in range(rows_i) for j in range(rows_j)]
    assert tiles.next(rows_i, rows_j, most) is None
    # No more tiles than the bound asks for: full rows together, or one row in pieces.
    if rows_i and rows_j:
        assert count <= -(-rows_j // most) * rows_i if rows_j > most else count <= -(-rows_i // max(1, most // rows_j))


SCHEMA = pa.schema([("k", pa.int64()), ("id", pa.int64()), ("t", pa.int64()), ("s", pa.string())])


def sides() -> tuple[BatchRows, BatchRows]:
    left = {"k": [1] * 6, "id": [0, 1, 2, 3, 4, None], "t": [0, 5, 9, None, 1, 1], "s": list("abcdef")}
    right = {"k": [1] * 6, "id": [3, 1, None, 0, 9, 9], "t": [0, 6, 9, 9, None, 0], "s": list("abzdyx")}
    return tuple(BatchRows(pa.RecordBatch.from_pydict(d, schema=SCHEMA)) for d in (left, right))  # type: ignore[return-value]


ALL = np.indices((6, 6)).reshape(2, -1)


def holds(condition: Any, expected: Any, how: str = "inner") -> None:
    plan = make_plan(condition, SCHEMA, SCHEMA, how=how)
    found = plan.condition.driver(ej.predicates.base.Capability.HASHABLE)
    rest = found[1] if found is not None else plan.condition.parts
    left, right = sides()
    residual = Residual(plan, rest)
    i, j = residual.passing((left, right), ALL[0].copy(), ALL[1].copy())
    rows = left.batch.to_pylist(), right.batch.to_pylist()
    wanted = [(a, b) for a in range(6) for b in range(6) if expected(rows[0][a], rows[1][b])]
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == wanted
    assert wanted == [] or not residual.empty


def known(*values: Any) -> bool:
    return all(value is not None for value in values)


@pytest.mark.parametrize("how", ["inner", "left", "full", "semi", "anti"])
def test_filters_tell_clashing_names_apart(how: str) -> None:
    equal = ej.equal("k")
    less = ej.where(pc.field("id") < pc.field("id_right"))
    holds(equal & less, lambda a, b: known(a["id"], b["id"]) and a["id"] < b["id"], how)
    only_right = ej.where(pc.field("s_right") == "z")
    holds(equal & only_right, lambda _, b: b["s"] == "z", how)
    holds(equal & ej.where(pc.field("s") == "a"), lambda a, _: a["s"] == "a", how)
    both = lambda a, b: known(a["id"], b["id"]) and a["id"] < b["id"] and b["s"] == "z"  # noqa: E731
    holds(equal & less & only_right, both, how)


def test_predicates_and_filters_together() -> None:
    condition = ej.equal("k") & ej.band("t", eps=1) & ej.not_equal("s") & ej.where(pc.field("id_right") >= 1)
    holds(
        condition,
        lambda a, b: known(a["t"], b["t"], b["id"]) and abs(a["t"] - b["t"]) <= 1 and a["s"] != b["s"] and b["id"] >= 1,
    )
    holds(ej.less("id", "t"), lambda a, b: known(a["id"], b["t"]) and a["id"] < b["t"])


def test_a_filter_that_reads_no_column() -> None:
    holds(ej.equal("k") & ej.where(pc.scalar(True)), lambda *_: True)
    holds(ej.equal("k") & ej.where(pc.scalar(False)), lambda *_: False)


def test_a_filter_on_the_shared_key() -> None:
    holds(ej.equal("k") & ej.where(pc.field("k") == 1), lambda *_: True)
    holds(ej.equal("k", "k") & ej.where(pc.field("k_right") == pc.field("k")), lambda *_: True)


def test_nothing_to_check() -> None:
    plan = make_plan(ej.equal("k"), SCHEMA, SCHEMA)
    residual = Residual(plan, ())
    assert residual.empty
    i, j = residual.passing(sides(), ALL[0], ALL[1])
    assert i is ALL[0] or np.array_equal(i, ALL[0])
    assert np.array_equal(j, ALL[1])
