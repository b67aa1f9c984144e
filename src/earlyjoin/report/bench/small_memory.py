"""Joins with a memory of a twentieth of their inputs, beside the same joins in memory: every algorithm on a hash table.

Each join runs in a process of its own (see :mod:`~earlyjoin.report.bench.one_join`), in turns with the one in memory:
into a Parquet file, as ``earlyjoin join -o`` does, and once more with rows only counted. The inputs count as they are
in memory, uncompressed. DuckDB counts the rows that are to come.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq

from earlyjoin.errors import InputError
from earlyjoin.report.bench import tpch
from earlyjoin.report.bench.measuring import TableOutcome
from earlyjoin.report.bench.one_join import JoinMeasurement, JoinToMeasure, measure
from earlyjoin.state.budget import format_bytes

ALGORITHMS = ("xjoin", "hmj", "rpj", "rpj-md", "rpj-dd", "dhj", "dphj", "ehj")
SHARE = 0.05
MOST_TIMES = 6.0
MORE_BYTES = 150_000_000
"""What the process may grow by besides the memory it was given: readers, output in hand, the allocator."""
_IN_MEMORY = "shj"
_WHOLE = "8GB"


class SmallMemoryBenchmark:
    """Compares joins that spill with the join that does not have to."""

    def __init__(self, left: str, right: str, on: tuple[str, str]) -> None:
        self.name = f"small-memory-{left}"
        self.title = f"{left} ⋈ {right}, all columns, into Parquet, memory of {SHARE:.0%} of the inputs"
        self._tables, self._on = (left, right), on

    def missing(self) -> str | None:
        """Why it cannot run here; None when it can."""
        return None

    def run(self, directory: Path, scale: float, rounds: int, say: Callable[[str], None]) -> TableOutcome:
        """All algorithms in turns, each round with the join in memory."""
        say(f"{self.name}: preparing data at scale {scale:g}")
        paths = [tpch.table(directory, name, scale) for name in self._tables]
        memory = f"{SHARE * sum(pq.read_table(path).nbytes for path in paths) / 1e6:.1f}MB"
        expected = _count(paths, self._on)
        names = (_IN_MEMORY, *ALGORITHMS)
        runs: dict[str, list[JoinMeasurement]] = {name: [] for name in names}
        counted: dict[str, list[JoinMeasurement]] = {name: [] for name in names}
        # Beside the data: the system's temporary directory may be small.
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            sinks = ((runs, str(Path(scratch) / "joined.parquet")), (counted, None))
            for number, name, (into, sink) in product(range(rounds), names, sinks):
                given = _WHOLE if name == _IN_MEMORY else memory
                done = measure(JoinToMeasure(str(paths[0]), str(paths[1]), self._on, name, given, sink))
                into[name].append(done)
                what = "counted" if sink is None else "written"
                say(f"{self.name}: round {number + 1} of {rounds}, {name}, {what}: {done.seconds:.2f} s")
                if done.rows != expected:
                    raise AssertionError(f"{name} gave {done.rows:,} rows, DuckDB {expected:,}")
        return self._outcome(runs, counted, memory, expected)

    def _outcome(
        self,
        runs: dict[str, list[JoinMeasurement]],
        counted: dict[str, list[JoinMeasurement]],
        memory: str,
        expected: int,
    ) -> TableOutcome:
        rows, values = [], []
        for name, measured in runs.items():
            times, bare = (_seconds(of[name]) / _seconds(of[_IN_MEMORY]) for of in (runs, counted))
            peak = max(one.peak_bytes for one in measured)
            growth = max((one.growth_bytes for one in measured if one.growth_bytes is not None), default=None)
            budget = measured[0].budget_bytes
            held = peak <= budget and (growth is None or growth <= budget + MORE_BYTES)
            verdict = "" if name == _IN_MEMORY else "reached" if held and times <= MOST_TIMES else "MISSED"
            grown = "unknown" if growth is None else format_bytes(growth)
            peaks = f"{format_bytes(peak)} of {format_bytes(budget)}"
            rows.append([name, f"{_seconds(measured):.2f} s", f"{times:.2f}", f"{bare:.2f}", peaks, grown, verdict])
            shown = {"runs": [asdict(one) for one in measured], "counted": [asdict(one) for one in counted[name]]}
            values.append({"algorithm": name, "times": times, "times_counted": bare} | shown)
        aim = (
            f"the aim: at most {MOST_TIMES:g} times {_IN_MEMORY} in memory, peak within {memory}, "
            f"process larger by at most that and {format_bytes(MORE_BYTES)}"
        )
        header = ["algorithm", "total", "times", "only counted", "peak memory", "process grew by", "aim"]
        title = f"{self.title}, {expected:,} rows as DuckDB counts them"
        return TableOutcome(self.name, title, header, rows, values, [aim])


def _seconds(runs: list[JoinMeasurement]) -> float:
    return statistics.median(one.seconds for one in runs)


def _count(paths: Sequence[Path], on: tuple[str, str]) -> int:
    try:
        import duckdb
    except ImportError:
        raise InputError("this benchmark counts with DuckDB, which is not installed; run: pip install duckdb") from None
    left, right = paths
    found = duckdb.connect().execute(f"SELECT count(*) FROM '{left}' JOIN '{right}' ON {on[0]} = {on[1]}").fetchone()
    assert found is not None
    return int(found[0])


ALL = (
    SmallMemoryBenchmark("customer", "orders", ("c_custkey", "o_custkey")),
    SmallMemoryBenchmark("orders", "lineitem", ("o_orderkey", "l_orderkey")),
)
