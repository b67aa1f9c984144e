"""Joins in the words that Spark's users know: join types, names in any case, options, nested keys."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import earlyjoin as ej
from earlyjoin.cli.main import main
from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates import equal
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.query import SparkQuery

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

CASE = "spark.sql.caseSensitive"


def rows(frame: Any) -> Counter[str]:
    """The rows of a DataFrame, whatever their order."""
    return Counter(repr(tuple(row)) for row in frame.collect())


def taken(query: Any) -> Counter[str]:
    """The rows that a query gives out."""
    return Counter(repr(tuple(row.values())) for row in query.to_arrow().to_pylist())


@pytest.fixture(scope="module")
def left(spark: Any) -> Any:
    return spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b'), (2, 'c'), (null, 'd') AS t(k, id)")


@pytest.fixture(scope="module")
def right(spark: Any) -> Any:
    return spark.sql("SELECT * FROM VALUES (2, 'x'), (3, 'y'), (null, 'z') AS t(K, ID)")


@pytest.mark.parametrize("how", ["INNER", "left_outer", "rightouter", "outer", "Full_Outer", "left_semi", "leftanti"])
def test_join_types_as_spark_spells_them(left: Any, right: Any, how: str) -> None:
    other = right.toDF("k", "other")
    assert taken(ej.join(left, other, on="k", how=how)) == rows(left.join(other, "k", how.lower()))


def test_unknown_join_types(left: Any, right: Any) -> None:
    with pytest.raises(InputError, match=r"unknown join type 'sideways'; choose one of: inner, left \(left_outer\)"):
        ej.join(left, right, on="k", how="sideways")
    with pytest.raises(InputError, match=r"how='cross' .* has no condition"):
        ej.join(left, right, on="k", how="cross")


@pytest.mark.parametrize("how", ["inner", "full", "right", "semi"])
def test_names_in_any_case(left: Any, right: Any, how: str) -> None:
    query = ej.join(left, right.withColumnRenamed("ID", "other"), on="K", how=how)
    expected = left.join(right.withColumnRenamed("ID", "other"), "K", how)
    assert query.schema.names == expected.columns
    assert taken(query) == rows(expected)


def test_names_in_any_case_in_predicates(left: Any, right: Any) -> None:
    on = ej.equal("K") & ej.less("ID", "id")
    expected = left.join(right, (left.k == right.K) & (left.id < right.ID)).select(left.k, left.id, right.ID)
    assert taken(ej.join(left, right, on=on)) == rows(expected)
    banded = ej.join(left, right, on=ej.band("K", "k", eps=1)).to_df()
    assert banded.count() == left.join(right, (left.k - right.K).between(-1, 1)).count()


def test_case_matters_where_spark_says_so(spark: Any, left: Any, right: Any) -> None:
    spark.conf.set(CASE, "true")
    try:
        with pytest.raises(InputError, match="column 'k' is not in the right input"):
            ej.join(left, right, on="k")
        assert ej.join(left, right, on=[("k", "K")]).schema.names == ["k", "id", "K", "ID"]
    finally:
        spark.conf.unset(CASE)


def test_names_that_clash_when_case_is_ignored(spark: Any, left: Any, right: Any, tmp_path: Any) -> None:
    query = ej.join(left, right, on="k")
    assert query.schema.names == ["k", "id", "ID_right"]
    assert query.write(tmp_path / "out.parquet") == 2
    assert spark.read.parquet(str(tmp_path / "out.parquet")).columns == query.schema.names
    with pytest.raises(InputError, match="'ID_RIGHT', 'ID_right', which differ in case only"):
        ej.join(left.selectExpr("k", "id", "1 AS ID_RIGHT"), right, on="k")
    twice = spark.sql("SELECT 1 AS k, 2 AS K")
    with pytest.raises(InputError, match="column 'k' is ambiguous: the left input has 'k', 'K'"):
        ej.join(twice, right, on="k")
    semi = ej.join(spark.sql("SELECT 1 AS k, 2 AS a, 3 AS A"), right, on="k", how="semi")
    with pytest.raises(InputError, match="columns 'a', 'A'"):
        semi.write(tmp_path / "never.parquet")
    assert semi.state == "new"


def test_options_of_the_local_engine_are_refused(left: Any, right: Any) -> None:
    with pytest.raises(InputError, match=r"wait_ms=5 is for the local engine"):
        ej.join(left, right, on="k", wait_ms=5)
    with pytest.raises(InputError, match=r"batch_rows=10 is for the local engine"):
        ej.join(left, right, on="k", batch_rows=10)
    ej.join(left, right, on="k", wait_ms=25.0, batch_rows=65536)  # what would be done anyway


STRUCTS = (
    "(struct(1, null), {n}1), (struct(1, 2), {n}2), (struct(null, null), {n}3), (null, {n}4), (struct(1, 3), {n}5)"
)
ARRAYS = "(array(1, null), {n}1), (array(1, 2), {n}2), (array(), {n}3), (null, {n}4), (array({n}, 3), {n}5)"


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("values", [STRUCTS, ARRAYS], ids=["structs", "arrays"])
def test_nested_keys(spark: Any, values: str, how: str) -> None:
    a, b = (spark.sql(f"SELECT * FROM VALUES {values.format(n=n)} AS t(k, {name})") for n, name in ((1, "a"), (2, "b")))
    query = ej.join(a, b, on="k", how=how)
    expected = a.join(b, "k", how)
    assert rows(query.to_df()) == rows(expected)
    assert "structs and arrays are compared by Spark alone" in query.explain() or how == "anti"
    assert query.to_arrow().num_rows == expected.count()


def test_nested_keys_with_more_conditions(spark: Any) -> None:
    a, b = (
        spark.sql(f"SELECT * FROM VALUES {STRUCTS.format(n=n)} AS t(k, {name})") for n, name in ((1, "a"), (1, "b"))
    )
    query = ej.join(a, b, on=ej.equal("k", null_safe=True) & ej.band("a", "b", eps=1) & ej.equal("a", "b"))
    assert query.to_arrow().num_rows == a.join(b, a.k.eqNullSafe(b.k) & (a.a == b.b)).count() == 5


def test_keys_that_spark_cannot_compare(spark: Any) -> None:
    for one, other in (("map(1, 2)", "map(1, 2)"), ("struct(1)", "struct(1, 2)"), ("array(1)", "1")):
        a, b = spark.sql(f"SELECT {one} AS k"), spark.sql(f"SELECT {other} AS k")
        with pytest.raises(UnsupportedError, match=r"left\.k = right\.k: .*data type mismatch"):
            ej.join(a, b, on="k")
    months = spark.sql("SELECT INTERVAL '1' YEAR AS k")
    with pytest.raises(UnsupportedError, match="compare numbers of months"):
        ej.join(months, months, on="k")
    collated = spark.sql("SELECT 'a' COLLATE UTF8_LCASE AS k")
    with pytest.raises(UnsupportedError, match="is compared by collation UTF8_LCASE"):
        ej.join(collated, collated, on="k")


def test_types_that_do_not_meet_are_named_as_spark_names_them(spark: Any) -> None:
    instant = spark.sql("SELECT TIMESTAMP'2020-01-01' AS k")
    clock = spark.sql("SELECT TIMESTAMP_NTZ'2020-01-01' AS k")
    with pytest.raises(UnsupportedError) as caught:
        SparkQuery(instant, clock, equal("k"), SparkOptions())
    assert "(timestamp)" in str(caught.value)
    assert "(timestamp_ntz)" in str(caught.value)
    assert "pyarrow" not in str(caught.value)


def test_command_line(spark: Any, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("k,v\n1,2\n")
    arguments = ["join", path, path, "--on", "K", "--engine", "spark", "-o", str(tmp_path / "out.parquet")]
    assert main([*arguments, "--how", "Left_Outer"]) == 0
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert "replace it with --overwrite" in told
    assert "mode=" not in told
    assert main([*arguments, "--how", "sideways"]) == 2
    assert "choose one of: inner, left (left_outer)" in capsys.readouterr().err
