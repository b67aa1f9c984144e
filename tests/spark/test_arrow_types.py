"""Types that are told without asking Spark are those that Spark gives."""

from __future__ import annotations

from typing import Any

import pytest

from earlyjoin.spark.columns.arrow_types import plain_schema

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

PLAIN = (
    "true AS bool",
    "cast(1 AS tinyint) AS tiny",
    "cast(1 AS smallint) AS small",
    "1 AS int",
    "1L AS big",
    "cast(1 AS float) AS f",
    "1D AS d",
    "DATE'2020-01-01' AS day",
    "'a' AS text",
    "cast('a' AS binary) AS bytes",
    "1.50 AS dec",
    "cast(NULL AS decimal(38,18)) AS wide",
    "nullif(1, 1) AS maybe",
)
ASKED = ("current_timestamp()", "array(1)", "struct(1)", "map(1, 2)", "INTERVAL '1' DAY", "null")


@pytest.mark.parametrize("large", ["false", "true"])
def test_plain_types(spark: Any, large: str) -> None:
    setting = "spark.sql.execution.arrow.useLargeVarTypes"
    before = spark.conf.get(setting)
    spark.conf.set(setting, large)
    try:
        frame = spark.range(1).selectExpr(*PLAIN)
        assert plain_schema(frame) == frame.limit(0).toArrow().schema
        assert plain_schema(frame) == frame.toArrow().schema
    finally:
        spark.conf.set(setting, before)


@pytest.mark.parametrize("expression", ASKED)
def test_other_types_are_asked_for(spark: Any, expression: str) -> None:
    schema = plain_schema(spark.range(1).selectExpr(f"{expression} AS c"))
    assert schema is None or schema == spark.range(1).selectExpr(f"{expression} AS c").toArrow().schema
