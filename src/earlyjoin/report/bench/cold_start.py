"""A few rows of a join on the command line: from the start of a process to its end, beside the same elsewhere.

Each engine runs in a process of its own that reads two Parquet files and writes the first 1000 rows of their join to a
third. What is read again afterwards, to count the rows, takes the same few milliseconds for all.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from earlyjoin.errors import EarlyJoinError
from earlyjoin.report.bench import tpch
from earlyjoin.report.bench.measuring import Bar, Benchmark, Engine

_ROWS = 1000
_DUCKDB = """
import duckdb, sys
left, right, target, rows = sys.argv[1:]
duckdb.execute("SET threads = 2")
joined = f"SELECT * FROM '{left}' JOIN '{right}' ON o_orderkey = l_orderkey LIMIT {rows}"
duckdb.execute(f"COPY ({joined}) TO '{target}'")
"""
_POLARS = """
import polars, sys
left, right, target, rows = sys.argv[1:]
left, right = polars.scan_parquet(left), polars.scan_parquet(right)
left.join(right, left_on="o_orderkey", right_on="l_orderkey").head(int(rows)).sink_parquet(target)
"""

Command = Callable[[str, str, str], list[str]]
"""From both inputs and the output to the arguments of a Python process."""


def _ours(left: str, right: str, target: str) -> list[str]:
    join = ["-m", "earlyjoin", "join", left, right, "--on", "o_orderkey=l_orderkey"]
    return [*join, "--limit", str(_ROWS), "--quiet", "-o", target]


def _program(text: str, *paths: str) -> list[str]:
    return ["-c", text, *paths, str(_ROWS)]


def _run(command: Command, left: Path, right: Path) -> Iterator[pa.RecordBatch]:
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "first.parquet"
        arguments = command(str(left), str(right), str(target))
        # Installed packages have their bytecode beside them, whatever the environment of this process says.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, check=False, env=environment
        )
        if done.returncode != 0:
            raise EarlyJoinError(f"{' '.join(arguments[:2])} failed: {done.stderr.strip()[-2000:]}")
        yield from pq.read_table(target).to_batches()


def _prepare(directory: Path, scale: float, *, part: float) -> dict[str, Engine]:
    left, right = (tpch.table(directory, name, scale * part) for name in ("orders", "lineitem"))
    commands: dict[str, Command] = {
        "earlyjoin": _ours,
        "duckdb": partial(_program, _DUCKDB),
        "polars": partial(_program, _POLARS),
    }
    return {name: partial(_run, command, left, right) for name, command in commands.items()}


def _benchmark(name: str, what: str, part: float) -> Benchmark:
    return Benchmark(
        name=name,
        title=f"a process that writes {_ROWS} rows of orders ⋈ lineitem, {what}",
        prepare=partial(_prepare, part=part),
        bars=(Bar("total", 1.3),),
    )


ALL = (
    _benchmark("cold-start", "all tables", 1.0),
    _benchmark("cold-start-small", "a hundredth of the tables", 0.01),
)
