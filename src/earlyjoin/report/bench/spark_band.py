"""A band join on Spark beside Spark's own plan for the same predicate, which compares every pair of rows.

50,000 × 50,000 uniform rows at scale 1, with a band that gives a row ten matches among 200,000. The inputs are plain
Parquet files, which the driver reads by itself; both results are fetched as an Arrow table. Notes say what the same
join takes where Spark has to fetch the inputs (they are behind a filter), what fetching takes alone, and what the join
takes where Spark does all of it (``to_df``, buckets of the band) into the sink that keeps no row; and how the two
compare with twice as many rows. Another note is of 2 M × 2 M rows with ten matches a row, which Spark alone would not
end in a day: how long, and how much memory the Python process of a task ever held.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from earlyjoin.api import join
from earlyjoin.predicates import band
from earlyjoin.report.bench.measuring import Bar, BenchResult, Timing
from earlyjoin.spark.session import functions, missing_java, start_session
from earlyjoin.spark.writing.observing import drain
from earlyjoin.state.budget import format_bytes

ROWS = 50_000
MANY_ROWS = 2_000_000
_WIDTH = 1_000_000.0
_EPS = 10 * _WIDTH / 2 / 200_000
_FILES = 2
_WARM_UPS = 30
_PLAIN_WARM_UPS = 3
"""Java compiles what runs often: of a join that takes some ten milliseconds much code, each part of it rarely run; of
Spark's plan one loop, in the first second."""


class SparkBandBenchmark:
    """Compares our band join of DataFrames with Spark's."""

    name = "spark-band"
    title = f"band join of {ROWS:,} × {ROWS:,} rows on Spark, all columns, fetched as Arrow"

    def missing(self) -> str | None:
        """Why it cannot run here; None when it can."""
        return missing_java()

    def run(self, directory: Path, scale: float, rounds: int, say: Callable[[str], None]) -> BenchResult:
        """Warm both up, then time them in turns."""
        say(f"{self.name}: preparing data at scale {scale:g}")
        rows = int(ROWS * scale)
        session = start_session(os.environ.get("EARLYJOIN_MASTER"), quiet=True)
        tables = _open(session, directory, rows)
        engines = {"earlyjoin": partial(_ours, tables, _EPS), "spark": partial(_plain, tables, _EPS)}
        say(f"{self.name}: warming up")
        first_s = {name: engine().total_s for name, engine in engines.items()}
        for name, times in (("earlyjoin", _WARM_UPS), ("spark", _PLAIN_WARM_UPS)):
            for _ in range(times):
                engines[name]()
        timings: dict[str, list[Timing]] = {name: [] for name in engines}
        for number in range(rounds):
            for name, engine in engines.items():
                timings[name].append(engine())
                say(f"{self.name}: round {number + 1} of {rounds}, {name} {timings[name][-1].total_s:.3f} s")
        counts = {timing.rows for runs in timings.values() for timing in runs}
        if len(counts) != 1:
            raise AssertionError(f"the engines disagree on the number of rows: {sorted(counts)}")
        notes = [
            "the first join of the session: " + ", ".join(f"{name} {each:.2f} s" for name, each in first_s.items()),
            _fixed_costs(tables),
            _twice(session, directory, 2 * rows, say),
            _many(session, directory, int(MANY_ROWS * scale), say),
        ]
        return BenchResult(self.name, self.title, timings, (Bar("total", 1 / 50),), notes)


def _ours(tables: list[Any], eps: float) -> Timing:
    return _timed(lambda: len(join(tables[0], tables[1], on=band("x", eps=eps)).to_arrow()))


def _ours_on_executors(tables: list[Any], eps: float) -> Timing:
    query: Any = join(tables[0], tables[1], on=band("x", eps=eps))
    return _timed(lambda: drain(query.to_df()))


def _plain(tables: list[Any], eps: float) -> Timing:
    left, right = (table.alias(name) for table, name in zip(tables, "lr", strict=True))
    return _timed(lambda: len(left.join(right, functions().expr(f"abs(l.x - r.x) <= {eps!r}")).toArrow()))


def _timed(taken: Callable[[], int]) -> Timing:
    """From the call to the last row in the sink."""
    start = time.perf_counter()
    rows = taken()
    total_s = time.perf_counter() - start
    return Timing(total_s, total_s, rows)


def _fixed_costs(tables: list[Any]) -> str:
    """The same join where Spark fetches the inputs, what that alone takes, and where Spark does all of it."""

    def fetched() -> int:
        with ThreadPoolExecutor(2) as pool:
            return sum(map(len, pool.map(lambda table: table.toArrow(), tables)))

    fetching = [_timed(fetched).total_s for _ in range(_WARM_UPS)]
    behind_filters = [table.where("id >= 0") for table in tables]
    filtered = [_ours(behind_filters, _EPS).total_s for _ in range(_WARM_UPS)]
    by_spark = [_ours_on_executors(tables, _EPS).total_s for _ in range(_WARM_UPS)]
    return (
        f"where Spark fetches the inputs, which takes {statistics.median(fetching[-5:]):.3f} s alone, the join takes "
        f"{statistics.median(filtered[-5:]):.3f} s; to_df() into a sink that keeps nothing, where Spark joins by "
        f"buckets, {statistics.median(by_spark[-5:]):.3f} s"
    )


def _twice(session: Any, directory: Path, rows: int, say: Callable[[str], None]) -> str:
    """Where fixed costs weigh less."""
    say(f"{SparkBandBenchmark.name}: joining {rows:,} × {rows:,} rows both ways")
    tables = _open(session, directory, rows)
    ours, theirs = (statistics.median(run(tables, _EPS).total_s for _ in range(3)) for run in (_ours, _plain))
    return f"{rows:,} × {rows:,} rows: {ours:.3f} s against Spark's {theirs:.2f} s, {theirs / ours:.0f} times faster"


def _many(session: Any, directory: Path, rows: int, say: Callable[[str], None]) -> str:
    say(f"{SparkBandBenchmark.name}: joining {rows:,} × {rows:,} rows")
    tables = _open(session, directory, rows)
    timing = _ours_on_executors(tables, 10 * _WIDTH / 2 / rows)
    held = session.range(64).mapInArrow(_peak_nbytes, "peak bigint").toArrow().column("peak").to_numpy().max()
    return (
        f"{rows:,} × {rows:,} rows with ten matches a row: {timing.rows:,} pairs in {timing.total_s:.1f} s; "
        f"a task's Python process never held more than {format_bytes(int(held))}"
    )


def _peak_nbytes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Spark uses its Python processes again: what this one has held at most since it started."""
    import resource

    for batch in batches:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        yield pa.RecordBatch.from_arrays([pa.array([peak] * batch.num_rows, pa.int64())], names=["peak"])


def _open(session: Any, directory: Path, rows: int) -> list[Any]:
    return [session.read.parquet(str(_table(directory, rows, side))) for side in (0, 1)]


def _table(directory: Path, rows: int, side: int) -> Path:
    """Uniform rows in a few files, made once and kept."""
    target = directory / f"uniform-{rows}-{side}"
    if not target.exists():
        part = target.with_suffix(".part")
        part.mkdir(parents=True, exist_ok=True)
        x = np.random.default_rng([rows, side]).uniform(0, _WIDTH, rows)
        whole = pa.table({"id": np.arange(rows), "x": x, "text": [f"row {number}" for number in range(rows)]})
        step = -(-rows // _FILES)
        for number in range(_FILES):
            pq.write_table(whole.slice(number * step, step), part / f"part-{number}.parquet", row_group_size=100_000)
        part.replace(target)
    return target


BENCHMARK = SparkBandBenchmark()
