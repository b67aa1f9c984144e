"""Hard joins inside small memories beside DuckDB, which may use as much as it likes: how steep is the price?

Rows are taken as Arrow batches and counted. Every join runs in this process, once to warm up (kernels, caches of the
file system), then in turns with DuckDB's. One that takes too long is stopped, and shown as such.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from earlyjoin.api import join
from earlyjoin.errors import BudgetExceeded, InputError
from earlyjoin.report.bench.cliff_shapes import CLIFFS, Cliff
from earlyjoin.report.bench.measuring import TableOutcome, timed

MOST_TIMES = 10.0
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class CliffsBenchmark:
    """Compares joins inside a small memory with DuckDB's without a limit."""

    cliffs: tuple[Cliff, ...] = CLIFFS
    name: str = "cliffs"
    title: str = "joins that are hard inside a small memory, beside DuckDB without a limit"

    def missing(self) -> str | None:
        """Why it cannot run here; None when it can."""
        return None

    def only(self, names: str) -> CliffsBenchmark:
        """Some of the joins, separated by commas."""
        by_name = {cliff.name: cliff for cliff in self.cliffs}
        unknown = [name for name in names.split(",") if name not in by_name]
        if unknown:
            raise InputError(f"unknown part {unknown[0]!r} of {self.name}; choose from: {', '.join(by_name)}")
        return replace(self, cliffs=tuple(by_name[name] for name in names.split(",")))

    def run(self, directory: Path, scale: float, rounds: int, say: Callable[[str], None]) -> TableOutcome:
        """All joins, one after the other; sizes are fixed, so that ``scale`` changes nothing."""
        outcome = TableOutcome(
            self.name, self.title, ["join", "memory", "algorithm", "DuckDB", "ours", "times", "aim"], [], []
        )
        for cliff in self.cliffs:
            say(f"{self.name}: preparing {cliff.name}")
            paths = cliff.inputs(directory)
            for algorithm in cliff.algorithms:
                say(f"{self.name}: {cliff.name}, {algorithm}")
                try:
                    self._add(outcome, cliff, algorithm, _measure(paths, cliff, algorithm, rounds))
                except BudgetExceeded as error:
                    say(f"{self.name}: {cliff.name}, {algorithm}: {error}")
                    what = f"{cliff.name}: {cliff.what}"
                    outcome.rows.append([what, cliff.memory, algorithm, "", "refused", "", "MISSED"])
        outcome.notes.append(f"the aim: at most {MOST_TIMES:g} times DuckDB's time")
        return outcome

    def _add(self, outcome: TableOutcome, cliff: Cliff, algorithm: str, seconds: tuple[float, float | None]) -> None:
        theirs, ours = seconds
        times = (PATIENCE_S if ours is None else ours) / theirs
        shown = f"over {PATIENCE_S:g} s" if ours is None else f"{ours:.2f} s"
        verdict = "reached" if ours is not None and times <= MOST_TIMES else "MISSED"
        figure = f"{times:.1f}" if ours is not None else f"over {times:.0f}"
        what = f"{cliff.name}: {cliff.what}"
        outcome.rows.append([what, cliff.memory, algorithm, f"{theirs:.3f} s", shown, figure, verdict])
        outcome.values.append(
            {"name": cliff.name, "memory": cliff.memory, "algorithm": algorithm, "duckdb_s": theirs, "ours_s": ours}
        )


def _measure(paths: tuple[Path, Path], cliff: Cliff, algorithm: str, rounds: int) -> tuple[float, float | None]:
    """Median seconds of DuckDB and of ours; None for ours when it was stopped."""
    theirs, ours = [], []
    for number in range(rounds + 1):
        duckdb = timed(lambda: _duckdb(paths))
        seconds, rows = _ours(paths, cliff, algorithm)
        if seconds is None:
            return duckdb.total_s, None
        if rows != duckdb.rows:
            raise AssertionError(f"{cliff.name}, {algorithm}: {rows:,} rows, DuckDB {duckdb.rows:,}")
        if number or seconds > PATIENCE_S / 4:  # warming up matters to short runs alone
            theirs.append(duckdb.total_s)
            ours.append(seconds)
        if seconds > PATIENCE_S / 4:
            break
    return statistics.median(theirs), statistics.median(ours)


def _ours(paths: tuple[Path, Path], cliff: Cliff, algorithm: str) -> tuple[float | None, int]:
    """Seconds and rows; None when patience ended first."""
    left, right = map(str, paths)
    start = time.perf_counter()
    query = join(left, right, on="k", memory=cliff.memory, algorithm=algorithm, engine="local")
    stopper = threading.Timer(PATIENCE_S, query.stop)
    stopper.start()
    try:
        rows = sum(batch.num_rows for batch in query)
    finally:
        stopper.cancel()
    seconds = time.perf_counter() - start
    return (None, rows) if seconds >= PATIENCE_S else (seconds, rows)


def _duckdb(paths: tuple[Path, Path]) -> Iterable[pa.RecordBatch]:
    try:
        import duckdb
    except ImportError:
        raise InputError("this benchmark needs DuckDB, which is not installed; run: pip install duckdb") from None
    left, right = (f"'{path}/*.parquet'" for path in paths)
    result: Any = duckdb.connect().sql(f"SELECT * FROM {left} JOIN {right} USING (k)")
    read = result.to_arrow_reader if hasattr(result, "to_arrow_reader") else result.fetch_arrow_reader
    batches: Iterable[pa.RecordBatch] = read(100_000)
    return batches


BENCHMARK = CliffsBenchmark()
