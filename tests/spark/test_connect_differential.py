"""Every predicate and join type on a Connect session against a nested loop; some in the driver as well.

One session, in a process of its own: a process has either kind of session.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from spark.bulk_cases import CASES, expected, table
from spark.conftest import connect_environment, spark_settings
from spark.join_cases import EQUAL, HOWS, places
from spark.tables import in_files

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

ROWS = (40, 30)
SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
from earlyjoin.spark.bulk.driver_join import DriverJoin
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.query import SparkQuery
from spark.bulk_cases import CASES
from spark.join_cases import EQUAL, HOWS, places
paths, settings = json.loads(sys.argv[1])
builder = SparkSession.builder.remote("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
frames = [spark.read.parquet(path) for path in paths]
assert "connect" in type(frames[0]).__module__
told = []
for name, case in (CASES | EQUAL).items():
    for how in HOWS:
        for place in places(name, how):
            # Some without an early phase: it takes most of the time.
            options = SparkOptions(
                how=how, suffixes=("", "_r"), driver_nbytes=2**24 * (place == "driver"), early=how in ("full", "semi")
            )
            query = SparkQuery(*frames, case.condition, options)
            result = query.to_arrow().to_pydict()
            assert (query.algorithm == DriverJoin.name) == (place == "driver"), (name, how, place)
            ids = result["id"], result.get("id_r", [None] * len(result["id"]))
            told.append([name, how, place, list(zip(*ids))])
# Files that a server knows may be anywhere: nobody here opens them.
explained = SparkQuery(*frames, CASES["band"].condition, SparkOptions()).explain()
assert "fetched at the same time" in explained, explained
spark.stop()
print(json.dumps(told))
"""


def test_every_predicate_and_join_type(tmp_path: Path) -> None:
    """One test for all: a session of its own takes longer than the joins."""
    paths = [in_files(table(side + 1, rows), tmp_path / str(side), 2) for side, rows in enumerate(ROWS)]
    settings = {k: v for k, v in spark_settings().items() if k.startswith("spark.sql.s")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps([paths, settings])],
        capture_output=True,
        text=True,
        timeout=900,
        env=connect_environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    told = {(name, how, place): Counter(map(tuple, rows)) for name, how, place, rows in found}
    sides = [table(side + 1, rows).to_pylist() for side, rows in enumerate(ROWS)]
    wrong = []
    for name, case in (CASES | EQUAL).items():
        for how in HOWS:
            wanted = expected(case, how, *sides)
            wrong += [(name, how, place) for place in places(name, how) if told[name, how, place] != wanted]
    assert not wrong
