"""Rows counted on their way to a sink, without reading anything twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from earlyjoin.spark.session import functions


def counted(frame: Any) -> tuple[Any, Callable[[], int]]:
    """The same DataFrame, and a function that knows how many rows it had once it has been written."""
    from pyspark.sql import Observation

    observation, f = Observation(), functions()
    watched = frame.observe(observation, f.count(f.lit(1)).alias("rows"))
    return watched, lambda: int(observation.get["rows"])


def drain(frame: Any) -> int:
    """Compute every row and keep none; returns how many there were."""
    watched, rows = counted(frame)
    watched.write.format("noop").mode("overwrite").save()
    return rows()
