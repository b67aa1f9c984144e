"""One join of two Parquet files in a process of its own: how long it takes and how far the process grows.

``python -m earlyjoin.report.bench.one_join`` reads a :class:`JoinToMeasure` as JSON from standard input and prints a
:class:`JoinMeasurement` as JSON. Kernels are compiled before anything is measured, by the same join of small tables.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from earlyjoin.algorithms import registry
from earlyjoin.api import join
from earlyjoin.errors import EarlyJoinError
from earlyjoin.query.query import Query

_WARM_ROWS = 20_000
_WARM_BYTES = 4_000_000
_WARM_MEMORY = "2MB"
_WARM_WHOLE = "200MB"


@dataclass(frozen=True, slots=True)
class JoinToMeasure:
    """What to join, and how."""

    left: str
    right: str
    on: tuple[str, str]
    algorithm: str
    memory: str
    sink: str | None = None
    """File for the result; None counts rows and lets them go."""
    how: str = "inner"


@dataclass(frozen=True, slots=True)
class JoinMeasurement:
    """What came of it."""

    rows: int
    seconds: float
    peak_bytes: int
    """Most memory that was ever booked."""
    budget_bytes: int
    growth_bytes: int | None
    """By how much the process was larger at its largest than before; None where the system does not tell."""


def measure(task: JoinToMeasure) -> JoinMeasurement:
    """Run a join in a new process."""
    command = [sys.executable, "-m", "earlyjoin.report.bench.one_join"]
    done = subprocess.run(command, input=json.dumps(asdict(task)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EarlyJoinError(f"{task.algorithm} with {task.memory} failed: {done.stderr.strip()[-2000:]}")
    return JoinMeasurement(**json.loads(done.stdout))


def _run(task: JoinToMeasure) -> JoinMeasurement:
    with tempfile.TemporaryDirectory() as scratch:
        for small in small_joins(task, Path(scratch)):
            _perform(small)
    _forget_peak()
    before = _status("VmRSS")
    start = time.perf_counter()
    query, rows = _perform(task)
    seconds = time.perf_counter() - start
    peak, memory = _status("VmHWM"), query.summary()["memory"]
    growth = peak - before if peak is not None and before is not None else None
    return JoinMeasurement(rows, seconds, memory["peak_bytes"], memory["budget_bytes"], growth)


def _perform(task: JoinToMeasure) -> tuple[Query, int]:
    query = join(
        task.left,
        task.right,
        on=[task.on],
        how=task.how,
        algorithm=task.algorithm,
        memory=task.memory,
        engine="local",
    )
    if task.sink is None:
        return query, sum(batch.num_rows for batch in query)
    return query, query.write(task.sink, overwrite=True)


def small_joins(task: JoinToMeasure, directory: Path) -> list[JoinToMeasure]:
    """The same join of a few rows in that directory: with a memory that they exceed, if it can spill, and in memory."""
    rng = np.random.default_rng(0)
    paths = []
    for name, path, key in zip(("left", "right"), (task.left, task.right), task.on, strict=True):
        rows = next(pq.ParquetFile(path).iter_batches(_WARM_ROWS))
        rows = rows.slice(0, max(1, _WARM_BYTES * len(rows) // max(_WARM_BYTES, rows.nbytes)))
        keys = pa.array(rng.integers(0, len(rows), len(rows)), rows.schema.field(key).type)
        table = pa.table(rows).set_column(rows.schema.get_field_index(key), key, keys)
        paths.append(str(directory / f"{name}.parquet"))
        pq.write_table(table, paths[-1])
    small = replace(
        task, left=paths[0], right=paths[1], sink=None if task.sink is None else str(directory / "out.parquet")
    )
    spills = registry.get(task.algorithm).description.spills
    return [replace(small, memory=memory) for memory in ((_WARM_MEMORY, _WARM_WHOLE) if spills else (_WARM_WHOLE,))]


def _forget_peak() -> None:
    """Let the largest size of this process be counted from now on (Linux)."""
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")


def _status(name: str) -> int | None:
    """A size of this process in bytes, as Linux tells it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    sizes = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(sizes[name].split()[0]) * 1024


if __name__ == "__main__":
    given = json.load(sys.stdin)
    print(json.dumps(asdict(_run(JoinToMeasure(**{**given, "on": tuple(given["on"])})))))
