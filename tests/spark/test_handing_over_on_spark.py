"""A query on Spark as others take it, what it says about itself, cross joins, OR, conditions on one side."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import earlyjoin as ej
from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.spark import execution, jobs
from spark.tables import multiset

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

LEFT = (
    "SELECT * FROM VALUES (1, 'a', 1.5D, DATE '2024-02-28'), (2, 'b', double('NaN'), null), (2, null, null, "
    "DATE '2024-03-01'), (null, 'd', 0D, DATE '2024-03-02') AS t(k, s, x, day)"
)
RIGHT = "SELECT * FROM VALUES (2, 'b', 3D), (2, 'q', 1D), (3, 'b', null), (null, 'z', 2D) AS t(k, s, y)"


@pytest.fixture(scope="module")
def frames(spark: Any) -> tuple[Any, Any]:
    return spark.sql(LEFT), spark.sql(RIGHT)


def test_others_take_a_query_as_it_is(frames: tuple[Any, Any]) -> None:
    expected = ej.join(*frames, on="k").to_arrow()
    assert len(expected) == 4
    assert multiset(pa.table(ej.join(*frames, on="k"))) == multiset(expected)
    assert len(duckdb.from_arrow(ej.join(*frames, on="k")).fetchall()) == 4
    assert isinstance(ej.join(*frames, on="k").to_pandas(), pd.DataFrame)
    query = ej.join(*frames, on="k")
    assert isinstance(query.to_polars(), pl.DataFrame)
    for again in (query.__arrow_c_stream__, query.to_pandas, lambda: query.head(1), lambda: list(query.limited(2))):
        with pytest.raises(InputError, match="given out already"):
            again()


def test_repr_asks_spark_nothing(frames: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    query = ej.join(*frames, on="k", how="outer")

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark was asked")

    with monkeypatch.context() as patch:
        for name in ("look", "explained", "positional", "choose_bulk"):
            patch.setattr(execution, name, refused)
        patch.setattr(jobs.Jobs, "tagged", refused)
        text = repr(query)
        assert "left.k = right.k" in query._repr_html_()
    assert text.startswith("<earlyjoin.Query full join on left.k = right.k; spark: chosen when rows are asked for; new")
    query.to_arrow()
    assert repr(query).endswith("spark: Spark's own join; finished, 8 rows>")


def test_a_cross_join_is_that_of_spark(frames: tuple[Any, Any]) -> None:
    left, right = frames
    query = ej.join(left, right, how="cross")
    assert "Spark's own cross join" in query.explain()
    renamed = right.toDF("k_right", "s_right", "y")
    assert multiset(query.to_arrow()) == multiset(left.crossJoin(renamed).toArrow())
    assert len(ej.join(left, right, how="cross").head(3)) == 3
    assert ej.join(left, right, how="cross").to_df().count() == 16
    with pytest.raises(InputError, match="has no condition, but there is one"):
        ej.join(left, right, on="k", how="cross")


CONDITIONS = {
    "l.k = r.k AND (l.s = r.s OR l.x < r.y)": ej.equal("k", "k") & (ej.equal("s", "s") | ej.less("x", "y")),
    "l.s = r.s OR l.k = r.k AND l.x > 1": ej.equal("s", "s") | ej.equal("k", "k") & ej.where("x > 1"),
    "l.k = r.k AND l.x >= 1.5": ej.equal("K", "k") & ej.where("left.X >= 1.5"),
    "l.k = r.k AND r.s <> 'q' AND l.day > DATE '2024-02-29'": ej.where(
        "left.k = right.k and right.s <> 'q' and DAY > '2024-02-29'"
    ),
    "l.k = r.k AND l.day < TIMESTAMP '2024-03-01 00:00:01'": ej.equal("k", "k")
    & ej.where("day < '2024-03-01 00:00:01'"),
    "l.s = r.s AND l.k < l.x": ej.equal("s", "s") & ej.where("left.k < left.x"),
}


@pytest.mark.parametrize("how", ["inner", "left", "full", "anti"])
@pytest.mark.parametrize("sql", CONDITIONS)
def test_or_and_conditions_on_one_side(frames: tuple[Any, Any], sql: str, how: str) -> None:
    left, right = frames
    condition = CONDITIONS[sql]
    columns = "l.*" if how == "anti" else "l.*, r.k AS k_right, r.s AS s_right, r.y"
    query = f"SELECT {columns} FROM {{l}} l {how} JOIN {{r}} r ON {sql}"
    expected = left.sparkSession.sql(query, l=left, r=right).toArrow()
    assert multiset(ej.join(left, right, on=condition, how=how).to_arrow()) == multiset(expected)
    if "K" not in str(condition) and "DAY" not in str(condition):  # the local engine has no names in any case
        here = ej.join(left.toArrow(), right.toArrow(), on=condition, how=how).to_arrow()
        assert multiset(here) == multiset(expected)


def test_expressions_are_refused_with_what_to_write(frames: tuple[Any, Any]) -> None:
    with pytest.raises(UnsupportedError, match=r"Arrow expression.*write it as a text.*to_df\(\)\.where"):
        ej.join(*frames, on=ej.equal("k") & (ej.where(pc.field("x") > 1) | ej.equal("s")))
