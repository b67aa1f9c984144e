"""What lies below a DataFrame, told from its plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from earlyjoin.spark.early.blocks import Blocks
from earlyjoin.spark.inspecting.plans import plan_nodes
from earlyjoin.spark.inspecting.scans import Computed, Files, Small, examine
from spark.tables import in_files, numbered

EXPLAINED = """== Optimized Logical Plan ==
Project [k#1, (v#2 + 1) AS w#3], Statistics(sizeInBytes=31.2 MiB)
+- Filter isnotnull(k#1), Statistics(sizeInBytes=234.0 MiB)
   +- Relation [k#1,v#2] parquet, Statistics(sizeInBytes=234.0 MiB)

== Physical Plan ==
*(1) Project [k#1]
"""


def test_plan_nodes() -> None:
    assert [name for name, _ in plan_nodes(EXPLAINED)] == ["Project", "Filter", "Relation"]
    assert plan_nodes("nothing of the kind") == []


def test_blocks_are_drawn_once_each_and_differently_for_both_sides() -> None:
    files = Files(tuple(f"file:/{number}" for number in range(10)), "parquet", 10 * 2**21)
    left, right = (Blocks(files, 0, side) for side in (0, 1))
    assert left.count == 10 * left.slots == 40
    assert sorted(left.order) == list(range(40))
    assert list(left.order) != list(right.order)
    assert list(left.order) == list(Blocks(files, 0, 0).order)
    assert left.share([0, 1, 2, 3]) == 0.1
    assert Blocks(Files(("file:/a.csv",), "csv", 2**20), 0, 0).count == 1


@pytest.mark.spark
def test_dataframes(spark: Any, tmp_path: Path) -> None:
    path = in_files(numbered(30, 5, "a", 0), tmp_path / "table", 3)
    frame = spark.read.parquet(path)
    found = examine(frame.where("k > 1").selectExpr("k + 1 AS x"))
    assert isinstance(found, Files)
    assert (len(found.paths), found.numbered) == (3, True)
    assert isinstance(examine(spark.sql("SELECT * FROM VALUES (1), (2) AS t(k)")), Small)
    frame.createOrReplaceTempView("a_view")
    reasons = {
        "aggregation": frame.groupBy("k").count(),
        "limit": frame.limit(5),
        "rand": frame.selectExpr("k", "rand() AS r"),
        "union": frame.union(frame),
        "join": frame.join(frame.select("k"), "k"),
        "range of numbers": spark.range(5),
        "generator": frame.selectExpr("k", "explode(array(1, 2)) AS e"),
        "sample": frame.sample(0.5, seed=1),
        "aggregation ": frame.distinct(),
        "view": spark.table("a_view"),
        "hides": frame.withColumn("_metadata", frame.k).select("_metadata", "k"),
    }
    for word, other in reasons.items():
        below = examine(other)
        assert isinstance(below, Computed), word
        assert word.strip() in below.reason
    frame.write.csv(str(tmp_path / "csv"))
    csv = examine(spark.read.csv(str(tmp_path / "csv")))
    assert isinstance(csv, Files)
    assert not csv.numbered
