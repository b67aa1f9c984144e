"""The bulk of non-equi joins on Spark: against a nested loop on small data, against Spark's own join on larger."""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.spark.bulk.cells.partitioned import PartitionedJoin
from earlyjoin.spark.bulk.keyed import KeyedJoin
from earlyjoin.spark.inspecting.surveying import Survey, survey
from spark.bulk_cases import CASES, bulk, expected, table

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

HOWS = ("inner", "left", "right", "full", "semi", "anti")
DATA = Path(os.environ.get("EARLYJOIN_DATA", "/nonexistent"))
real_data = pytest.mark.skipif(not DATA.is_dir(), reason="EARLYJOIN_DATA does not name a directory with real data")


def larger(seen: Survey) -> Survey:
    """The same inputs, taken for many times as large: then there are several cells, and few enough for a test."""
    return replace(seen, sides=tuple(replace(side, rows=side.rows * 10**4) for side in seen.sides), cores=1)


def ids(join: PartitionedJoin, how: str) -> Any:
    """The ids of the result, with the join type beside them."""
    from pyspark.sql import functions as f

    rows = join.rows()
    right = f.col("r0") if "r0" in rows.columns else f.lit(None).cast("bigint")
    return rows.select(f.lit(how).alias("how"), f.col("l0").alias("l"), right.alias("r"))


def counted(frames: Iterable[Any]) -> dict[str, Counter[Any]]:
    """All results in one job."""
    found: dict[str, Counter[Any]] = {how: Counter() for how in HOWS}
    for row in reduce(lambda a, b: a.unionAll(b), frames).toArrow().to_pylist():
        found[row["how"]][row["l"], row["r"]] += 1
    return found


@pytest.mark.parametrize("name", CASES)
def test_every_join_type_gives_what_a_nested_loop_gives(spark: Any, name: str) -> None:
    tables = table(1, 60), table(2, 50)
    left, right = map(spark.createDataFrame, tables)
    joins = {how: bulk(left, right, CASES[name].condition, how) for how in HOWS}
    seen = larger(survey(joins["inner"]._plan, joins["inner"]._sides))
    for join in joins.values():
        join._survey = seen
    found = counted(ids(join, how) for how, join in joins.items())
    assert all(layout.grown.tree.cells > 1 for layout in joins["inner"].layouts())
    rows = [some.to_pylist() for some in tables]
    for how in HOWS:
        assert found[how] == expected(CASES[name], how, *rows), how


def test_pairs_that_went_out_early_are_left_out_and_still_count_as_matches(spark: Any) -> None:
    from pyspark.sql import functions as f

    tables = table(3, 60), table(4, 50)
    left, right = map(spark.createDataFrame, tables)
    tags = f.col("id") % 4, (f.col("id") + 1) % 3
    joins = {how: bulk(left, right, CASES["band"].condition, how, tags) for how in HOWS if how != "anti"}
    seen = larger(survey(joins["inner"]._plan, joins["inner"]._sides))
    for join in joins.values():
        join._survey = seen
    found = counted(ids(join, how) for how, join in joins.items())
    rows = [some.to_pylist() for some in tables]
    whole = {how: expected(CASES["band"], how, *rows) for how in joins}
    early = {(i, j) for i, j in whole["inner"] if (i % 4) & ((j + 1) % 3)}
    assert early
    for how in ("inner", "left", "right", "full"):
        assert found[how] == Counter({pair: n for pair, n in whole[how].items() if pair not in early}), how
    assert found["semi"] == Counter({(i, None): 1 for i, _ in whole["semi"]} | {(i, None): 0 for i, _ in early})


def test_types_that_spark_has(spark: Any) -> None:
    """Decimals of different scale, dates, instants in a session's zone, timestamps without one."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        left = spark.sql(
            "SELECT id, cast(id / 4 AS decimal(10, 2)) AS d, date_add(date'2021-03-01', cast(id AS int)) AS day, "
            "timestamp'2021-03-14 01:30:00' + make_dt_interval(0, 0, cast(id AS int)) AS at, "
            "timestamp_ntz'2021-03-14 01:30:00' + make_dt_interval(0, 0, cast(id AS int)) AS wall FROM range(60)"
        )
        right = spark.sql(
            "SELECT id, cast(id / 3 AS decimal(12, 4)) AS d, date_add(date'2021-03-20', -cast(id AS int)) AS day, "
            "timestamp'2021-03-14 03:00:00' + make_dt_interval(0, 0, -cast(id AS int)) AS at, "
            "timestamp_ntz'2021-03-14 03:00:00' + make_dt_interval(0, 0, -cast(id AS int)) AS wall FROM range(50)"
        )
        conditions = {
            "inner": ej.band("d", eps=Decimal("0.3")),
            "left": ej.band("day", eps=dt.timedelta(days=2)),
            "right": ej.band("at", eps="3 minutes"),
            "full": ej.band("wall", eps="90 seconds"),
            "semi": ej.less("at"),
            "anti": ej.less_equal("day"),
        }
        texts = {
            "inner": "abs(l.d - r.d) <= 0.3",
            "left": "abs(datediff(l.day, r.day)) <= 2",
            "right": "abs(unix_micros(l.at) - unix_micros(r.at)) <= 180000000",
            "full": "l.wall BETWEEN r.wall - interval 90 seconds AND r.wall + interval 90 seconds",
            "semi": "l.at < r.at",
            "anti": "l.day <= r.day",
        }
        from pyspark.sql import functions as f

        theirs = []
        for how, text in texts.items():
            kind = {"semi": "left_semi", "anti": "left_anti"}.get(how, how)
            joined = left.alias("l").join(right.alias("r"), f.expr(text), kind)
            r = f.col("r.id") if kind == how else f.lit(None).cast("bigint")
            theirs.append(joined.select(f.lit(how).alias("how"), f.col("l.id").alias("l"), r.alias("r")))
        ours = [ids(bulk(left, right, on, how), how) for how, on in conditions.items()]
        assert counted(ours) == counted(theirs)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_payload_of_any_type_comes_through(spark: Any) -> None:
    left = spark.sql(
        "SELECT id AS `a.b`, array(id, null) AS list, map('k', id) AS pairs, named_struct('x', id, 'y', 'z') AS both, "
        "cast('bytes' AS binary) AS bytes, null AS nothing, interval '3' minute AS gap, "
        "if(id % 2 = 0, null, concat('text ', id)) AS text FROM range(20)"
    )
    right = spark.sql("SELECT id AS `a.b`, id AS `a.b2`, cast(id AS float) AS f FROM range(5)")
    join = bulk(left, right, ej.band("a.b", eps=1), "left")
    join._survey = larger(survey(join._plan, join._sides))
    found = {(row["l0"], row["r0"]): row for row in join.rows().collect()}
    assert len(found) == len([1 for i in range(20) for j in range(5) if abs(i - j) <= 1]) + 14
    for (i, _), row in found.items():
        texts = None if i % 2 == 0 else f"text {i}"
        assert (row["l1"], row["l2"], tuple(row["l3"])) == ([i, None], {"k": i}, (i, "z"))
        assert (bytes(row["l4"]), row["l5"], row["l6"], row["l7"]) == (
            b"bytes", None, dt.timedelta(minutes=3), texts,
        )  # fmt: skip


def test_empty_sides(spark: Any) -> None:
    full, none = spark.createDataFrame(table(5, 20)), spark.createDataFrame(table(5, 20)).where("id < 0")
    joins = [("left", full, none), ("right", none, full), ("full", none, full), ("inner", full, none)]
    found = counted(ids(bulk(left, right, CASES["overlaps"].condition, how), how) for how, left, right in joins)
    everyone = range(20)
    assert found["left"] == Counter((number, None) for number in everyone)
    assert found["right"] == found["full"] == Counter((None, number) for number in everyone)
    assert not found["inner"]


def test_a_hot_value_becomes_a_matrix_and_a_larger_join_equals_spark(spark: Any) -> None:
    from pyspark.sql import functions as f

    random = np.random.default_rng(0)
    hot = lambda rows: np.where(random.random(rows) < 0.2, 50.0, random.uniform(0, 1000, rows))  # noqa: E731
    tables = [pa.table({"id": np.arange(rows), "x": hot(rows)}) for rows in (3000, 2000)]
    left, right = map(spark.createDataFrame, tables)
    join = bulk(left, right, ej.band("x", eps=0.2), "inner")
    join._survey = larger(survey(join._plan, join._sides))
    assert join.layouts()[0].grown.tree.splits
    ours = join.rows().select(f.col("l0").alias("l"), f.col("r0").alias("r"))
    theirs = left.alias("l").join(right.alias("r"), f.expr("abs(l.x - r.x) <= 0.2"))
    theirs = theirs.select(f.col("l.id").alias("l"), f.col("r.id").alias("r"))
    summed = [frame.agg(f.count("*"), f.sum(f.xxhash64("l", "r").cast("decimal(38, 0)"))) for frame in (ours, theirs)]
    assert summed[0].unionAll(summed[1]).distinct().count() == 1


def test_few_keys_with_many_rows_are_not_left_to_spark(spark: Any) -> None:
    many = spark.range(40_000).selectExpr("id", "id % 3 AS g", "cast(id AS double) AS x")
    few = spark.range(2000).selectExpr("id", "id AS g", "cast(id AS double) AS x")
    on = ej.equal("g", "g") & ej.band("x", eps=1.5)
    for frame, chosen in ((many, "partitioning by ranges"), (few, "Spark's own join")):
        cells = bulk(frame, frame, on, "inner")
        join = KeyedJoin(cells._plan, cells._sides, cells._options)
        rows = join.rows()
        assert join.name == chosen
        assert rows.count() == frame.count()


@real_data
def test_flights_that_are_in_the_air_together(spark: Any) -> None:
    flights = spark.read.parquet(str(DATA / "intervals_flights.parquet"))
    sides = [flights.where(flights.origin == origin) for origin in ("EWR", "JFK")]
    assert bulk(*sides, ej.overlaps(("start", "end"), closed=False), "inner").rows().count() == 10_243_337


@real_data
def test_roads_that_meet_water(spark: Any) -> None:
    roads, water = (spark.read.parquet(str(DATA / f"spatial_{name}.parquet")) for name in ("roads", "linearwater"))
    on = ej.intersects(("xmin", "ymin", "xmax", "ymax"))
    assert bulk(roads, water, on, "inner").rows().count() == 18_000
