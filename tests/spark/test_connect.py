"""The same on a Connect session, in a process of its own: a process has either kind of session."""

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

HOWS = ["inner", "full", "semi", "anti"]

SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
import earlyjoin as ej
left, right, target, settings, hows = json.loads(sys.argv[1])
builder = SparkSession.builder.remote("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
frames = [spark.read.parquet(path) for path in (left, right)]
told = {"kind": type(frames[0]).__module__, "rows": {}, "early": {}}
for how in hows:
    query = ej.join(*frames, on="k", how=how)
    told["rows"][how] = sorted(map(str, query.to_arrow().select(["a"]).to_pylist()))
    told["early"][how] = query.summary()["phases"]["arriving"]
query = ej.join(frames[0].where("a < 1500"), frames[1], on="k")
told["head"] = query.head(20).num_rows
told["written"] = query.write(target)
told["band"] = len(ej.join(*frames, on=ej.band("k", eps=1)).head(100))
from earlyjoin.spark.bulk import delivery
delivery.COLLECTED_NBYTES = 0
query = ej.join(*frames, on="k")
told["first"] = next(iter(query)).num_rows
query.stop()
told["state"] = str(query.state)
query = ej.join(*frames, on="k")
query.head(1)
spark.stop()
try:
    query.to_arrow()
except ej.EarlyJoinError as error:
    told["ended"] = str(error)
print(json.dumps(told))
"""


def test_connect(tmp_path: Path) -> None:
    left, right = numbered(3000, 2000, "a", 1), numbered(2000, 2500, "b", 2)
    paths = [in_files(left, tmp_path / "left", 6), in_files(right, tmp_path / "right", 5)]
    settings = {k: v for k, v in spark_settings().items() if k.startswith(("spark.sql.s", "spark.sql.auto"))}
    argument = json.dumps([*paths, str(tmp_path / "out.parquet"), settings, HOWS])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, argument],
        capture_output=True,
        text=True,
        timeout=600,
        env=connect_environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert "connect" in told["kind"]
    for how in HOWS:
        expected = ej.join(left, right, on="k", how=how).to_arrow()  # type: ignore[arg-type]
        assert told["rows"][how] == sorted(map(str, expected.select(["a"]).to_pylist()))
        assert (told["early"][how] > 0) == (how != "anti")
    assert told["head"] == 20
    assert told["written"] == len(ej.join(left.slice(0, 1500), right, on="k").to_arrow())
    assert told["band"] == 100
    assert told["first"] > 0
    assert told["state"] == "stopped"
    assert "the Spark session ended" in told["ended"]
