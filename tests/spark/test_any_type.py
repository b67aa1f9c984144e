"""Columns that are no keys may have any type: they come out of ``to_df`` and ``write`` as they went in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.predicates import band, equal, less
from earlyjoin.spark.columns.arrow_forms import collected
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.query import SparkQuery

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

TYPES = {
    "collated": "'a' COLLATE UTF8_LCASE",
    "months": "make_ym_interval(1, -2)",
    "years": "INTERVAL '-7' YEAR",
    "time": "INTERVAL '1 02:03:04.5' DAY TO SECOND",
    "calendar": "make_interval(-1, 2, 0, -4, 5, -6, -7.000001)",
    "variant": "parse_json('{\"a\": [1, null]}')",
    "map": "map('a', 1, 'b', null)",
    "nested": "array(named_struct('x', 1, 'y', 'b' COLLATE UTF8_LCASE), null)",
    "deep": "named_struct('c', array(make_interval(1), null), 'm', map(1, INTERVAL '1-2' YEAR TO MONTH))",
    "instant": "TIMESTAMP'2020-02-29 12:00:00'",
    "nothing": "null",
}
WITHOUT_PARQUET = {"calendar", "deep", "nothing"}
"""Spark itself does not write these."""


@pytest.fixture(scope="module")
def wide(spark: Any) -> Any:
    """Twenty rows, one column of each type, every third value null."""
    columns = (f"if(id % 3 = 0, null, {text}) AS {name}" for name, text in TYPES.items())
    return spark.range(20).selectExpr("id AS k", *columns)


@pytest.fixture(scope="module")
def other(spark: Any) -> Any:
    return spark.range(5, 25).selectExpr("id AS k", "id * 2 AS z")


def as_texts(frame: Any) -> Counter[str]:
    """The rows, every value as Spark writes it."""
    plain = frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))
    return Counter(
        repr(tuple(row)) for row in plain.selectExpr(*(f"cast({c} AS string)" for c in plain.columns)).collect()
    )


CASES = {
    "equality": (equal("k"), "a.k = b.k", {}),
    "band": (band("k", eps=1), "abs(a.k - b.k) <= 1", {"driver_nbytes": 0}),
    "cells": (less("k"), "a.k < b.k", {"driver_nbytes": 0}),
    "driver": (less("k"), "a.k < b.k", {}),
}


@pytest.mark.parametrize("how", ["left", "full"])
@pytest.mark.parametrize("case", CASES)
def test_every_type_passes(wide: Any, other: Any, case: str, how: str) -> None:
    from pyspark.sql import functions as f

    on, text, options = CASES[case]
    query = SparkQuery(wide, other, on, SparkOptions(how=how, **options))
    frame = query.to_df()
    names = [name for name in wide.columns if name != "k"]
    expected = wide.alias("a").join(other.alias("b"), f.expr(text), how).select(*names, "z")
    assert as_texts(frame.select(*names, "z")) == as_texts(expected)
    for name in names:
        assert frame.schema[name].dataType.simpleString() == wide.schema[name].dataType.simpleString()


def test_rows_as_arrow(wide: Any, other: Any) -> None:
    query = ej.join(wide, other, on="k")
    assert query.schema.field("months").type == pa.string()
    assert query.schema.field("deep").type.field("c").type.value_type == pa.string()
    rows = {row["k"]: row for row in query.to_arrow().to_pylist()}
    assert len(rows) == 15
    assert rows[7]["months"] == "INTERVAL '0-10' YEAR TO MONTH"
    assert rows[7]["calendar"].startswith("-10 months -4 days")
    assert rows[7]["deep"]["m"] == [(1, "INTERVAL '1-2' YEAR TO MONTH")]
    assert rows[7]["collated"] == "a"
    assert rows[6]["months"] is None
    assert rows[6]["deep"] is None


def test_all_that_spark_writes_is_written(spark: Any, wide: Any, other: Any, tmp_path: Path) -> None:
    writable = wide.drop(*WITHOUT_PARQUET)
    for number, on in enumerate((equal("k"), less("k"))):
        query = SparkQuery(writable, other, on)
        frame = query.to_df()
        assert query.write(tmp_path / f"{number}") == frame.count()
        back = spark.read.parquet(str(tmp_path / f"{number}"))
        assert back.schema.simpleString() == frame.schema.simpleString()
        assert as_texts(back) == as_texts(frame)


def test_structs_that_are_null_as_a_whole(spark: Any) -> None:
    frame = spark.range(6).selectExpr("id", "if(id % 3 = 0, null, named_struct('a', 1)) AS c")
    assert [row["c"] for row in collected(frame).sort_by("id").to_pylist()] == [None, {"a": 1}, {"a": 1}] * 2
    assert collected(frame.where("id < 0")).num_rows == 0
