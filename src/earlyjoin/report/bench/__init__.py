"""Benchmarks: side by side with other engines in one run, printed as ratios."""

from earlyjoin.report.bench import sweeps, tpch_join
from earlyjoin.report.bench.measuring import Benchmark

BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark for benchmark in (tpch_join.STORED, tpch_join.SHUFFLED, *sweeps.ALL)
}

__all__ = ["BENCHMARKS", "Benchmark"]
