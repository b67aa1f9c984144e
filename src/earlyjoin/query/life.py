"""What every running query has, whatever engine runs it: where it is in its life, when rows came out, its summary."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from earlyjoin.state.budget import Budget
from earlyjoin.state.clock import Clock
from earlyjoin.state.counters import Counters, Phase


class State(StrEnum):
    """Where a query is in its life."""

    NEW = "new"
    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    PAUSED = "paused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """A moment of a running query."""

    rows_out: int
    rows_in: tuple[int, ...]
    rows_expected: tuple[int | None, ...]
    """Rows of each input, where known."""
    phase: Phase
    seconds: float
    memory_fraction: float
    finished: bool
    estimate: dict[str, Any] | None = None
    """Size of the whole result by now: rows, low, high, confidence; None when nothing can be said."""
    estimates: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    """The same for each aggregate by its name: value, low, high, confidence."""

    @property
    def rate(self) -> float:
        """Result rows a second since the start."""
        return self.rows_out / self.seconds if self.seconds > 0 else 0.0


class Stopwatch:
    """When rows came out: the first, the thousandth, the last."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start: float | None = None
        self._before_s = 0.0
        self.rows = 0
        self.first_s: float | None = None
        self.first_1000_s: float | None = None
        self.total_s: float | None = None

    def start(self) -> None:
        """The query begins; a second call changes nothing."""
        if self._start is None:
            self._start = self._clock.now()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, or until the end."""
        if self.total_s is not None:
            return self.total_s
        return self._before_s + (self._clock.now() - self._start if self._start is not None else 0.0)

    def count(self, rows: int) -> None:
        """Count rows that went out, and note when the first and the thousandth did."""
        self.rows += rows
        if self.first_s is None and self.rows > 0:
            self.first_s = self.elapsed_s
        if self.first_1000_s is None and self.rows >= 1000:
            self.first_1000_s = self.elapsed_s

    def show(self, rows: int) -> None:
        """Note when rows were shown, without counting them: they will be given out later."""
        self.count(rows)
        self.rows -= rows

    def stop(self) -> None:
        """The query is over: time stands still from now on."""
        self.total_s = self.elapsed_s

    def to_dict(self) -> dict[str, Any]:
        """Plain values to go on with after a pause."""
        return {
            "before_s": self.elapsed_s,
            "rows": self.rows,
            "first_s": self.first_s,
            "first_1000_s": self.first_1000_s,
        }

    def go_on(self, values: dict[str, Any]) -> None:
        """Continue the count of an earlier process."""
        self._before_s, self.rows = values["before_s"], values["rows"]
        self.first_s, self.first_1000_s = values["first_s"], values["first_1000_s"]


def summary(
    *,
    engine: str,
    algorithm: str,
    watch: Stopwatch,
    counters: Counters,
    budget: Budget,
    estimate: dict[str, Any] | None,
    estimates: dict[str, dict[str, Any] | None],
) -> dict[str, Any]:
    """The JSON object that ends ``earlyjoin join --json``."""
    seconds = {"first": watch.first_s, "first_1000": watch.first_1000_s, "total": watch.elapsed_s}
    memory: dict[str, Any] = {"budget_bytes": budget.limit.bytes, "peak_bytes": budget.peak_bytes}
    if budget.limit.rows is not None:
        memory |= {"budget_rows": budget.limit.rows, "peak_rows": budget.peak_rows}
    result = {
        "rows": watch.rows,
        "algorithm": algorithm,
        "engine": engine,
        "seconds": {name: None if value is None else round(value, 6) for name, value in seconds.items()},
        "phases": {phase.value: counters.results[phase] for phase in Phase},
        "memory": memory,
        "spill": {
            "bytes_written": counters.bytes_written,
            "bytes_read": counters.bytes_read,
            "pages_written": counters.pages_written,
            "pages_read": counters.pages_read,
            "tuples_written": counters.tuples_written,
            "tuples_read": counters.tuples_read,
        },
        "estimate": estimate,
    }
    return result | {"estimates": estimates} if estimates else result
