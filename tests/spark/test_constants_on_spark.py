"""Columns against constants, and booleans against numbers: the rows of the core, and of Spark's own filter."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.errors import InputError

pyspark = pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

SIGNS = ("=", "<", "<=", ">", ">=", "<>")


def joined(c: Any, where: str, keys: Any) -> list[int]:
    return sorted(ej.join(c, keys, on="k", where=where).to_arrow()["id"].to_pylist())


def with_key(values: pa.Array) -> pa.Table:
    rows = len(values)
    return pa.table({"k": pa.array([1] * rows), "id": pa.array(range(rows)), "c": values})


def same_on_both(spark: Any, values: pa.Array, conditions: Sequence[str]) -> None:
    table, keys = with_key(values), pa.table({"k": [1]})
    # Not cached: Spark passes over cached rows by their largest value, which leaves NaN out.
    frames = [spark.createDataFrame(one) for one in (table, keys)]
    for where in conditions:
        assert joined(frames[0], where, frames[1]) == joined(table, where, keys), where


def test_decimals_with_more_digits_than_the_column(spark: Any) -> None:
    values = [
        Decimal("1.1"),
        Decimal("1.1000000001"),
        Decimal("-1.1"),
        Decimal(0),
        Decimal("1e-10"),
        None,
        Decimal(10**27),
    ]
    constants = (
        "1.10000000000000000000000000000000001",
        "-1.10000000000000000000000000000000001",
        "1e30",
        "-1e60",
        "0",
        "1e-10",
        "1e28",
    )
    where = [f"c {sign} {constant}" for sign in SIGNS for constant in constants]
    same_on_both(spark, pa.array(values, pa.decimal128(38, 10)), where)


def test_integers_between_and_beyond(spark: Any) -> None:
    where = [f"c {sign} {constant}" for sign in SIGNS for constant in ("2.5", "1e20", "-1e70", "9.0")]
    same_on_both(spark, pa.array([1, 2, 3, 2**63 - 1, -(2**63), None, 9]), where)


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_floats(spark: Any, type_: pa.DataType) -> None:
    where = [f"c {sign} {constant}" for sign in ("=", "<", ">") for constant in ("0.1", "16777217", "1e300", "'inf'")]
    same_on_both(spark, pa.array([0.1, 16777216.0, float("inf"), float("nan"), None], type_), where)


def test_booleans_are_numbers(spark: Any) -> None:
    same_on_both(spark, pa.array([True, False, None]), ["c = 1", "c = 0", "c = 0.5", "c = 'true'", "c = 1e50"])


def test_moments_without_an_offset_are_read_as_by_spark(spark: Any) -> None:
    """In the zone of the session, also where its clocks show a moment twice or pass it over."""
    texts = (
        "2024-01-01",
        "2024-01-01 12:00:00.000001",
        "2024-03-10 02:30:00",
        "2024-11-03 01:30:00",
        "2024-07-01T00:00:00Z",
    )
    moments = [dt.datetime(2023, 12, 31, 23, tzinfo=dt.UTC) + dt.timedelta(minutes=15 * n) for n in range(37_000)]
    frame = spark.createDataFrame(with_key(pa.array(moments, pa.timestamp("us", "UTC")))).cache()
    keys = spark.createDataFrame(pa.table({"k": [1]}))
    for text in texts:
        for sign in ("=", ">"):
            ours = ej.join(frame, keys, on="k", where=f"c {sign} '{text}'").to_df().count()
            assert ours == frame.where(f"c {sign} '{text}'").count(), (sign, text)


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_moments_finer_than_a_microsecond(spark: Any, kind: str) -> None:
    moments = [dt.datetime(2024, 1, 1, 0, 0, 0, n) for n in (0, 1, 2)]
    frame = spark.createDataFrame(list(enumerate(map(str, moments))), "id long, c string")
    frame, keys = frame.selectExpr("1 AS k", "id", f"CAST(c AS {kind}) AS c"), spark.sql("SELECT 1 AS k")
    for sign in SIGNS:
        where = f"c {sign} '2024-01-01 00:00:00.0000015'"
        local = joined(with_key(pa.array(moments, pa.timestamp("us"))), where, pa.table({"k": [1]}))
        assert joined(frame, where, keys) == local


def test_days_beside_moments(spark: Any) -> None:
    days = pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2), None])
    moments = ("2024-01-02", "2024-01-01 12:00:00", "2024-01-01 00:00:00.000000001")
    same_on_both(spark, days, [f"c {sign} '{moment}'" for sign in SIGNS for moment in moments])


def test_durations(spark: Any) -> None:
    lengths = [dt.timedelta(seconds=n) for n in (-5, 4, 5, 6)]
    where = [f"c {sign} {text}" for sign in SIGNS for text in ("'5s'", "'-5s'", "'5 s 1ns'")]
    same_on_both(spark, pa.array(lengths, pa.duration("us")), where)


def test_times_of_day(spark: Any) -> None:
    spark.conf.set("spark.sql.timeType.enabled", "true")
    times = [dt.time(0, 0, n) for n in (0, 1, 2)]
    frame = spark.createDataFrame(with_key(pa.array([0, 1, 2]))).selectExpr("k", "id", "make_time(0, 0, c) AS c")
    keys = spark.createDataFrame(pa.table({"k": [1]}))
    for sign in SIGNS:
        where = f"c {sign} '00:00:01'"
        local = joined(with_key(pa.array(times, pa.time64("us"))), where, pa.table({"k": [1]}))
        assert joined(frame, where, keys) == local


def test_a_constant_that_does_not_fit_names_the_type_of_spark(spark: Any) -> None:
    frame = spark.sql("SELECT 1 AS k, timestamp '2024-01-01' AS c, 'x' AS s")
    with pytest.raises(InputError, match=r"\(timestamp\) with 'noon', which does not read as timestamp$"):
        ej.join(frame, frame.select("k"), on="k", where="left.c > 'noon'")


@pytest.mark.parametrize("type_", [pa.int8(), pa.int64(), pa.float64(), pa.decimal128(6, 2)])
@pytest.mark.parametrize("how", ["inner", "full"])
def test_keys_that_are_booleans_and_numbers(spark: Any, how: Any, type_: pa.DataType) -> None:
    left = pa.table({"k": [True, False, None, True], "id": [0, 1, 2, 3]})
    right = pa.table({"n": pa.array([1, 0, 2, None], pa.int8()).cast(type_), "b": [0, 1, 2, 3]})
    local = ej.join(left, right, left_on="k", right_on="n", how=how).to_arrow().to_pylist()
    frames = [spark.createDataFrame(one) for one in (left, right)]
    query = ej.join(*frames, left_on="k", right_on="n", how=how)
    found = [row.asDict() for row in query.to_df().collect()]
    assert sorted(map(repr, found)) == sorted(map(repr, local))
    assert len(ej.join(*frames, left_on="k", right_on="n", how=how).to_arrow()) == len(local)


@pytest.mark.parametrize("how", ["inner", "full", "right"])
def test_a_shared_key_of_booleans_and_numbers(spark: Any, how: Any) -> None:
    tables = pa.table({"k": [True, None], "a": [0, 1]}), pa.table({"k": [1, 2, None], "b": [0, 1, 2]})
    for sides in (tables, tables[::-1]):
        local = ej.join(*sides, on="k", how=how).to_arrow()
        query = ej.join(*(spark.createDataFrame(one) for one in sides), on="k", how=how)
        found = query.to_df().toArrow()
        assert found.schema.types == local.schema.types == query.schema.types
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, local.to_pylist()))
