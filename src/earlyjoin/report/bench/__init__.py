"""Benchmarks: side by side with other engines in one run, printed as ratios."""

from earlyjoin.report.bench import spark_band, spark_join, sweeps, tpch_join
from earlyjoin.report.bench.measuring import Benchmark

BENCHMARKS: dict[str, Benchmark | spark_join.SparkJoinBenchmark | spark_band.SparkBandBenchmark] = {
    benchmark.name: benchmark
    for benchmark in (
        tpch_join.STORED,
        tpch_join.SHUFFLED,
        *sweeps.ALL,
        spark_join.BENCHMARK,
        spark_band.BENCHMARK,
    )
}

__all__ = ["BENCHMARKS", "Benchmark"]
