"""What came when in the demo, beside what a blocking hash join would have shown from the same arrivals."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from earlyjoin.cli.tables import aligned

_STEPS_S = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
_MOST_STEPS = 12
_MARKS = "▁▂▃▄▅▆▇█"
_PLOT_WIDTH = 60

Series = list[tuple[float, int]]
"""Moments and the number of rows that there were from then on."""


@dataclass(slots=True)
class Arrived:
    """What an input has brought so far."""

    batches: list[tuple[float, npt.NDArray[np.int64]]] = field(default_factory=list)
    """When a batch came, and its keys."""
    ended_s: float | None = None

    def add(self, at_s: float, keys: npt.NDArray[np.int64]) -> None:
        """Note when a batch came, and how many rows it had."""
        self.batches.append((at_s, keys))

    def rows(self) -> Series:
        """Rows over time."""
        return _cumulative([(at_s, len(keys)) for at_s, keys in self.batches])


@dataclass(frozen=True, slots=True)
class Story:
    """All that happened."""

    seconds: float
    summary: dict[str, Any]
    found: Series
    left: Arrived
    right: Arrived


def report(story: Story) -> str:
    """A table, the moments that matter, and two curves."""
    seconds = story.summary["seconds"]
    blocking = blocking_rows(story.left, story.right)
    build_s = story.left.ended_s
    parts = [_table(story, blocking), ""]
    if seconds["first"] is not None:
        parts.append(f"first row after {seconds['first']:.2f} s")
    if seconds["first_1000"] is not None:
        parts.append(f"first 1,000 rows after {seconds['first_1000']:.2f} s")
    parts.append(f"{story.summary['rows']:,} rows in all after {seconds['total']:.2f} s")
    parts += [
        f"{name} input ended after {side.ended_s:.2f} s" if side.ended_s is not None else f"{name} input did not end"
        for name, side in (("left", story.left), ("right", story.right))
    ]
    moment = f"before {build_s:.2f} s" if build_s is not None else "at all"
    parts.append(f"a blocking hash join reads all of the left input first: it shows nothing {moment}")
    top = max(1, story.found[-1][1], blocking[-1][1])
    end_s = max(seconds["total"], 1e-9)
    new = np.diff(_over_time(story.found, end_s), prepend=0).tolist()
    parts += [
        "",
        f"rows over time, from 0 to {end_s:.1f} s:",
        f"  earlyjoin      {_curve(_over_time(story.found, end_s), top)}",
        f"  blocking join  {_curve(_over_time(blocking, end_s), top)}",
        f"  new rows       {_curve(new, max(1, *new))}",
    ]
    return "\n".join(parts)


def blocking_rows(build: Arrived, probe: Arrived) -> Series:
    """Rows over time of a join that first reads all of ``build``, then probes with what has come of ``probe``.

    Computed from the keys and the moments of their arrival; its own work is taken to need no time.
    """
    if build.ended_s is None:
        return [(0.0, 0)]
    keys = np.concatenate([keys for _, keys in build.batches])
    highest = max((int(keys.max(initial=0)) for _, keys in probe.batches), default=0)
    partners = np.bincount(keys, minlength=1 + highest)
    return _cumulative([(max(at_s, build.ended_s), int(partners[keys].sum())) for at_s, keys in probe.batches])


def _table(story: Story, blocking: Series) -> str:
    total_s = story.summary["seconds"]["total"]
    step_s = next((step for step in _STEPS_S if story.seconds / step <= _MOST_STEPS), _STEPS_S[-1])
    moments = [step_s * number for number in range(1, int(total_s / step_s) + 1)]
    if moments and total_s - moments[-1] < step_s / 4:
        moments.pop()
    moments.append(total_s)
    columns = (story.left.rows(), story.right.rows(), story.found, blocking)
    rows = [[f"{at_s:.3g} s", *(f"{at(series, at_s):,}" for series in columns)] for at_s in moments]
    return aligned(["after", "left read", "right read", "joined", "blocking join"], rows, right=range(5))


def _cumulative(steps: list[tuple[float, int]]) -> Series:
    series, total = [(0.0, 0)], 0
    for at_s, rows in steps:
        total += rows
        series.append((at_s, total))
    return series


def at(series: Series, moment_s: float) -> int:
    """The rows there were at a moment."""
    index = bisect_right(series, moment_s, key=lambda entry: entry[0])
    return series[index - 1][1] if index else 0


def _over_time(series: Series, end_s: float) -> list[int]:
    return [at(series, end_s * (column + 1) / _PLOT_WIDTH) for column in range(_PLOT_WIDTH)]


def _curve(values: list[int], top: int) -> str:
    return "".join(" " if value == 0 else _MARKS[min(7, value * 8 // top)] for value in values)
