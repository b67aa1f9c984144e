"""Conditions with OR, and conditions on one input alone, give what DuckDB gives for the same ``ON``: with nulls."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import earlyjoin as ej
from earlyjoin.errors import InputError
from earlyjoin.predicates.conjunction import Condition

HOWS = ("inner", "left", "right", "full", "semi", "anti")
ROWS = 120


def table(name: str, rows: int, seed: int) -> pa.Table:
    """Few values in every column, many of them null; half of the rows have one key."""
    rng = np.random.default_rng(seed)

    def drawn(values: list[Any], type_: pa.DataType) -> pa.Array:
        return pa.array([values[i] for i in rng.integers(0, len(values), rows)], type_)

    return pa.table(
        {
            f"{name}id": pa.array(range(rows)),
            "k": drawn([0, 0, 0, 1, 2, 3, None], pa.int64()),
            "c": drawn(["x", "y", "y", "", None], pa.string()),
            name: drawn([-1.5, 0.0, 2.0, float("nan"), None], pa.float64()),
            f"{name}n": drawn([1, 2, 3, 4, None], pa.int32()),
            f"{name}day": drawn([dt.date(2024, 2, 28), dt.date(2024, 3, 1), None], pa.date32()),
            f"{name}w": drawn([True, False, None], pa.bool_()),
        }
    )


LEFT, RIGHT = table("a", ROWS, 1), table("b", 70, 2)

CONDITIONS: dict[str, tuple[Condition, str]] = {
    "or of columns": (
        ej.equal("k", "k") & (ej.less("a", "b") | ej.equal("c", "c")),
        "l.k = r.k AND (l.a < r.b OR l.c = r.c)",
    ),
    "or at the top": (ej.less("an", "bn") | ej.equal("c", "c"), "l.an < r.bn OR l.c = r.c"),
    "and inside or": (
        ej.band("k", "k", eps=1) & (ej.equal("c", "c") & ej.less("a", "b") | ej.not_equal("an", "bn")),
        "abs(l.k - r.k) <= 1 AND (l.c = r.c AND l.a < r.b OR l.an <> r.bn)",
    ),
    "or inside and inside or": (
        ej.equal("k", "k") & (ej.equal("c", "c") & (ej.less("a", "b") | ej.where("an = 3")) | ej.where("bn = 1")),
        "l.k = r.k AND (l.c = r.c AND (l.a < r.b OR l.an = 3) OR r.bn = 1)",
    ),
    "or of an expression": (
        ej.equal("k", "k") & (ej.where(pc.field("a") > pc.field("bn")) | ej.where("right.c = 'y'")),
        # pyarrow's expressions have no NaN that is larger than numbers
        "l.k = r.k AND (CASE WHEN isnan(l.a) THEN false ELSE l.a > r.bn END OR r.c = 'y')",
    ),
    "left constant": (ej.equal("k", "k") & ej.where("left.k >= 1"), "l.k = r.k AND l.k >= 1"),
    "right constant": (ej.equal("k", "k") & ej.where("b < 1.5"), "l.k = r.k AND r.b < 1.5"),
    "NaN is large": (ej.equal("k", "k") & ej.where("a > 1e300"), "l.k = r.k AND l.a > 1e300"),
    "text": (ej.equal("k", "k") & ej.where("left.c <> 'y'"), "l.k = r.k AND l.c <> 'y'"),
    "date": (ej.equal("k", "k") & ej.where("bday > '2024-02-29'"), "l.k = r.k AND r.bday > DATE '2024-02-29'"),
    "moment beside dates": (
        ej.equal("k", "k") & ej.where("aday < '2024-02-28 12:00:00'"),
        "l.k = r.k AND l.aday < TIMESTAMP '2024-02-28 12:00:00'",
    ),
    "boolean": (ej.equal("k", "k") & ej.where("aw = 'true'"), "l.k = r.k AND l.aw = true"),
    "a number between integers": (ej.equal("k", "k") & ej.where("2.5 > an"), "l.k = r.k AND 2.5 > l.an"),
    "two columns of one side": (ej.equal("k", "k") & ej.where("left.k < left.an"), "l.k = r.k AND l.k < l.an"),
    "one side alone": (ej.where("an = 2"), "l.an = 2"),
    "an expression on the left": (ej.equal("k", "k") & ej.where(pc.field("an") == 2), "l.k = r.k AND l.an = 2"),
    "an expression on the right": (ej.equal("k", "k") & ej.where(pc.field("bn") > 2), "l.k = r.k AND r.bn > 2"),
    "text with and and or": (
        ej.where("left.k = right.k and an < bn or c = c and b > -1"),
        "l.k = r.k AND l.an < r.bn OR l.c = r.c AND r.b > -1",
    ),
}


def duckdb_rows(how: str, condition: str) -> list[tuple[object, ...]]:
    columns = "l.aid" if how in ("semi", "anti") else "l.aid, r.bid"
    with duckdb.connect() as connection:
        connection.register("l", LEFT)
        connection.register("r", RIGHT)
        found = connection.sql(f"SELECT {columns} FROM l {how} JOIN r ON {condition}").fetchall()
    return sorted(found, key=repr)


def our_rows(query: ej.Query) -> list[tuple[object, ...]]:
    found = query.to_arrow()
    names = [name for name in ("aid", "bid") if name in found.column_names]
    return sorted((tuple(row.values()) for row in found.select(names).to_pylist()), key=repr)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", CONDITIONS)
def test_same_as_duckdb(name: str, how: str) -> None:
    condition, sql = CONDITIONS[name]
    expected = duckdb_rows(how, sql)
    assert our_rows(ej.join(LEFT, RIGHT, on=condition, how=how)) == expected
    if how == "full":
        assert our_rows(ej.join(LEFT, RIGHT, on=condition, how=how, memory="50rows", algorithm="nested")) == expected


@pytest.mark.parametrize("how", ["left", "full", "anti"])
@pytest.mark.parametrize("algorithm", [name for name in ej.algorithm_names() if name not in ("shj", "nested")])
def test_every_algorithm_filters_matches_and_not_rows(algorithm: str, how: str) -> None:
    for name in ("or of columns", "left constant", "an expression on the left"):
        condition, sql = CONDITIONS[name]
        query = ej.join(LEFT, RIGHT, on=condition, how=how, memory="80rows", algorithm=algorithm)
        assert our_rows(query) == duckdb_rows(how, sql), name


def test_where_is_part_of_the_condition() -> None:
    """The kept side of an outer join keeps its rows: SQL's ON, not SQL's WHERE."""
    query = ej.join(LEFT, RIGHT, on=[("k", "k")], where=["an < 3", pc.field("bn") > 1], how="left")
    assert our_rows(query) == duckdb_rows("left", "l.k = r.k AND l.an < 3 AND r.bn > 1")
    alone = ej.join(LEFT, RIGHT, where="an < bn", how="full")
    assert our_rows(alone) == duckdb_rows("full", "l.an < r.bn")
    with pytest.raises(InputError, match="where takes a"):
        ej.join(LEFT, RIGHT, on="k", where=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["or inside and inside or", "date", "text with and and or", "or of an expression"])
def test_a_paused_query_knows_such_conditions(name: str, tmp_path: Path) -> None:
    condition, sql = CONDITIONS[name]
    query = ej.join(LEFT, RIGHT, on=condition, how="full", algorithm="nested", batch_rows=100)
    taken = [next(iter(query)) for _ in range(2)]
    query.pause(tmp_path / "state")
    rest = ej.resume(tmp_path / "state", left=LEFT, right=RIGHT)
    assert str(rest.condition) == str(query.condition)
    found = pa.Table.from_batches([*taken, *rest], schema=query.schema).select(["aid", "bid"])
    assert sorted((tuple(row.values()) for row in found.to_pylist()), key=repr) == duckdb_rows("full", sql)


def test_many_columns_and_no_rows() -> None:
    wide = pa.table({"k": [1, 2, None], **{f"c{n}": [n, None, 1] for n in range(200)}})
    condition = ej.equal("k") & (ej.less("c7", "c8") | ej.where("left.c199 = 1"))
    assert ej.join(wide, wide, on=condition).to_arrow()["k"].to_pylist() == [1]
    for left, right in ((wide.slice(0, 0), wide), (wide, wide.slice(0, 0))):
        assert len(ej.join(left, right, on=condition, how="full").to_arrow()) == 3


def test_and_or_of_python_is_refused() -> None:
    for combine in (lambda: ej.equal("k") and ej.less("an", "bn"), lambda: ej.equal("k") or ej.where("an = 1")):
        with pytest.raises(InputError, match=r"combine conditions with & and \|"):
            combine()
