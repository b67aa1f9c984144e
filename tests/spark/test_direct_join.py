"""Spark's own join on the inputs as they are gives what the join of renamed columns gives, or steps aside."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin import equal
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.spark.bulk.base import Sides
from earlyjoin.spark.bulk.direct import direct_join
from earlyjoin.spark.bulk.equality import SparkJoin
from earlyjoin.spark.columns.types import arrow_schema, output_frame, positional

pytestmark = pytest.mark.spark

LEFT = pa.table({"k": [1, 1, 2, None, 5], "a b": ["x", "y", "z", "n", "o"], "v.w": [1.0, -0.0, 2.0, 3.0, None]})
RIGHT = pa.table({"k": [1, 2, 2, None, 7], "j": [1, 2, 5, None, 7], "t`q": ["p", "q", "r", "s", "t"]})
ALL = ["inner", "left", "right", "full", "semi", "anti"]


def both_ways(spark: Any, left: Any, right: Any, on: Condition, how: str) -> tuple[Any, Any]:
    """The direct join, and that of renamed columns."""
    plan = make_plan(on, arrow_schema(left, 0), arrow_schema(right, 1), how=how, suffixes=("", "_right"))
    renamed = SparkJoin(plan, Sides(positional(left, 0), positional(right, 1)))
    return direct_join(plan, (left, right)), output_frame(plan, renamed.rows())


def same(one: Any, other: Any) -> None:
    assert [(field.name, field.dataType) for field in one.schema] == [
        (field.name, field.dataType) for field in other.schema
    ]
    assert Counter(map(repr, one.collect())) == Counter(map(repr, other.collect()))


@pytest.mark.parametrize("how", ALL)
@pytest.mark.parametrize("null_safe", [False, True])
def test_columns_of_other_names(spark: Any, how: str, null_safe: bool) -> None:
    left, right = spark.createDataFrame(LEFT), spark.createDataFrame(RIGHT.drop_columns("k"))
    direct, renamed = both_ways(spark, left, right, equal("k", "j", null_safe=null_safe), how)
    assert direct is not None
    same(direct, renamed)


@pytest.mark.parametrize("how", ALL)
def test_a_shared_key(spark: Any, how: str) -> None:
    left, right = spark.createDataFrame(LEFT), spark.createDataFrame(RIGHT)
    direct, renamed = both_ways(spark, left, right, equal("k"), how)
    assert (direct is None) == (how in ("right", "full"))  # the key is that of the other side there
    if direct is not None:
        same(direct, renamed)


@pytest.mark.parametrize("how", ["inner", "left", "semi"])
def test_a_table_with_itself(spark: Any, how: str) -> None:
    frame = spark.createDataFrame(RIGHT.drop_columns(["t`q"]))
    direct, renamed = both_ways(spark, frame, frame, equal(["k", "j"]), how)
    assert direct is not None
    same(direct, renamed)
    filtered, _ = both_ways(spark, frame, frame.where("k = 2"), equal(["k", "j"]), how)
    assert sorted(tuple(row) for row in filtered.collect() if row[0] == 2) == [(2, 2), (2, 5)]


def test_it_steps_aside(spark: Any) -> None:
    left, right = spark.createDataFrame(LEFT), spark.createDataFrame(RIGHT)
    clash, _ = both_ways(spark, left, right, equal("k", "j"), "inner")  # k and k_right
    assert clash is None
    twice = left.selectExpr("k", "1 AS x", "2 AS X")
    ambiguous, _ = both_ways(spark, twice, right.select("j"), equal("k", "j"), "inner")
    assert ambiguous is None
    flags = spark.createDataFrame(pa.table({"b": [True, False]}))
    mixed, _ = both_ways(spark, flags, right.select("j"), equal("b", "j"), "inner")
    assert mixed is None


def test_head_and_write_take_it(spark: Any, tmp_path: Any) -> None:
    left, right = spark.createDataFrame(LEFT), spark.createDataFrame(RIGHT.drop_columns(["k", "t`q"]))
    for how in ("left", "anti"):
        target = str(tmp_path / f"{how}.parquet")
        written = ej.join(left, right, on=[("k", "j")], how=how).write(target)
        assert written == {"left": 5, "anti": 1}[how]
        found = spark.read.parquet(target)
        same(found, both_ways(spark, left, right, equal("k", "j"), how)[1])
