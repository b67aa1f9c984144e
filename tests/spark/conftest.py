"""One Spark session for all tests of a process: starting one takes many seconds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[2] / "src"

# Tests ask many small things of a young JVM: code that is optimised for long runs costs more to make than it saves, and
# so do collectors of garbage with threads of their own. Sessions that tests start in other processes inherit it.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def spark_settings() -> dict[str, str]:
    """Settings of the session, each with its reason."""
    return {
        "spark.ui.enabled": "false",  # no port, no page that nobody opens
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",  # a handful of rows
        "spark.sql.autoBroadcastJoinThreshold": "-1",  # tables of tests are tiny; real ones are shuffled
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "America/New_York",  # not that of the machine, and with summer time
    }


def executors_environment() -> dict[str, str]:
    """Executors need this Python, and this source."""
    path = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}


def connect_environment() -> dict[str, str]:
    """For a process with a Connect session: a free port, so that several can run at once, and the tests' modules."""
    environment = {**os.environ, **executors_environment(), "SPARK_TESTING": "1"}
    environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).parents[1])
    return environment


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pyspark = pytest.importorskip("pyspark.sql")
    os.environ.update(executors_environment())
    builder = pyspark.SparkSession.builder.master("local[2]").appName("earlyjoin tests")
    for name, value in spark_settings().items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")  # the tests provoke failures, which it would print at length
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look would read tables of a test as a whole, and leave nothing to the bulk, or Spark be done before it."""
    from earlyjoin.spark import execution
    from earlyjoin.spark.early import phase as early

    monkeypatch.setattr(execution, "_SOON_S", 0.0)
    monkeypatch.setattr(early, "LEAST_ROWS", 300)
    monkeypatch.setattr(early, "MOST_ROWS", 300)
