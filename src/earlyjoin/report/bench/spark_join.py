"""orders ⋈ lineitem, all columns, on Spark: the first 1000 rows and the whole into Parquet, beside Spark's plain join.

One warm session for both. Ours is one query: its head, and then all of it written. Spark's are two: one with
``limit(1000)``, one that writes. Tables are directories of 30 files; rows are in random order at scale 1 and below, and
in the order of the generator above, where part i of orders matches part i of lineitem. Above scale 1 the session is
warmed up by the tables of scale 1.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from earlyjoin.api import join
from earlyjoin.report.bench import tpch
from earlyjoin.report.bench.measuring import Bar, BenchResult, Timing
from earlyjoin.spark.session import missing_java, start_session

FIRST_ROWS = 1000
PARTS = 30
_MOST_SHUFFLED = 1.0
_TABLES = ("orders", "lineitem")
_KEYS = ("o_orderkey", "l_orderkey")


class SparkJoinBenchmark:
    """Compares a query on Spark with Spark's own join."""

    name = "spark-join"
    title = f"orders ⋈ lineitem, all columns, on Spark: first {FIRST_ROWS} rows, and all rows into Parquet"

    def missing(self) -> str | None:
        """Why it cannot run here; None when it can."""
        return missing_java()

    def run(self, directory: Path, scale: float, rounds: int, say: Callable[[str], None]) -> BenchResult:
        """Warm both up once, then time them in turns."""
        say(f"{self.name}: preparing data at scale {scale:g}")
        session = start_session(os.environ.get("EARLYJOIN_MASTER"), quiet=True)
        tables, warming = (
            [_open(session, directory, name, size) for name in _TABLES] for size in (scale, min(scale, _MOST_SHUFFLED))
        )
        # Beside the data: the system's temporary directory may be small.
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            target = Path(scratch) / "joined.parquet"
            engines = {"earlyjoin": ours, "spark": plain}
            # On tables of some size: after a few files, whichever came first was half as fast again as later on.
            for name, engine in engines.items():
                say(f"{self.name}: warming up {name}")
                engine(warming, target)
            timings: dict[str, list[Timing]] = {name: [] for name in engines}
            for number in range(rounds):
                for name, engine in engines.items():
                    timing = engine(tables, target)
                    timings[name].append(timing)
                    say(
                        f"{self.name}: round {number + 1} of {rounds}, {name}: first {FIRST_ROWS} rows "
                        f"{timing.first_s:.2f} s, all {timing.total_s:.2f} s"
                    )
        counts = {timing.rows for runs in timings.values() for timing in runs}
        if len(counts) != 1:
            raise AssertionError(f"the engines disagree on the number of rows: {sorted(counts)}")
        first = 1 / 10 if scale <= _MOST_SHUFFLED else 1 / 15
        return BenchResult(self.name, self.title, timings, (Bar("first", first), Bar("total", 1.15)))


def _open(session: Any, directory: Path, name: str, scale: float) -> Any:
    return session.read.parquet(str(parts(directory, name, scale)))


def ours(tables: list[Any], target: Path) -> Timing:
    """One query: its first rows, then all of it."""
    shutil.rmtree(target, ignore_errors=True)
    start = time.perf_counter()
    query = join(tables[0], tables[1], on=[_KEYS])
    query.head(FIRST_ROWS)
    first_s = time.perf_counter() - start
    rows = query.write(target)
    return Timing(first_s, time.perf_counter() - start, rows)


def plain(tables: list[Any], target: Path) -> Timing:
    """Spark's own join, once for the first rows and once for all."""
    shutil.rmtree(target, ignore_errors=True)
    joined = tables[0].join(tables[1], tables[0][_KEYS[0]] == tables[1][_KEYS[1]])
    start = time.perf_counter()
    joined.limit(FIRST_ROWS).toArrow()
    first_s = time.perf_counter() - start
    start = time.perf_counter()
    joined.write.parquet(str(target))
    total_s = time.perf_counter() - start
    rows = sum(pq.ParquetFile(path).metadata.num_rows for path in target.glob("*.parquet"))
    return Timing(first_s, total_s, rows)


def parts(directory: Path, name: str, scale: float, count: int = PARTS) -> Path:
    """A table as a directory of files, made once and kept."""
    if scale > _MOST_SHUFFLED:
        return tpch.parts(directory, name, scale, count)
    source = tpch.table(directory, name, scale, shuffled=True)
    target = source.with_name(f"{source.stem}-{count}-parts")
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=source.parent) as fresh:
            cut(source, Path(fresh) / target.name, count)
            (Path(fresh) / target.name).replace(target)
    return target


def cut(source: Path, target: Path, count: int) -> None:
    """A Parquet file as a directory of so many, in the same order."""
    target.mkdir()
    with pq.ParquetFile(source) as file:
        rows, writer, done = file.metadata.num_rows, None, 0
        # Arrow's views are for memory; Spark reads plain strings.
        schema = pa.schema(
            [f.with_type(pa.string()) if pa.types.is_string_view(f.type) else f for f in file.schema_arrow]
        )
        part = 0
        for batch in file.iter_batches(65536):
            table = pa.Table.from_batches([batch]).cast(schema)
            while len(table):
                if writer is None:
                    writer = pq.ParquetWriter(target / f"part-{part:05}.parquet", schema)
                some = table.slice(0, (part + 1) * rows // count - done)
                writer.write_table(some)
                table, done = table.slice(len(some)), done + len(some)
                if done == (part + 1) * rows // count:
                    writer.close()
                    writer, part = None, part + 1


BENCHMARK = SparkJoinBenchmark()
