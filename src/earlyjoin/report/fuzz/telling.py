"""What the fuzz prints: every finding with the command that replays it, and at the end how many of each kind."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TextIO

from earlyjoin.report.fuzz.checking import Verdict

CASES_A_SEED = 1_000_000
"""Case numbers of one seed of the command; the next seed begins behind them."""


def numbers(seed: int) -> Iterator[int]:
    """The cases of a seed."""
    yield from range(seed * CASES_A_SEED, (seed + 1) * CASES_A_SEED)


def until(seeds: Iterable[int], seconds: float) -> Iterator[int]:
    """As many as begin before the time is over."""
    end = time.monotonic() + seconds
    for seed in seeds:
        if time.monotonic() >= end:
            return
        yield seed


class Tally:
    """Counts what came of the cases, and tells about those that failed."""

    def __init__(self, out: TextIO = sys.stdout, *, every: bool = False) -> None:
        self._out, self._every = out, every
        self.kinds: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self.failed: list[int] = []

    def take(self, seed: int, text: str, verdict: Verdict) -> None:
        """One more case."""
        self.kinds[verdict.kind.value] += 1
        if verdict.kind.value == "refused":
            self._refusals[verdict.detail.split(":")[0]] += 1
        if verdict.kind.failed:
            self.failed.append(seed)
        if verdict.kind.failed or self._every:
            print(f"{verdict.kind.value}: case {seed}: {text}", file=self._out)
            if verdict.detail:
                print(f"    {verdict.detail}", file=self._out)
            print(f"    make fuzz CASE={seed}", file=self._out, flush=True)

    def end(self, seconds: float) -> int:
        """The counts, and the exit code."""
        total = sum(self.kinds.values())
        print(f"{total:,} cases in {seconds:.0f} s", file=self._out)
        for kind, count in self.kinds.most_common():
            print(f"  {kind:<18}{count:>7,}  {count / total:6.1%}", file=self._out)
        for kind, count in self._refusals.most_common():
            print(f"    {kind} before the first row: {count:,}", file=self._out)
        if self.failed:
            print(f"failed: {', '.join(map(str, self.failed[:20]))}", file=self._out)
        return 1 if self.failed else 0
