"""Equality means what it means in Spark: nulls, NaN, signed zero, decimals, widths, strings, instants."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej

pyspark = pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

UTC = dt.UTC
D = Decimal
CASES: dict[str, tuple[pa.Array, pa.Array]] = {
    "int32_int64": (pa.array([1, 2, None, 2, -1], pa.int32()), pa.array([2, 2, None, 7, -1], pa.int64())),
    "double": (
        pa.array([0.0, -0.0, math.nan, None, 1.5, math.inf]),
        pa.array([-0.0, math.nan, math.nan, None, 1.5, -math.inf]),
    ),
    "float_double": (pa.array([0.5, 0.1, math.nan], pa.float32()), pa.array([0.5, 0.1, math.nan], pa.float64())),
    "int_double": (pa.array([1, 2, 3], pa.int32()), pa.array([1.0, 2.5, 3.0], pa.float64())),
    "decimal_scales": (
        pa.array([D("1.50"), D("2.00"), None, D("-0.01")], pa.decimal128(10, 2)),
        pa.array([D("1.5000"), D("2.0001"), None, D("-0.0100")], pa.decimal128(20, 4)),
    ),
    "wide_decimal": (
        pa.array([D("12345678901234567890123456.78"), D("1.00")], pa.decimal128(30, 2)),
        pa.array([D("12345678901234567890123456.780"), D("1.001")], pa.decimal128(31, 3)),
    ),
    "string": (pa.array(["a", "", None, "é", "a "]), pa.array(["a", "", None, "e\u0301", "a"])),
    "binary": (pa.array([b"\x00", b"", None]), pa.array([b"\x00", b"\x00\x00", b""])),
    "boolean": (pa.array([True, False, None]), pa.array([True, True, None])),
    "date": (pa.array([dt.date(2020, 2, 29), None]), pa.array([dt.date(2020, 2, 29), dt.date(1969, 12, 31)])),
    "timestamp": (
        pa.array([dt.datetime(2021, 3, 28, 1, 30, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        pa.array([dt.datetime(2021, 3, 28, 1, 30, tzinfo=UTC), None], pa.timestamp("us", "Europe/Berlin")),
    ),
}


@pytest.mark.parametrize("how", ["inner", "full", "semi", "anti"])
@pytest.mark.parametrize("case", CASES)
def test_same_rows_as_spark(spark: Any, case: str, how: str) -> None:
    left, right = (
        pa.table({"k": keys, f"{side}_id": list(range(len(keys)))})
        for side, keys in zip("lr", CASES[case], strict=True)
    )
    frames = [spark.createDataFrame(table) for table in (left, right)]
    theirs = frames[0].join(
        frames[1], frames[0]["k"] == frames[1]["k"], f"left_{how}" if how in ("semi", "anti") else how
    )
    expected = theirs.drop("k").collect()
    ours = ej.join(left, right, on=[("k", "k")], how=how).to_arrow()  # type: ignore[arg-type]
    ids = [name for name in ours.column_names if name.endswith("_id")]
    assert Counter(tuple(row.values()) for row in ours.select(ids).to_pylist()) == Counter(
        tuple(row) for row in expected
    )
