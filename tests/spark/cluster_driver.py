"""Runs on a cluster, in a process of its own: core cases, then a join during which a worker is killed. Prints JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import earlyjoin as ej
from spark.bulk_cases import CASES, bulk, expected, table

HOWS = {"band": "full", "overlaps": "left", "less": "semi"}
ROWS = 60_000


def main() -> None:
    url, archive, *victims = sys.argv[1:]
    spark = (
        SparkSession.builder.master(url)
        .config("spark.ui.enabled", "false")
        .config("spark.submit.pyFiles", archive)
        .config("spark.executor.memory", "600m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.speculation", "true")  # copies of slow tasks must not double a row
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.addArtifacts(archive, pyfile=True)
    told: dict[str, Any] = {"from": imported_from(spark), "cases": core_cases(spark)}
    told["killed"] = with_a_kill(spark, [int(pid) for pid in victims])
    spark.stop()
    print(json.dumps(told))


def imported_from(spark: Any) -> str:
    """Where executors have the package from."""

    def where(batches: Any) -> Any:
        import pyarrow as pa

        import earlyjoin

        for _ in batches:
            yield pa.RecordBatch.from_arrays([pa.array([earlyjoin.__file__])], names=["file"])

    return str(spark.range(1).mapInArrow(where, "file string").collect()[0]["file"])


def core_cases(spark: Any) -> dict[str, bool]:
    tables = table(1, 60), table(2, 50)
    left, right = map(spark.createDataFrame, tables)
    rows = [some.to_pylist() for some in tables]
    result = {}
    for name, how in HOWS.items():
        found = bulk(left, right, CASES[name].condition, how).rows()
        pairs = [(row["l0"], row["r0"] if "r0" in found.columns else None) for row in found.collect()]
        result[f"{name} {how}"] = sorted(map(str, pairs)) == sorted(
            map(str, expected(CASES[name], how, *rows).elements())
        )
    return result


def with_a_kill(spark: Any, victims: list[int]) -> dict[str, Any]:
    """A join of many cells; a worker and its executor die when some cells are done and others are not."""
    left = spark.range(ROWS).selectExpr("id", "cast(id % 1000 AS double) AS x").repartition(4)
    right = spark.range(ROWS).selectExpr("id", "cast(id % 1500 AS double) AS x").repartition(4)
    join = bulk(left, right, ej.band("x", eps=0.5), "left")
    rows = join.rows()
    told: dict[str, Any] = {"cells": join.layouts()[0].grown.tree.cells}

    def count() -> None:
        try:
            total = rows.agg(f.count("*"), f.sum(f.xxhash64("l0", "r0").cast("decimal(38, 0)"))).collect()[0]
            told["rows"], told["hash"] = int(total[0]), str(total[1])
        except Exception as error:
            told["error"] = str(error)[:2000]

    running = threading.Thread(target=count)
    running.start()
    tracker = spark.sparkContext.statusTracker()
    while running.is_alive():
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        joining = [stage for stage in stages if stage is not None and stage.numTasks == told["cells"]]
        if joining and joining[0].numCompletedTasks >= 1:
            told["when"] = f"{joining[0].numCompletedTasks} of {joining[0].numTasks}"
            for victim in victims:
                os.killpg(victim, signal.SIGKILL)
            break
        time.sleep(0.02)
    running.join()
    plain = left.alias("l").join(
        right.alias("r"), f.expr("l.x = r.x"), "left"
    )  # whole numbers: a band below 1 is equality
    wanted = plain.agg(f.count("*"), f.sum(f.xxhash64("l.id", "r.id").cast("decimal(38, 0)"))).collect()[0]
    told["expected"] = [int(wanted[0]), str(wanted[1])]
    return told


if __name__ == "__main__":
    main()
