"""``earlyjoin demo --engine local``: two bursty sources joined live, then what came when."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.cli.arguments import EXIT_DONE, EXIT_INTERRUPTED
from earlyjoin.cli.demo_report import Arrived, Story, report
from earlyjoin.cli.interruption import Forced, Interruption
from earlyjoin.cli.live import bar, short
from earlyjoin.cli.speaking import say, tell
from earlyjoin.local.options import JoinOptions
from earlyjoin.local.query import LocalQuery
from earlyjoin.local.sources import BatchSizes, Bursty, SimulatedSource, generated
from earlyjoin.predicates import equal

KEYS = 20_000
PACKET_ROWS = 250
LEFT_ROWS, LEFT_BURST = 30_000, 12
RIGHT_ROWS, RIGHT_BURST = 100_000, 30
LEFT_SHARE = 0.7
"""The left input ends after this part of the time, the right one at its end."""
_BURST_GAP_S, _BURST_PAUSE_S = 0.01, 0.5
_BAR = 30


DEFAULT_S = 10.0


def run(options: argparse.Namespace) -> int:
    """Join two generated sources for about ``options.seconds``, and tell what came when."""
    options.seconds = options.seconds or DEFAULT_S
    talks = not options.quiet
    if talks:
        say(
            f"Two inputs of {LEFT_ROWS:,} and {RIGHT_ROWS:,} rows arrive in bursts for about {options.seconds:g} s "
            "and are joined on k while they arrive."
        )
    _load_kernels()
    sources = (
        WatchedSource("left", LEFT_ROWS, LEFT_BURST, LEFT_SHARE * options.seconds, seed=2 * options.seed),
        WatchedSource("right", RIGHT_ROWS, RIGHT_BURST, options.seconds, seed=2 * options.seed + 1),
    )
    query = LocalQuery(sources, equal("k"), JoinOptions(memory="64MB", seed=options.seed))
    found: list[tuple[float, int]] = [(0.0, 0)]
    with query, Interruption(query) as interruption, _view(query, talks):
        start_s = time.monotonic()
        for source in sources:
            source.start_s = start_s
        try:
            with interruption.may_force():
                for batch in query:
                    found.append((time.monotonic() - start_s, found[-1][1] + batch.num_rows))
        except Forced:
            pass
    story = Story(options.seconds, query.summary(), found, *(source.arrived for source in sources))
    say(report(story))
    if interruption.asked:
        tell(f"earlyjoin: interrupted: {found[-1][1]:,} rows found")
        return EXIT_INTERRUPTED
    return EXIT_DONE


class WatchedSource(SimulatedSource):
    """Generated rows in bursts that end after ``seconds``, and a record of when they arrived."""

    def __init__(self, name: str, rows: int, burst: int, seconds: float, *, seed: int) -> None:
        rows_source = generated(rows, KEYS, seed=seed, payload_bytes=16, name=name)
        super().__init__(
            rows_source, bursts(rows // PACKET_ROWS, burst, seconds, seed), rows_per_packet=PACKET_ROWS, seed=seed
        )
        self.start_s = 0.0
        self.arrived = Arrived()

    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        for batch in super().batches(size, start_row):
            self.arrived.add(time.monotonic() - self.start_s, batch.column("k").to_numpy())
            yield batch
        self.arrived.ended_s = time.monotonic() - self.start_s


def bursts(packets: int, burst: int, seconds: float, seed: int) -> Bursty:
    """Bursts so stretched that the last packet comes after ``seconds``."""
    shape = Bursty(_BURST_GAP_S, burst, _BURST_PAUSE_S)
    stretch = seconds / float(shape.gaps_s(np.random.default_rng(seed), packets).sum())
    return Bursty(_BURST_GAP_S * stretch, burst, _BURST_PAUSE_S * stretch)


def _load_kernels() -> None:
    """Compile, or load from the cache, before the clock starts."""
    rows = 2 * PACKET_ROWS  # enough for the tables to grow
    sources = [generated(rows, KEYS, seed=seed) for seed in (0, 1)]
    LocalQuery(sources, equal("k"), JoinOptions(memory="64MB")).to_arrow()


def _view(query: LocalQuery, wanted: bool) -> AbstractContextManager[Any]:
    """Bars that fill before your eyes, on a terminal with Rich; else nothing."""
    if not (wanted and sys.stdout.isatty()):
        return nullcontext()
    try:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text
    except ImportError:
        return nullcontext()

    def draw() -> Any:
        return Text("\n".join(_picture(query)), no_wrap=True, overflow="ellipsis")

    return Live(get_renderable=draw, console=Console(), refresh_per_second=10, transient=True)


def _picture(query: LocalQuery) -> list[str]:
    progress = query.progress
    lines = [f"{progress.seconds:5.1f} s"]
    for side, rows, expected in zip(("left", "right"), progress.rows_in, progress.rows_expected, strict=True):
        part = rows / (expected or 1)
        lines.append(f"{side:>7}  {bar(part, _BAR)} {part:4.0%}  {rows:,} rows")
    lines.append(f"{'memory':>7}  {bar(progress.memory_fraction, _BAR)} {progress.memory_fraction:4.0%}")
    lines.append(f"{'joined':>7}  {progress.rows_out:,} rows, {short(progress.rate)}/s, {progress.phase.value}")
    return lines
