"""Timing several engines on the same work, in turns, so that a noisy machine is noisy for all of them."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

Engine = Callable[[], Iterable[pa.RecordBatch]]
"""Starts a query; its batches are then taken one by one."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One run of one engine."""

    first_s: float
    """Until the first batch was in hand."""
    total_s: float
    rows: int


@dataclass(frozen=True, slots=True)
class Bar:
    """A ratio that is to be reached: ours over the other engine's."""

    what: str
    most: float


@dataclass(slots=True)
class BenchResult:
    """What a benchmark measured: medians over all rounds, and the ratio of the medians."""

    name: str
    title: str
    timings: dict[str, list[Timing]]
    bars: tuple[Bar, ...]
    notes: list[str] = field(default_factory=list)

    def median(self, engine: str, what: str) -> float:
        """Median seconds of an engine; ``what`` is "first" or "total"."""
        return float(statistics.median(getattr(timing, f"{what}_s") for timing in self.timings[engine]))

    def ratio(self, what: str, other: str) -> float:
        """Our median over another engine's."""
        return self.median("earlyjoin", what) / self.median(other, what)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        others = [engine for engine in self.timings if engine != "earlyjoin"]
        return {
            "name": self.name,
            "timings": {engine: [asdict(timing) for timing in runs] for engine, runs in self.timings.items()},
            "ratios": {other: {what: self.ratio(what, other) for what in ("first", "total")} for other in others},
            "bars": [asdict(bar) for bar in self.bars],
            "notes": self.notes,
        }


@dataclass(slots=True)
class TableOutcome:
    """What a benchmark measured that compares otherwise than engine by engine."""

    name: str
    title: str
    header: list[str]
    rows: list[list[str]]
    """The first column is a name, the others are figures."""
    values: list[dict[str, Any]]
    """The same and more as plain values, for JSON."""
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"name": self.name, "values": self.values, "notes": self.notes}


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A named piece of work for several engines."""

    name: str
    title: str
    prepare: Callable[[Path, float], dict[str, Engine]]
    """Makes the data in a directory at a scale, and returns the engines by name; ours is "earlyjoin"."""
    bars: tuple[Bar, ...]
    profile: Callable[[Path, float], list[str]] | None = None
    """Further facts to print under the table."""

    def missing(self) -> str | None:
        """Why it cannot run here; None when it can."""
        return None

    def run(self, directory: Path, scale: float, rounds: int, say: Callable[[str], None]) -> BenchResult:
        """Warm every engine up once, then time them in turns."""
        say(f"{self.name}: preparing data at scale {scale:g}")
        engines = self.prepare(directory, scale)
        for name, engine in engines.items():
            say(f"{self.name}: warming up {name}")
            timed(engine)
        timings: dict[str, list[Timing]] = {name: [] for name in engines}
        for number in range(rounds):
            for name, engine in engines.items():
                timings[name].append(timed(engine))
                say(f"{self.name}: round {number + 1} of {rounds}, {name} {timings[name][-1].total_s:.2f} s")
        counts = {timing.rows for runs in timings.values() for timing in runs}
        if len(counts) != 1:
            raise AssertionError(f"the engines disagree on the number of rows: {sorted(counts)}")
        notes = self.profile(directory, scale) if self.profile is not None else []
        return BenchResult(self.name, self.title, timings, self.bars, notes)


def timed(engine: Engine) -> Timing:
    """Run an engine to its end."""
    gc.collect()
    start = time.perf_counter()
    first_s = None
    rows = 0
    for batch in engine():
        if first_s is None:
            first_s = time.perf_counter() - start
        rows += batch.num_rows
    total_s = time.perf_counter() - start
    return Timing(first_s if first_s is not None else total_s, total_s, rows)
