"""The bulk of non-equi joins on a Connect session, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from spark.bulk_cases import CASES, expected, table
from spark.conftest import connect_environment

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

WANTED = [("band", "full"), ("overlaps", "inner"), ("near", "semi"), ("not_equal", "anti"), ("less", "right")]
SCRIPT = """
import json, sys
from dataclasses import replace
from pyspark.sql import SparkSession
from spark.bulk_cases import CASES, bulk, table
from earlyjoin.spark.inspecting.surveying import survey
spark = SparkSession.builder.remote("local[2]").getOrCreate()
left, right = spark.createDataFrame(table(1, 40)), spark.createDataFrame(table(2, 40))
told = {}
for name, how in json.loads(sys.argv[1]):
    join = bulk(left, right, CASES[name].condition, how)
    seen = survey(join._plan, join._sides)
    join._survey = replace(seen, sides=tuple(replace(side, rows=side.rows * 10**4) for side in seen.sides), cores=1)
    rows = join.rows()
    assert join.layouts()[0].grown.tree.cells > 1
    told[name] = [[row["l0"], row["r0"] if "r0" in rows.columns else None] for row in rows.collect()]
spark.stop()
print(json.dumps(told))
"""


def test_connect() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(WANTED)],
        capture_output=True,
        text=True,
        timeout=600,
        env=connect_environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    rows = [table(seed, 40).to_pylist() for seed in (1, 2)]
    for name, how in WANTED:
        wanted = expected(CASES[name], how, *rows)
        assert sorted(map(str, map(tuple, told[name]))) == sorted(map(str, wanted.elements())), name
