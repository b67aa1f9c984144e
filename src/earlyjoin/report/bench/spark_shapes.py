"""Joins of many shapes on Spark beside Spark's own: first 1000 rows, all rows into Parquet, and memory of the driver.

One warm session. The first rows are ``head(1000)`` of a new query beside ``limit(1000)`` of Spark's join, fetched as
Arrow and as rows, of which the sooner counts: Spark runs other tasks for one than for the other. The total is ``write``
of another new query beside Spark's own write. Runs take turns, medians are compared. The driver's memory is what its
Python process held at most above what it held before, with a budget of 256 MB.
"""

from __future__ import annotations

import gc
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from earlyjoin.api import join
from earlyjoin.errors import InputError
from earlyjoin.report.bench.measuring import TableOutcome
from earlyjoin.report.bench.shapes import SHAPES, Shape, Tables
from earlyjoin.spark.inspecting.plans import explained, shuffles
from earlyjoin.spark.session import missing_java, start_session

FIRST_ROWS = 1000
BUDGET = "256MB"
MOST_FIRST, LEAST_SOONER, MOST_TOTAL, MOST_MEMORY_MB = 1.1, 5.0, 1.05, 256 + 64
_SAMPLED_S = 0.005
_SPARK_HOW = {"semi": "left_semi", "anti": "left_anti"}


@dataclass(slots=True)
class ShapeTimes:
    """What both ways took for a shape."""

    shape: Shape
    shuffles: bool
    seconds: dict[str, list[float]] = field(default_factory=lambda: {run: [] for run in ("f", "sa", "sr", "t", "st")})
    """Ours and Spark's: first rows (Spark's as Arrow and as rows), total."""
    peak_mb: float = 0.0
    first_rows: int = 0
    """How many there were: fewer than asked for where the whole result has no more."""

    def median(self, what: str) -> float | None:
        """Of the runs; None when there were none. ``sf`` is the sooner of Spark's two ways to its first rows."""
        if what == "sf":
            ways = [way for way in (self.median("sa"), self.median("sr")) if way is not None]
            return min(ways, default=None)
        return statistics.median(self.seconds[what]) if self.seconds[what] else None

    def ratio(self, ours: str, theirs: str) -> float | None:
        """Ours over Spark's."""
        one, other = self.median(ours), self.median(theirs)
        return None if one is None or other is None else one / other

    @property
    def missed(self) -> list[str]:
        """The bars that were not reached."""
        first, total = self.ratio("f", "sf"), self.ratio("t", "st")
        missed = []
        if first is not None and first > MOST_FIRST:
            missed.append("first")
        elif first is not None and self.shuffles and first > 1 / LEAST_SOONER:
            whole = "" if self.first_rows == FIRST_ROWS else f" (these {self.first_rows} rows are all)"
            missed.append(f"5 × sooner{whole}")
        if total is not None and total > MOST_TOTAL:
            missed.append("total")
        if self.peak_mb > MOST_MEMORY_MB:
            missed.append("memory")
        return missed


class SparkShapesBenchmark:
    """Compares queries of many shapes with Spark's own joins."""

    name = "spark-shapes"
    title = f"shapes on Spark: first {FIRST_ROWS} rows, all rows into Parquet, and the driver's memory"

    def __init__(self, shapes: Sequence[Shape] = SHAPES) -> None:
        self._shapes = shapes

    def only(self, name: str) -> SparkShapesBenchmark:
        """The same with some shapes alone, as in ``spark-shapes/csv,wide``."""
        wanted = name.split(",")
        known = {shape.name: shape for shape in SHAPES}
        for one in wanted:
            if one not in known:
                raise InputError(f"unknown shape {one!r}; choose from: {', '.join(known)}")
        return SparkShapesBenchmark([known[one] for one in wanted])

    def missing(self) -> str | None:
        """Why it cannot run here; None when it can."""
        here = Path("/proc/self/statm").exists()
        return missing_java() or (None if here else "it reads the memory of a process from /proc")

    def run(self, directory: Path, scale: float, rounds: int, say: Callable[[str], None]) -> TableOutcome:
        """Every shape, both ways in turns."""
        say(f"{self.name}: preparing data at scale {scale:g}")
        session = start_session(os.environ.get("EARLYJOIN_MASTER"), quiet=True)
        tables = Tables(session, directory, scale)
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            say(f"{self.name}: warming up")
            for _ in range(2):
                _measure(SHAPES[0], tables, 1, Path(scratch), _quiet)
            measured = [_measure(shape, tables, rounds, Path(scratch), say) for shape in self._shapes]
        header = ["shape", "first, Spark", "ours", "ratio", "total, Spark", "ours", "ratio", "memory", "missed"]
        return TableOutcome(
            self.name, self.title, header, [_row(one) for one in measured], [_values(one) for one in measured]
        )


def _measure(shape: Shape, tables: Tables, rounds: int, scratch: Path, say: Callable[[str], None]) -> ShapeTimes:
    left, right = shape.frames(tables)
    condition = left[shape.on[0]] == right[shape.on[1]]
    plain = left.join(right, condition, _SPARK_HOW.get(shape.how, shape.how))
    # Spark writes no two columns of one name.
    plain = plain.toDF(*(f"c{number}" for number in range(len(plain.columns))))
    found = ShapeTimes(shape, shuffles(explained(plain)))

    def query() -> Any:
        return join(left, right, on=[shape.on], how=shape.how, memory=BUDGET)

    for number in range(rounds + 1):  # the first round warms up
        rows = {"sa": 0, "sr": 0, "f": 0, "st": 0, "t": 0}
        runs: dict[str, Callable[[], int]] = {
            "sa": lambda: len(plain.limit(FIRST_ROWS).toArrow()),
            "sr": lambda: len(plain.limit(FIRST_ROWS).collect()),
            "f": lambda: len(query().head(FIRST_ROWS)),
        }
        if shape.written and number:
            runs["st"] = lambda: _written(plain, scratch / "plain.parquet")
            runs["t"] = lambda: int(query().write(scratch / "ours.parquet"))
        for what, run in runs.items():
            for name in ("plain.parquet", "ours.parquet"):
                shutil.rmtree(scratch / name, ignore_errors=True)
            seconds, peak_mb, rows[what] = _watched(run)
            if number:
                found.seconds[what].append(seconds)
            if what == "st":
                files = (scratch / "plain.parquet").glob("*.parquet")
                rows[what] = sum(pq.ParquetFile(path).metadata.num_rows for path in files)
            if what in ("f", "t"):
                found.peak_mb = max(found.peak_mb, peak_mb)
        found.first_rows = rows["f"]
        if not rows["sa"] == rows["sr"] == rows["f"] or rows["st"] != rows["t"]:
            raise AssertionError(f"{shape.name}: the engines disagree on the number of rows: {rows}")
    say(f"{SparkShapesBenchmark.name}: {'  '.join(_row(found))}")
    return found


def _written(frame: Any, target: Path) -> int:
    """Spark's own write; its rows are counted afterwards."""
    frame.write.parquet(str(target))
    return 0


def _watched(run: Callable[[], int]) -> tuple[float, float, int]:
    """Seconds, the most memory above what was held before in MB, and what it returned."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    base = peak = _resident()
    over = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(_SAMPLED_S):
            peak = max(peak, _resident())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    start = time.perf_counter()
    try:
        rows = run()
    finally:
        seconds = time.perf_counter() - start
        over.set()
        watcher.join()
    return seconds, (peak - base) / 1e6, rows


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _row(found: ShapeTimes) -> list[str]:
    texts = [found.shape.what + (" *" if found.shuffles else "")]
    for theirs, ours in (("sf", "f"), ("st", "t")):
        one, other, ratio = found.median(theirs), found.median(ours), found.ratio(ours, theirs)
        texts += ["" if value is None else f"{value:.2f} s" for value in (one, other)]
        texts.append("" if ratio is None else f"{ratio:.2f}")
    return [*texts, f"{found.peak_mb:.0f} MB", ", ".join(found.missed)]


def _values(found: ShapeTimes) -> dict[str, Any]:
    return {
        "shape": found.shape.name,
        "shuffles": found.shuffles,
        "first": {
            "earlyjoin": found.seconds["f"],
            "spark": found.seconds["sa"],
            "spark_rows": found.seconds["sr"],
            "ratio": found.ratio("f", "sf"),
        },
        "total": {"earlyjoin": found.seconds["t"], "spark": found.seconds["st"], "ratio": found.ratio("t", "st")},
        "driver_mb": found.peak_mb,
        "missed": found.missed,
    }


def _quiet(text: str) -> None:
    """Say nothing."""


BENCHMARK = SparkShapesBenchmark()
