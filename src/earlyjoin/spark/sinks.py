"""Writing a whole result by Spark's own writers: a directory of files that is complete or not there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from earlyjoin.errors import InputError, SinkError
from earlyjoin.spark.jobs import Jobs
from earlyjoin.spark.session import first_line, functions

FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".orc": "orc"}


def check_target(path: str | os.PathLike[str], *, overwrite: bool) -> str:
    """Refuse a target that cannot be written, before any work is done; returns the format."""
    text = os.fspath(path)
    suffix = Path(text.rstrip("/")).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(
            f"cannot tell the format of {text!r}; end it with one of: {', '.join(FORMATS)} "
            "(Spark writes a directory of files), or take the rows with to_arrow() or to_df()"
        )
    local = _local(text)
    if local is not None and local.exists() and not overwrite:
        raise InputError(f"output {text!r} exists; remove it, or overwrite it with --overwrite (overwrite=True)")
    if local is not None and local.is_file():
        raise InputError(f"output {text!r} is a file, and Spark writes a directory; remove it or choose another name")
    return FORMATS[suffix]


def write(frame: Any, path: str | os.PathLike[str], jobs: Jobs, *, overwrite: bool) -> int:
    """Write all rows and return their number. After a failure nothing is left of a new target on this machine."""
    target, format_ = os.fspath(path), check_target(path, overwrite=overwrite)
    observation_class, counted = _observation()
    observation = observation_class()
    observed = frame.observe(observation, counted)
    writer = observed.write.format(format_).mode("overwrite" if overwrite else "error")
    if format_ == "csv":
        writer = writer.option("header", "true")
    local = _local(target)
    fresh = local is not None and not local.exists()
    try:
        jobs.tagged(lambda: _save(writer, target, jobs))
    except BaseException:
        if fresh and local is not None:
            shutil.rmtree(local, ignore_errors=True)
        raise
    return int(observation.get["rows"])


def _save(writer: Any, target: str, jobs: Jobs) -> None:
    try:
        writer.save(target)
    except Exception as error:
        failure = jobs.failure(error)
        if jobs.cancelled or "session ended" in str(failure):
            raise failure from error
        raise SinkError(f"cannot write {target!r}: {first_line(error)}") from error


def _observation() -> tuple[Any, Any]:
    from pyspark.sql import Observation

    f = functions()
    return Observation, f.count(f.lit(1)).alias("rows")


def _local(path: str) -> Path | None:
    """The path on this machine; None for other file systems."""
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    return None if "://" in path else Path(path)
