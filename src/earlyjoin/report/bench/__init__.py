"""Benchmarks: side by side with other engines in one run, printed as ratios."""

from earlyjoin.report.bench import (
    cliffs,
    cold_start,
    memory,
    small_memory,
    spark_band,
    spark_join,
    spark_shapes,
    sweeps,
    tpch_join,
)
from earlyjoin.report.bench.measuring import Benchmark

AnyBenchmark = (
    Benchmark
    | memory.MemoryBenchmark
    | small_memory.SmallMemoryBenchmark
    | cliffs.CliffsBenchmark
    | spark_join.SparkJoinBenchmark
    | spark_band.SparkBandBenchmark
    | spark_shapes.SparkShapesBenchmark
)
BENCHMARKS: dict[str, AnyBenchmark] = {
    benchmark.name: benchmark
    for benchmark in (
        tpch_join.STORED,
        tpch_join.SHUFFLED,
        *sweeps.ALL,
        *memory.ALL,
        *small_memory.ALL,
        cliffs.BENCHMARK,
        *cold_start.ALL,
        spark_join.BENCHMARK,
        spark_band.BENCHMARK,
        spark_shapes.BENCHMARK,
    )
}

__all__ = ["BENCHMARKS", "AnyBenchmark", "Benchmark"]
