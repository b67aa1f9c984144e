"""What people read when a task of Spark fails: the root cause, in one line, and what to do about it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import earlyjoin as ej
from earlyjoin.errors import EarlyJoinError, SinkError
from earlyjoin.spark.failures import root_cause
from spark.conftest import connect_environment, spark_settings
from spark.tables import in_files, numbered

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

WORDS = "boom: the user's words"


def message(act: Callable[[], object], kind: type[EarlyJoinError] = EarlyJoinError) -> str:
    with pytest.raises(kind) as caught:
        act()
    text = str(caught.value)
    assert "\n" not in text
    assert "An error occurred while calling" not in text
    assert "awaitResult" not in text
    return text


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [in_files(numbered(400, 100, name, seed), tmp_path / name, 2) for seed, name in enumerate("ab")]


def raising(frame: Any) -> Any:
    from pyspark.sql import functions as f

    def picky(value: int) -> bool:
        if value == 77:
            raise ValueError(WORDS)
        return True

    return frame.where(f.udf(picky, "boolean")("a"))


def test_the_words_of_a_udf_are_kept(spark: Any, paths: list[str], tmp_path: Path) -> None:
    left, right = (spark.read.parquet(path) for path in paths)
    wanted = f"raised ValueError: {WORDS}"
    assert message(lambda: ej.join(raising(left), right, on="k").to_arrow()).endswith(wanted)
    text = message(lambda: ej.join(raising(left), right, on="k").write(tmp_path / "out.parquet"), SinkError)
    assert "out.parquet" in text
    assert text.endswith(wanted)


def test_a_file_that_was_removed_is_named(spark: Any, paths: list[str], tmp_path: Path) -> None:
    left, right = (spark.read.parquet(path) for path in paths)
    gone = sorted(Path(paths[0]).glob("*.parquet"))
    for path in gone:
        path.unlink()
    text = message(lambda: ej.join(left, right, on="k").to_arrow())
    assert any(repr(str(path)) in text for path in gone)
    assert "removed or rewritten since the DataFrame was made" in text
    text = message(lambda: ej.join(left, right, on="k").write(tmp_path / "out.parquet"))
    assert any(repr(str(path)) in text for path in gone)


def test_a_file_that_is_broken_is_named_with_the_reason(spark: Any, paths: list[str]) -> None:
    left, right = (spark.read.parquet(path) for path in paths)
    broken = sorted(Path(paths[0]).glob("*.parquet"))
    for path in broken:
        path.write_bytes(b"by no means Parquet")
    text = message(lambda: ej.join(left, right, on="k").to_arrow())
    assert any(f"the file {str(path)!r} cannot be read: " in text for path in broken)
    assert "not a Parquet file" in text


def test_a_path_that_is_not_there(spark: Any, tmp_path: Path) -> None:
    there, missing = in_files(numbered(9, 9, "a", 1), tmp_path / "there", 1), str(tmp_path / "missing.parquet")
    text = message(lambda: ej.join(there, missing, on="k", engine="spark"))
    assert "Path does not exist" in text
    assert missing in text


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = shutil.which("mount")
    if mount is None or sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root mounts a small disk")
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", path], capture_output=True).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def test_a_full_disk_is_named(spark: Any, small_disk: Path) -> None:
    left = spark.range(400_000).selectExpr("id AS k", "rand(1) AS x")
    right = spark.range(400_000).selectExpr("id AS k", "rand(2) AS y")
    target = small_disk / "out.parquet"
    text = message(lambda: ej.join(left, right, on="k").write(target), SinkError)
    assert f"the disk is full (no space left on device) where {str(target)!r} is written" in text


SCRIPT = """
import json, os, sys
from pyspark.sql import SparkSession, functions as f
import earlyjoin as ej
from earlyjoin.spark.jobs import Jobs
left, right, settings, remote, words, disk = json.loads(sys.argv[1])
builder = SparkSession.builder
builder = builder.remote("local[2]") if remote else builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
frames = [spark.read.parquet(path) for path in (left, right)]

def picky(value):
    if value == 77:
        raise ValueError(words)
    return True

def message(act):
    try:
        act()
    except ej.EarlyJoinError as error:
        return str(error)

told = {"udf": message(lambda: ej.join(frames[0].where(f.udf(picky, "boolean")("a")), frames[1], on="k").to_arrow())}
big = spark.range(400_000).selectExpr("id AS k", "rand() AS x")
if disk is not None:
    told["disk"] = message(lambda: ej.join(big, big.toDF("k", "y"), on="k").write(disk + "/out.parquet"))
else:
    told["large"] = message(lambda: Jobs(spark).tagged(big.toArrow))
spark.stop()
print(json.dumps(told))
"""


def elsewhere(paths: list[str], environment: dict[str, str], *, remote: bool, disk: Path | None) -> dict[str, str]:
    settings = {k: v for k, v in spark_settings().items() if not remote or k.startswith("spark.sql.s")}
    if not remote:
        settings["spark.driver.maxResultSize"] = "1m"
    argument = json.dumps([*paths, settings, remote, WORDS, None if disk is None else str(disk)])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, argument],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_python_without_arrow_and_too_large_a_result(paths: list[str], tmp_path: Path) -> None:
    bare = tmp_path / "bare python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')  # without installed packages
    bare.chmod(0o755)
    told = elsewhere(paths, {**connect_environment(), "PYSPARK_PYTHON": str(bare)}, remote=False, disk=None)
    assert "the Python of Spark's workers has no pyarrow; set PYSPARK_PYTHON to " in told["udf"]
    assert repr(sys.executable) in told["udf"]
    assert "spark.driver.maxResultSize allows 1024.0 KiB" in told["large"]


def test_on_connect(paths: list[str], small_disk: Path) -> None:
    told = elsewhere(paths, connect_environment(), remote=True, disk=small_disk)
    assert told["udf"].endswith(f"raised ValueError: {WORDS}")
    assert "no space left on device" in told["disk"]
    assert str(small_disk) in told["disk"]


# Failures that take more than one machine, or another Python, to provoke. Caught from Spark 4.3 and shortened: another
# Python, no Python, one that ends at once, the full disk, the full heap, too large a result, the query with a plan.
# The others, of executors that ended or were killed among them, are written in the same form and were not caught.


class CaughtError(Exception):
    """As PySpark raises it."""

    __module__ = "pyspark.errors"


FRAMES = (
    "\n\tat org.apache.spark.scheduler.Task.run(Task.scala:147)\n\tat java.base/java.lang.Thread.run(Thread.java:840)"
)
LOST = (
    "An error occurred while calling o49.getResult.\n: org.apache.spark.SparkException: "
    f"Exception thrown in awaitResult: {FRAMES}\nCaused by: org.apache.spark.SparkException: "
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: "
    "Lost task 0.3 in stage 3.0 (TID 9) (192.0.2.2 executor 3): "
)
WORKER = (
    "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n[PYTHON_EXCEPTION] "
    "An exception was thrown from the Python worker: Traceback (most recent call last):\n"
    '  File "/spark/worker.py", line 4261, in main\n    check_python_version(init_info.python_version)\n'
)
CASES = {
    "another Python, on Connect": (
        f"{WORKER}pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has "
        "different version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions.\nPlease "
        "check environment variables PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON are correctly set.\n SQLSTATE: 38000",
        ["workers run Python 3.12, and this process Python 3.11", "PYSPARK_PYTHON", sys.executable],
    ),
    "no Python": (
        f'{LOST}java.io.IOException: Cannot run program "/no/python": error=2, No such file or directory{FRAMES}',
        ["does not start: '/no/python': No such file or directory", "PYSPARK_PYTHON"],
    ),
    "a Python that ends at once": (
        f"{LOST}org.apache.spark.SparkException: \nError from python worker:\n  Traceback (most recent call last):\n"
        "    File \"<frozen site>\", line 201, in main\n  AttributeError: no attribute 'major'\nPYTHONPATH was:\n"
        f"  /spark/pyspark.zip\norg.apache.spark.SparkException: EOFException occurred{FRAMES}",
        ["does not start: AttributeError: no attribute 'major'; set PYSPARK_PYTHON"],
    ),
    "no earlyjoin": (
        f"{WORKER}ModuleNotFoundError: No module named 'earlyjoin'\n SQLSTATE: 38000",
        ["has no earlyjoin", "earlyjoin archive"],
    ),
    "a chain of exceptions, and words of two lines": (
        f"{WORKER}KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n  File \"mine.py\", line 3, in f\n    raise ValueError('x')\n"
        f"ValueError: one\ntwo\n SQLSTATE: 38000\n\n{FRAMES}",
        ["raised ValueError: one two"],
    ),
    "a full disk for temporary files": (
        f"{LOST}java.io.IOException: No space left on device\n\tat java.base/java.io.FileOutputStream.write(F.java:3)\n"
        "\tat org.apache.spark.shuffle.sort.BypassMergeSortShuffleWriter.write(B.java:9)",
        ["disk is full", "temporary files", "spark.local.dir"],
    ),
    "a heap that is full": (
        f"{LOST}java.lang.OutOfMemoryError: Java heap space{FRAMES}\n\nDriver stacktrace:{FRAMES}",
        ["ran out of memory (Java heap space)", "spark.executor.memory"],
    ),
    "an executor that ended with a full heap": (
        f"{LOST}ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Command exited with "
        "code 52\nDriver stacktrace:",
        ["ran out of memory", "spark.executor.memory"],
    ),
    "an executor that was killed": (
        f"{LOST}ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Container killed by "
        "YARN for exceeding physical memory limits. 5.5 GB of 5.5 GB physical memory used.",
        ["killed because it took too much memory", "memoryOverhead"],
    ),
    "an executor that went away": (
        f"{LOST}ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Remote RPC client "
        "disassociated.\nDriver stacktrace:",
        ["lost an executor", "Remote RPC client disassociated"],
    ),
    "too large a result": (
        "Job aborted due to stage failure: Total size of serialized results of 1 tasks (23.4 MiB) is bigger than "
        "spark.driver.maxResultSize (2.0 MiB)",
        ["23.4 MiB", "spark.driver.maxResultSize allows 2.0 MiB", "write()"],
    ),
    "something that is not known": (
        f"{LOST}java.lang.IllegalStateException: the wheel came off{FRAMES}\nCaused by: a.b.RustError: salt{FRAMES}",
        ["the wheel came off (salt)"],
    ),
    "a query with a plan below": (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `x` cannot be resolved. SQLSTATE: 42703;\n"
        "'Project ['x]\n+- Range (0, 10)",
        ["[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `x` cannot be resolved."],
    ),
    "nothing at all": ("", ["CaughtError"]),
}


@pytest.mark.parametrize("case", CASES)
def test_texts(case: str) -> None:
    text, wanted = CASES[case]
    told = root_cause(CaughtError(text))
    assert all(part in told for part in wanted), told
    assert "\n" not in told
    assert not told.endswith(" SQLSTATE: 38000")


def test_java_below_a_hidden_context_is_looked_at() -> None:
    hidden = CaughtError(f"{LOST}java.io.IOException: No space left on device{FRAMES}")
    shown = CaughtError("Job aborted.")
    shown.__context__, shown.__suppress_context__ = hidden, True
    assert "disk is full" in root_cause(shown)


def test_the_stack_of_a_connect_server_is_asked_for() -> None:
    error = CaughtError("[TASK_WRITE_FAILED] Task failed while writing rows to file:/full/out. SQLSTATE: 58030")
    error.getStackTrace = lambda: (  # type: ignore[attr-defined]
        f"org.apache.spark.SparkException{FRAMES}\nCaused by: java.io.IOException: No space left on device{FRAMES}"
    )
    assert "where '/full/out' is written" in root_cause(error)


def test_an_error_of_our_own_is_not_dressed_up() -> None:
    error = TypeError("unhashable type: 'list'")
    error.__context__ = CaughtError(f"{LOST}java.io.IOException: No space left on device{FRAMES}")
    assert root_cause(error) == "TypeError: unhashable type: 'list'"
