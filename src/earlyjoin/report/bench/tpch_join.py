"""orders ⋈ lineitem, all columns, from Parquet: symmetric hash join against DuckDB with two threads."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from earlyjoin.api import join
from earlyjoin.errors import InputError
from earlyjoin.report.bench import tpch
from earlyjoin.report.bench.measuring import Bar, Benchmark, Engine

_OUTPUT_ROWS = 65536


def _ours(orders: Path, lineitem: Path) -> Iterable[pa.RecordBatch]:
    return join(orders, lineitem, on=[("o_orderkey", "l_orderkey")], algorithm="shj", memory="8GB")


def _duckdb(connection: Any, orders: Path, lineitem: Path) -> Iterable[pa.RecordBatch]:
    query = f"SELECT * FROM '{orders}' JOIN '{lineitem}' ON o_orderkey = l_orderkey"
    batches: Iterable[pa.RecordBatch] = connection.sql(query).to_arrow_reader(_OUTPUT_ROWS)
    return batches


def _prepare(directory: Path, scale: float, *, shuffled: bool) -> dict[str, Engine]:
    try:
        import duckdb
    except ImportError:
        raise InputError(
            "this benchmark compares with DuckDB, which is not installed; run: pip install duckdb"
        ) from None
    tables = [tpch.table(directory, name, scale, shuffled=shuffled) for name in ("orders", "lineitem")]
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    return {"earlyjoin": partial(_ours, *tables), "duckdb": partial(_duckdb, connection, *tables)}


def _profile(directory: Path, scale: float, *, shuffled: bool) -> list[str]:
    """Python work of a whole run: function calls, and time spent in Python code of the library itself."""
    tables = [tpch.table(directory, name, scale, shuffled=shuffled) for name in ("orders", "lineitem")]
    profiler = cProfile.Profile()
    rows = batches = 0
    profiler.enable()
    for batch in _ours(*tables):
        rows += batch.num_rows
        batches += 1
    profiler.disable()
    stats: Any = pstats.Stats(profiler)
    # Kernels are compiled: the profiler sees one call of each, and its time is the machine code's.
    interpreted = {
        key: entry for key, entry in stats.stats.items() if "earlyjoin" in key[0] and "kernels" not in key[0]
    }
    own_s = sum(entry[2] for entry in interpreted.values())
    return [
        f"Python calls: {stats.total_calls:,} for {rows:,} rows in {batches} batches "
        f"({1000 * stats.total_calls / rows:.1f} for 1000 rows)",
        f"time in earlyjoin's own Python code: {own_s:.3f} s of {stats.total_tt:.3f} s, "
        f"{1e9 * own_s / rows:.0f} ns a row",
    ]


def _benchmark(name: str, title: str, *, shuffled: bool) -> Benchmark:
    return Benchmark(
        name=name,
        title=title,
        prepare=partial(_prepare, shuffled=shuffled),
        bars=(Bar("first", 0.2), Bar("total", 2.5)),
        profile=partial(_profile, shuffled=shuffled),
    )


STORED = _benchmark("tpch-join", "orders ⋈ lineitem, all columns, as generated (ordered by key)", shuffled=False)
SHUFFLED = _benchmark("tpch-join-shuffled", "orders ⋈ lineitem, all columns, rows in random order", shuffled=True)
