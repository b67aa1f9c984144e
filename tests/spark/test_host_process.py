"""The process that a join runs in is somebody else's: its output, its loggers and its environment stay as they were."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import earlyjoin as ej
from earlyjoin.spark import session as sessions
from spark.conftest import connect_environment
from spark.tables import in_files, numbered

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

SPARKS_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    directory = tmp_path_factory.mktemp("host")
    return [in_files(numbered(400, 100, name, seed), directory / name, 2) for seed, name in enumerate("ab")]


def join_in_threads(spark: Any, paths: list[str], count: int = 3) -> None:
    """Several joins at once, of inputs with blocks and without."""
    failed: list[BaseException] = []

    def work(number: int) -> None:
        left, right = (spark.read.parquet(path) for path in paths)
        try:
            ej.join(left.where(f"a > {number}"), right if number else right.groupBy("k").count(), on="k").head(5)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_standard_output_stays_and_all_prints_arrive(
    spark: Any, paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, numbers, seen, end = io.StringIO(), iter(range(10**9)), set(), threading.Event()
    monkeypatch.setattr(sys, "stdout", mine)
    printed = 0

    def chatter() -> None:
        nonlocal printed
        while not end.is_set():
            seen.add(id(sys.stdout))
            print(f"line {next(numbers)}")
            printed += 1
            time.sleep(0.0005)

    talking = threading.Thread(target=chatter)
    talking.start()
    try:
        join_in_threads(spark, paths)
    finally:
        end.set()
        talking.join()
    assert sys.stdout is mine
    assert seen == {id(mine)}
    assert mine.getvalue().splitlines() == [f"line {number}" for number in range(printed)]


def loggers() -> dict[str, tuple[Any, ...]]:
    """Every logger there is, with all that can be set on it."""
    there = dict(logging.root.manager.loggerDict)
    found = {name: one for name, one in there.items() if isinstance(one, logging.Logger)} | {"": logging.root}
    return {
        name: (type(one), one.level, list(one.handlers), list(one.filters), one.propagate, one.disabled)
        for name, one in found.items()
    }


def test_loggers_stay_as_they_were(spark: Any, paths: list[str]) -> None:
    before, kind, disabled = loggers(), logging.getLoggerClass(), logging.root.manager.disable
    join_in_threads(spark, paths, 2)
    after = loggers()
    assert {name: after[name] for name in before} == before
    assert logging.getLoggerClass() is kind
    assert logging.root.manager.disable == disabled
    from pyspark.logger import PySparkLogger

    for name in SPARKS_LOGGERS:
        assert name not in after or after[name][0] is PySparkLogger


def test_errors_of_pyspark_are_its_own(spark: Any, paths: list[str]) -> None:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    join_in_threads(spark, paths, 1)
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        spark.read.parquet(paths[0]).select(f.col("nowhere") + 1)


def test_a_join_never_takes_standard_error_away(spark: Any, paths: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_silent_stderr", lambda: pytest.fail("standard error was taken away"))
    assert ej.join(*paths, on="k", engine="spark").head(3).num_rows == 3


def test_the_environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    for name in ("MASTER", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    with sessions._workers_python("local[2]"):
        assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert dict(os.environ) == before
    with sessions._workers_python("spark://far.example:7077"):  # has no such path
        assert dict(os.environ) == before
    monkeypatch.setenv("PYSPARK_PYTHON", "/the/users/own")
    with sessions._workers_python("local[2]"):
        assert os.environ["PYSPARK_PYTHON"] == "/the/users/own"
    assert os.environ["PYSPARK_PYTHON"] == "/the/users/own"


SCRIPT = """
import json, logging, os, sys, threading, time
import earlyjoin as ej
paths = json.loads(sys.argv[1])
out, seen, end = sys.stdout, set(), threading.Event()
def watch():
    while not end.is_set():
        told = os.fstat(2)
        seen.add((told.st_dev, told.st_ino))
        time.sleep(0.001)
threading.Thread(target=watch, daemon=True).start()
environment = set(os.environ)
rows = ej.join(*paths, on="k", engine="spark").to_arrow().num_rows
end.set()
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession, functions as f
spark = SparkSession.getActiveSession()
def python(batches):
    import sys, pyarrow
    for batch in batches:
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array([sys.executable])], ["python"])
told = {"rows": rows, "errors to": len(seen), "out": sys.stdout is out}
told["environment"] = sorted(set(os.environ) - environment)
told["workers"] = spark.range(1).mapInArrow(python, "python string").collect()[0][0]
try:
    spark.read.parquet(paths[0]).select(f.col("nowhere") + 1)
except BaseException as error:
    told["error"] = type(error).__name__
told["logger"] = type(logging.getLogger("DataFrameQueryContextLogger")).__name__
spark.stop()
print(json.dumps(told))
"""


def test_a_session_that_a_join_starts(paths: list[str]) -> None:
    environment = connect_environment()
    for name in ("PYSPARK_PYTHON", "SPARK_TESTING"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(paths)],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    tables = [numbered(400, 100, name, seed) for seed, name in enumerate("ab")]
    assert told["rows"] == ej.join(*tables, on="k").to_arrow().num_rows
    assert told["errors to"] == 1
    assert "PYSPARK_PYTHON" not in told["environment"]
    assert told["out"] is True
    assert Path(told["workers"]) == Path(sys.executable)
    assert told["error"] == "AnalysisException"
    assert told["logger"] == "PySparkLogger"
    assert '"errorClass"' in done.stderr  # PySpark's own line about it
