"""PySpark at arm's length: importing it, starting a session, telling its DataFrames from other things.

Only what classic and Connect sessions have in common is used.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from earlyjoin.errors import InputError
from earlyjoin.spark.failures import root_cause
from earlyjoin.state.budget import DEFAULT_FRACTION, physical_memory_bytes

INSTALL = "pip install 'earlyjoin[spark]'"
JAVA_LEAST = 17


def functions() -> Any:
    """``pyspark.sql.functions``."""
    return _module("pyspark.sql.functions")


def is_dataframe(value: object) -> bool:
    """Is it a Spark DataFrame, classic or Connect? Does not import PySpark to find out."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql") for kind in type(value).__mro__
    )


def session_of(dataframe: Any) -> Any:
    """The session that a DataFrame belongs to."""
    return dataframe.sparkSession


def active_session() -> Any | None:
    """The session that is there already, or None."""
    return _module("pyspark.sql").SparkSession.getActiveSession()


def start_session(master: str | None = None, *, name: str = "earlyjoin", quiet: bool = False) -> Any:
    """The active session, or a new one: on ``master``, on a Connect server (``sc://…``), or on this machine.

    ``quiet`` sends the log of a new Java process nowhere; what fails is raised all the same. It takes the standard
    error of the whole process away while Spark starts: for programs of our own only (command line, demo, benchmarks),
    never when somebody's program calls ``join``.
    """
    builder = _module("pyspark.sql").SparkSession.builder.appName(name)
    if master is not None and master.startswith("sc://"):
        return builder.remote(master).getOrCreate()
    active = active_session()
    if active is not None and master is None:
        return active
    missing = missing_java()
    if missing is not None:
        raise InputError(missing)
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if master is None and not _configured_master():
        master = "local[*]"
    if master is not None:
        builder = builder.master(master)
    if master is not None and master.startswith("local"):
        builder = builder.config("spark.driver.memory", _driver_memory()).config("spark.ui.enabled", "false")
    try:
        with _workers_python(master), _silent_stderr() if quiet else nullcontext():
            return builder.getOrCreate()
    except Exception as error:
        where = f" on {master!r}" if master else ""
        raise InputError(f"Spark did not start{where}: {first_line(error)}") from error


def missing_java() -> str | None:
    """Why Spark cannot start on this machine; None when a Java of the right age is there."""
    home = os.environ.get("JAVA_HOME")
    command = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if command is None or not os.path.exists(command):
        return f"Spark needs Java {JAVA_LEAST} or newer, and there is none; install one, or use the local engine"
    try:
        told = subprocess.run([command, "-version"], capture_output=True, text=True, check=False, timeout=30).stderr
    except (OSError, subprocess.SubprocessError) as error:
        return f"Spark needs Java {JAVA_LEAST} or newer, and {command!r} does not run: {error}; or use the local engine"
    version = _java_version(told)
    if version is not None and version < JAVA_LEAST:
        return f"Spark needs Java {JAVA_LEAST} or newer, and {command!r} is Java {version}; or use the local engine"
    return None


def first_line(error: BaseException) -> str:
    """What went wrong, in one line: the root cause, without Java's stack trace, and what to do if that is known."""
    return root_cause(error)


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(f"this needs PySpark 4, which cannot be imported ({error}); run: {INSTALL}") from error


def _java_version(told: str) -> int | None:
    """17 of 'openjdk version "17.0.9" 2023-10-17'; None when it cannot be told."""
    quoted = told.split('"')
    if len(quoted) < 2:
        return None
    parts = quoted[1].split(".")
    number = parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0]
    digits = "".join(character for character in number if character.isdigit())
    return int(digits) if digits else None


def _configured_master() -> bool:
    """Was a master chosen outside, by spark-submit or by the environment?"""
    submitted = "--master" in os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    return submitted or "MASTER" in os.environ or "SPARK_REMOTE" in os.environ


def _driver_memory() -> str:
    """On this machine driver and executor are one process: a quarter of the memory, and one gigabyte at least."""
    return f"{max(2**30, int(physical_memory_bytes() * DEFAULT_FRACTION)) // 2**20}m"


@contextmanager
def _workers_python(master: str | None) -> Iterator[None]:
    """Executors on this machine run this very Python, or they find neither Arrow nor this package.

    A session of Python code has its workers' Python from the environment alone (``spark.pyspark.python`` is for
    spark-submit), and remembers it when it starts: the environment is as it was afterwards. Other machines have no such
    path, as a rule; they keep the Python of their own.
    """
    if "PYSPARK_PYTHON" in os.environ or not _is_here(master):
        yield
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        yield
    finally:
        os.environ.pop("PYSPARK_PYTHON", None)


def _is_here(master: str | None) -> bool:
    """Do executors run on this machine, as far as the master's name tells?"""
    where = master or os.environ.get("MASTER") or os.environ.get("SPARK_REMOTE") or ""
    host = urlsplit(where).hostname
    return where.startswith("local") or host in ("localhost", "127.0.0.1", socket.gethostname().lower())


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Processes started meanwhile write their errors nowhere, for as long as they live; so does this one, meanwhile."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
