"""Writing a whole result by Spark's own writers: a directory of files that is complete or not there.

On this machine a directory that exists is replaced by a complete one: Spark alone would remove the old files before it
has new ones. Elsewhere it is Spark's ``mode("overwrite")``.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from earlyjoin.errors import InputError, SinkError
from earlyjoin.spark.jobs import Jobs
from earlyjoin.spark.session import first_line
from earlyjoin.spark.writing.observing import counted
from earlyjoin.spark.writing.swapping import Swap
from earlyjoin.spark.writing.targets import Target

_DYNAMIC = "partitionOverwriteMode"
_LOOK_S, _QUIET_LOOKS, _REMOVE_S = 0.05, 4, 10.0


def write(frame: Any, target: Target, jobs: Jobs) -> int:
    """Write all rows and return their number; nothing, and 0, where the mode is to ignore what is there.

    After a failure nothing is left of a new target on this machine.
    """
    target.check()
    if target.mode == "ignore" and target.exists:
        return 0
    here = target.local if is_here(target, jobs) else None
    if here is not None and target.mode == "overwrite" and here.exists() and not _replaces_parts(target, jobs.session):
        with Swap(here) as swap:
            rows = _write_new(frame, target, str(swap.hidden.absolute()), swap.hidden, jobs)
            swap.commit()
        jobs.session.catalog.refreshByPath(str(here.absolute()))
        return rows
    if here is not None and not here.exists():
        return _write_new(frame, target, str(here.absolute()), here, jobs)
    # Spark's process may have another working directory.
    return _write_counted(frame, target, target.path if here is None else str(here.absolute()), target.mode, jobs)


def is_here(target: Target, jobs: Jobs) -> bool:
    """Is the target certain to be on this machine, for Spark too?"""
    if target.local is None or jobs.connect:
        return False
    settings = jobs.session.conf
    if target.path.startswith("file:"):
        return str(settings.get("spark.master", "")).startswith("local")
    # Names without a scheme belong to Hadoop's default file system, which a configuration may have set.
    elsewhere = any(os.environ.get(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"))
    default = str(settings.get("spark.hadoop.fs.defaultFS", "file:"))
    return not elsewhere and default.startswith("file:") and str(settings.get("spark.master", "")).startswith("local")


def _replaces_parts(target: Target, session: Any) -> bool:
    """Does overwriting keep the partitions that get no new rows?"""
    given = {name.lower(): value for name, value in target.options.items()}.get(_DYNAMIC.lower())
    setting = given or session.conf.get("spark.sql.sources.partitionOverwriteMode", "static")
    return bool(target.partition_by) and str(setting).lower() == "dynamic"


def _write_new(frame: Any, target: Target, path: str, directory: Path, jobs: Jobs) -> int:
    """Write a directory that is not there yet; it is removed again if that fails."""
    try:
        if target.format != "parquet" or target.options:
            return _write_counted(frame, target, path, "error", jobs)
        _save(frame, target, path, "error", jobs)
        return _rows_in(directory, path, jobs)
    except BaseException:
        jobs.interrupt()
        _remove(directory)
        raise


def _write_counted(frame: Any, target: Target, path: str, mode: str, jobs: Jobs) -> int:
    watched, rows = counted(frame)
    # Nothing is counted where nothing is written, and a question would wait for ever.
    try:
        _save(watched, target, path, "error" if mode == "ignore" else mode, jobs)
    except _AlreadyThere:
        if mode == "ignore":
            return 0
        raise
    return rows()


class _AlreadyThere(InputError):
    """Spark has found something where a new directory was to be."""


def _save(frame: Any, target: Target, path: str, mode: str, jobs: Jobs) -> None:
    writer = frame.write.format(target.format).mode(mode)
    if target.format == "csv":
        writer = writer.option("header", "true")
    writer = writer.options(**target.options)
    if target.partition_by:
        writer = writer.partitionBy(*target.partition_by)
    jobs.tagged(lambda: _saved(lambda: writer.save(path), target, jobs))


def _saved(save: Callable[[], None], target: Target, jobs: Jobs) -> None:
    try:
        save()
    except Exception as error:
        failure = jobs.failure(error)
        if jobs.cancelled or "session ended" in str(failure):
            raise failure from error
        if "PATH_ALREADY_EXISTS" in str(error):
            raise _AlreadyThere(
                f"output {target.path!r} exists; remove it, or say what becomes of it with mode='overwrite', 'append' "
                "or 'ignore'",
                command=f"output {target.path!r} exists; remove it, or replace it with --overwrite",
            ) from error
        raise SinkError(f"cannot write {target.path!r}: {first_line(error)}") from error


def _remove(directory: Path) -> None:
    """Remove it for good: tasks that have not heard of their end yet would make it again."""
    gone, end = 0, time.monotonic() + _REMOVE_S
    while gone < _QUIET_LOOKS and time.monotonic() < end:
        gone = 0 if directory.exists() else gone + 1
        shutil.rmtree(directory, ignore_errors=True)
        time.sleep(_LOOK_S)


def _rows_in(directory: Path, path: str, jobs: Jobs) -> int:
    """How many rows there are in files of Parquet that were just written: their footers tell, at no cost."""
    try:
        return sum(pq.read_metadata(file).num_rows for file in directory.rglob("part-*") if file.is_file())
    except (OSError, pa.ArrowException):  # such as encrypted ones
        return int(jobs.tagged(lambda: jobs.session.read.parquet(path).count()))
