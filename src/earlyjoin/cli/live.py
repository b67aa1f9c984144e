"""The line that lives while a query runs: rows found, rate, phase, inputs read, memory against the budget.

It is drawn by a thread of its own from ``query.progress``, so it also moves while the query waits for its inputs.
"""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from earlyjoin.query.life import Progress
from earlyjoin.state.budget import format_bytes

if TYPE_CHECKING:
    from earlyjoin.query.query import Query

REFRESHES_A_SECOND = 8
_RATE_OVER_S = 2.0
_BAR = 10


class Line(ABC):
    """A context in which the line is shown. A terminal that was closed shows none, which is no failure."""

    def __enter__(self) -> Line:
        with suppress(OSError):
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._stop()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Take the line away while something else is printed."""
        with suppress(OSError):
            self._stop()
        try:
            yield
        finally:
            with suppress(OSError):
                self._start()

    @abstractmethod
    def _start(self) -> None:
        """Begin to show the line."""

    @abstractmethod
    def _stop(self) -> None:
        """Remove the line."""


def line_for(query: Query, *, quiet: bool) -> Line:
    """The best line that standard error can show."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        return NoLine()
    try:
        import rich  # noqa: F401
    except ImportError:
        return PlainLine(Wording(query))
    return RichLine(Wording(query))


class NoLine(Line):
    """Shows nothing: for pipes, ``--quiet`` and no terminal."""

    def _start(self) -> None:
        pass

    def _stop(self) -> None:
        pass


class RichLine(Line):
    """Redrawn eight times a second by Rich."""

    def __init__(self, wording: Wording) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        def draw() -> Any:
            return Text(wording.now(), no_wrap=True, overflow="ellipsis")

        self._live = Live(
            get_renderable=draw,
            console=Console(stderr=True),
            refresh_per_second=REFRESHES_A_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def _start(self) -> None:
        self._live.start(refresh=True)

    def _stop(self) -> None:
        self._live.stop()


class PlainLine(Line):
    """Rewritten once a second, for terminals without Rich."""

    def __init__(self, wording: Wording, every_s: float = 1.0) -> None:
        self._wording = wording
        self._every_s = every_s
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def _start(self) -> None:
        self._over.clear()
        self._thread = threading.Thread(target=self._draw, name="earlyjoin-line", daemon=True)
        self._thread.start()

    def _stop(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _draw(self) -> None:
        with suppress(OSError):
            while not self._over.wait(self._every_s):
                sys.stderr.write(f"\r{self._wording.now()}\x1b[K")
                sys.stderr.flush()


class Wording:
    """The text of the line, with a rate over the last two seconds."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._recent: deque[tuple[float, int]] = deque([(0.0, 0)])

    def now(self) -> str:
        """The line as it should be now."""
        progress = self._query.progress
        writing = getattr(self._query, "writing", None)
        if writing is not None and not progress.rows_out:
            return written(progress.seconds, writing.target.nbytes)
        self._recent.append((progress.seconds, progress.rows_out))
        while len(self._recent) > 2 and self._recent[1][0] <= progress.seconds - _RATE_OVER_S:
            self._recent.popleft()
        then_s, then_rows = self._recent[0]
        passed_s = progress.seconds - then_s
        rate = (progress.rows_out - then_rows) / passed_s if passed_s > 0 else 0.0
        inputs = [f"{name} {_read(progress, number)}" for number, name in enumerate(self._query.plan.names)]
        memory = f"memory {bar(progress.memory_fraction, _BAR)} {progress.memory_fraction:4.0%}"
        whole = [f"about {short(progress.estimate['rows'])} in all"] if progress.estimate is not None else []
        estimates = [f"{name} {estimated(one)}" for name, one in progress.estimates.items() if one is not None]
        found = [f"{progress.rows_out:,} rows", f"{short(rate)}/s", progress.phase.value]
        return " · ".join([*found, *inputs, memory, *whole, *estimates])


def written(seconds: float, nbytes: int | None) -> str:
    """A writer of Spark's at work: it tells how many rows there were at its end.

    >>> written(12.3, 143_000_000)
    'bulk · 12 s · 143.0 MB written'
    """
    return " · ".join(["bulk", f"{seconds:.0f} s", *([f"{format_bytes(nbytes)} written"] if nbytes else [])])


def short(number: float) -> str:
    """A number in few characters: 950, 12.3k, 4.5M.

    >>> short(12_345)
    '12.3k'
    """
    for unit in ("", "k", "M"):
        if number < 999.5:
            return f"{number:.0f}{unit}" if not unit or number >= 99.95 else f"{number:.1f}{unit}"
        number /= 1000
    return f"{number:.1f}G"


def estimated(estimate: dict[str, Any] | None) -> str:
    """An estimate as number ± half of its interval; unknown when there is none.

    >>> estimated({"value": 1234.5, "low": 1200.0, "high": 1280.0, "confidence": 0.95})
    '1,234 ± 40'
    >>> estimated({"value": 0.25, "low": 0.25, "high": 0.25, "confidence": 1.0})
    '0.25'
    """
    if estimate is None:
        return "unknown"
    half = (estimate["high"] - estimate["low"]) / 2
    return _number(estimate["value"]) + (f" ± {_number(half)}" if half else "")


def _number(value: float) -> str:
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1000 else f"{value:.4g}"


def bar(fraction: float, width: int) -> str:
    """A bar of ``width`` characters, filled to a fraction.

    >>> bar(0.5, 4)
    '██░░'
    """
    filled = round(min(max(fraction, 0.0), 1.0) * width)
    return "█" * filled + "░" * (width - filled)


def _read(progress: Progress, side: int) -> str:
    expected = progress.rows_expected[side]
    rows = progress.rows_in[side]
    if expected:
        return f"{min(1.0, rows / expected):.0%}"
    return short(rows)
