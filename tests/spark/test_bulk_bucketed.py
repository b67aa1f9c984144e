"""Bands as buckets: every join type, with and without tags, and every type of key that has a band."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from functools import reduce
from typing import Any

import pytest

import earlyjoin as ej
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.spark.bulk.banded import BandedJoin
from earlyjoin.spark.bulk.bucketed import BucketedJoin
from spark.bulk_cases import CASES, bulk, expected, table

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

HOWS = ("inner", "left", "right", "full", "semi", "anti")
NAMES = ("band", "band_int", "equal_band")


def ids(left: Any, right: Any, on: Condition, how: str, label: str, tags: tuple[Any, Any] | None = None) -> Any:
    from pyspark.sql import functions as f

    join = bulk(left, right, on, how, tags)
    rows = BucketedJoin(join._plan, join._sides).rows()
    other = f.col("r0") if "r0" in rows.columns else f.lit(None).cast("bigint")
    return rows.select(f.lit(label).alias("label"), f.col("l0").alias("l"), other.alias("r"))


def counted(frames: list[Any]) -> dict[str, Counter[Any]]:
    """All results in one job."""
    found: dict[str, Counter[Any]] = {}
    for row in reduce(lambda a, b: a.unionAll(b), frames).toArrow().to_pylist():
        found.setdefault(row["label"], Counter())[row["l"], row["r"]] += 1
    return found


def test_every_join_type_with_and_without_tags(spark: Any) -> None:
    from pyspark.sql import functions as f

    tables = table(1, 60), table(2, 50)
    left, right = map(spark.createDataFrame, tables)
    rows = [some.to_pylist() for some in tables]
    tags = f.col("id") % 4, (f.col("id") + 1) % 3
    found = counted(
        [ids(left, right, CASES[name].condition, how, f"{name} {how}") for name in NAMES for how in HOWS]
        + [ids(left, right, CASES["band"].condition, how, f"tagged {how}", tags) for how in HOWS if how != "anti"]
    )
    for name in NAMES:
        for how in HOWS:
            assert found[f"{name} {how}"] == expected(CASES[name], how, *rows), (name, how)
    early = {pair for pair in expected(CASES["band"], "inner", *rows) if (pair[0] % 4) & ((pair[1] + 1) % 3)}
    assert early
    for how in ("inner", "left", "right", "full"):
        whole = expected(CASES["band"], how, *rows)
        assert found[f"tagged {how}"] == Counter({p: n for p, n in whole.items() if p not in early}), how
    alone = expected(CASES["band"], "semi", *rows).keys() - {(i, None) for i, _ in early}
    assert found["tagged semi"] == Counter(alone)


def test_every_type_with_a_band(spark: Any) -> None:
    """At the ends of their ranges too."""
    left = spark.sql(
        "SELECT id, cast(id - 5 AS decimal(10, 2)) / 4 AS d, date_add(date'1969-12-20', cast(id AS int)) AS day, "
        "timestamp'2021-03-14 01:30:00' + make_dt_interval(0, 0, cast(id AS int)) AS at, "
        "timestamp_ntz'2021-03-14 01:30:00' + make_dt_interval(0, 0, cast(id AS int)) AS wall, "
        "if(id % 2 = 0, 9223372036854775807 - id, -9223372036854775808 + id) AS wide, "
        "array(0.0D, -0.0D, double('NaN'), double('Infinity'), 1e300, 0.1D + 0.2D)[id % 6] AS f FROM range(60)"
    )
    right = spark.sql(
        "SELECT id, cast(id - 9 AS decimal(12, 4)) / 3 AS d, date_add(date'1970-01-10', -cast(id AS int)) AS day, "
        "timestamp'2021-03-14 03:00:00' + make_dt_interval(0, 0, -cast(id AS int)) AS at, "
        "timestamp_ntz'2021-03-14 03:00:00' + make_dt_interval(0, 0, -cast(id AS int)) AS wall, "
        "if(id % 3 = 0, 9223372036854775807 - id, -9223372036854775808 + id) AS wide, "
        "array(0.0D, 0.3D, double('NaN'), double('-Infinity'), 1e300, -0.1D)[id % 6] AS f FROM range(50)"
    )
    left, right = (frame.withColumn("d", frame.d.cast("decimal(12,4)")) for frame in (left, right))
    conditions = {
        "d": ej.band("d", eps=Decimal("0.3")),
        "day": ej.band("day", eps=dt.timedelta(days=2)),
        "at": ej.band("at", eps="3 minutes"),
        "wall": ej.band("wall", eps="90 seconds"),
        "wide": ej.band("wide", eps=2**62),
        "wide0": ej.band("wide", eps=0),
        "f": ej.band("f", eps=0.1),
        "f0": ej.band("f", eps=0),
        "both": ej.band("f", eps=0.1) & ej.band("day", eps=10),
    }
    found = counted([ids(left, right, on, "inner", label) for label, on in conditions.items()])
    tables = left.toArrow(), right.toArrow()
    for label, on in conditions.items():
        local = ej.join(*tables, on=on, suffixes=("", "_r")).to_arrow()
        pairs = zip(local.column("id").to_pylist(), local.column("id_r").to_pylist(), strict=True)
        assert found.get(label, Counter()) == Counter(pairs), label


def test_hot_values_go_to_cells_and_the_rest_to_buckets(spark: Any) -> None:
    even = spark.range(400_000).selectExpr("id", "cast(id AS double) AS x", "repeat('x', 60) AS pad")
    hot = spark.range(400_000).selectExpr("id", "if(id % 50 = 0, 5.0D, id) AS x", "repeat('x', 60) AS pad")
    for frame, name in ((even, BucketedJoin.name), (hot, "partitioning by ranges")):
        made = bulk(frame, frame, ej.band("x", eps=0.4), "inner")
        join = BandedJoin(made._plan, made._sides, made._options)
        join._small = lambda: False  # type: ignore[method-assign]
        join.rows()
        assert join.name == name
    small = bulk(even.limit(10), even.limit(10), ej.band("x", eps=0.4), "inner")
    join = BandedJoin(small._plan, small._sides, small._options)
    assert join.rows().count() == 10
    assert join.name == BucketedJoin.name
