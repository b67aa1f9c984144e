"""Spark's words on a Connect session, in a process of its own: a process has either kind of session."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import earlyjoin as ej
from spark.conftest import connect_environment, spark_settings
from spark.tables import in_files, numbered

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
import earlyjoin as ej
left, right, target, settings = json.loads(sys.argv[1])
builder = SparkSession.builder.remote("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
frames = [spark.read.parquet(path) for path in (left, right)]
told = {}

def refused(act):
    try:
        act()
    except ej.InputError as error:
        return str(error)

new = lambda on="K": ej.join(*frames, on=on)
told["written"] = new().write(target)
told["exists"] = refused(lambda: new().write(target))
told["ignored"] = new().write(target, mode="ignore")
told["appended"] = new().write(target, mode="append", partition_by=None)
told["both"] = spark.read.parquet(target).count()
told["overwritten"] = new(ej.band("k", eps=0)).write(target, overwrite=True)
told["own"] = refused(lambda: new().write(left, mode="overwrite"))
told["after"] = spark.read.parquet(target).count()
months = frames[0].selectExpr("k", "a", "if(a % 2 = 0, null, make_ym_interval(1, 2)) AS m", "struct(k, null) AS s")
other = frames[1].selectExpr("b", "struct(k, null) AS S")
query = ej.join(months, other, on="s", how="left_semi")
told["type"] = query.to_df().schema["m"].dataType.simpleString()
told["months"] = sorted({str(value) for value in query.to_arrow()["m"].to_pylist()})
maps = [frame.selectExpr("map(1, k) AS k") for frame in frames]
told["map"] = refused(lambda: ej.join(*maps, on="k"))
print(json.dumps(told))
"""


def test_words_on_connect(tmp_path: Path) -> None:
    left, right = numbered(300, 200, "a", 1), numbered(200, 250, "b", 2)
    paths = [in_files(left, tmp_path / "left", 2), in_files(right, tmp_path / "right", 2)]
    settings = {name: value for name, value in spark_settings().items() if name.startswith("spark.sql.s")}
    given = json.dumps([*paths, str(tmp_path / "out"), settings])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, given],
        env=connect_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    rows = len(ej.join(left, right, on="k").to_arrow())
    assert [told[name] for name in ("written", "appended", "overwritten", "after")] == [rows] * 4
    assert (told["ignored"], told["both"]) == (0, 2 * rows)
    assert "exists; " in told["exists"]
    assert "input is read from" in told["own"]
    assert told["type"] == "interval year to month"
    assert told["months"] == ["INTERVAL '1-2' YEAR TO MONTH", "None"]
    assert "left.k = right.k" in told["map"]
