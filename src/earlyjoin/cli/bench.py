"""``earlyjoin bench``: ratios against other engines, measured side by side in one run."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from earlyjoin.cli.arguments import EXIT_DONE
from earlyjoin.cli.speaking import say, tell
from earlyjoin.cli.tables import aligned
from earlyjoin.errors import InputError
from earlyjoin.report.bench import BENCHMARKS, AnyBenchmark
from earlyjoin.report.bench.cliffs import CliffsBenchmark
from earlyjoin.report.bench.measuring import BenchResult, TableOutcome
from earlyjoin.report.bench.spark_shapes import SparkShapesBenchmark
from earlyjoin.report.bench.tpch import default_directory


def run(options: argparse.Namespace) -> int:
    """Run the benchmarks that were named, or all, and print medians and ratios."""
    names = options.names or list(BENCHMARKS)
    chosen = {name: _benchmark(name) for name in names}
    directory = Path(options.data) if options.data is not None else default_directory()
    outcomes: list[BenchResult | TableOutcome] = []
    for name, benchmark in chosen.items():
        missing = benchmark.missing()
        if missing is not None and not options.names:
            tell(f"{name}: left out: {missing}")
            continue
        outcome = benchmark.run(directory, options.scale, options.rounds, tell)
        outcomes.append(outcome)
        if not options.json:
            say(_text(outcome) + "\n")
    if options.json:
        say(json.dumps([outcome.to_dict() for outcome in outcomes]))
    return EXIT_DONE


def _benchmark(name: str) -> AnyBenchmark:
    """By its name; ``spark-shapes/csv,wide`` is a part of one."""
    whole, _, part = name.partition("/")
    if whole not in BENCHMARKS:
        raise InputError(f"unknown benchmark {name!r}; choose from: {', '.join(BENCHMARKS)}")
    benchmark = BENCHMARKS[whole]
    if not part:
        return benchmark
    if not isinstance(benchmark, SparkShapesBenchmark | CliffsBenchmark):
        raise InputError(f"{whole} has no parts; leave /{part} out")
    return benchmark.only(part)


def _text(outcome: BenchResult | TableOutcome) -> str:
    if isinstance(outcome, TableOutcome):
        table = aligned(outcome.header, outcome.rows, right=range(1, len(outcome.header)))
        return "\n".join([f"{outcome.name}: {outcome.title}", table, *outcome.notes])
    rows = []
    for engine in outcome.timings:
        row = [engine]
        for what in ("first", "total"):
            row.append(f"{outcome.median(engine, what):.3f} s")
            row.append("" if engine == "earlyjoin" else f"{outcome.ratio(what, engine):.2f}")
        rows.append(row)
    table = aligned(["engine", "first batch", "ours/theirs", "total", "ours/theirs"], rows, right=[1, 2, 3, 4])
    bars = [_bar(outcome, bar.what, bar.most) for bar in outcome.bars]
    count = next(iter(outcome.timings.values()))[0].rows
    return "\n".join([f"{outcome.name}: {outcome.title}, {count:,} rows", table, *bars, *outcome.notes])


def _bar(outcome: BenchResult, what: str, most: float) -> str:
    worst = max(outcome.ratio(what, engine) for engine in outcome.timings if engine != "earlyjoin")
    verdict = "reached" if worst <= most else "MISSED"
    return f"{what}: at most {most:g} times the other engine's is the aim, measured {worst:.2f}: {verdict}"
