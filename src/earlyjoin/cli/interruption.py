"""Ctrl-C and SIGTERM while a query runs.

::

    first signal ──▶ query.interrupt(): ends after the batch in hand, also when it waits for input
         │  one second later and still inside the query (a long step without a result): Forced is raised there
    second signal ──▶ KeyboardInterrupt, wherever the program is
    third signal ──▶ what the system does by default
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from earlyjoin.local.query import Query

PATIENCE_S = 1.0


class Forced(BaseException):
    """The query did not end by itself soon enough after a signal."""


class Interruption:
    """Signals become an orderly end of the query, for as long as this context is open."""

    def __init__(self, query: Query) -> None:
        self.asked = False
        """Did somebody ask the query to stop?"""
        self._query = query
        self._may_force = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        # Python lets only the main thread handle signals; a test may run elsewhere.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._on_signal)
            self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._on_alarm)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def may_force(self) -> Iterator[None]:
        """Code that may be left at any point, because nothing of it is needed after an interruption."""
        self._may_force = True
        try:
            yield
        finally:
            self._may_force = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            for handled in (signal.SIGINT, signal.SIGTERM):
                signal.signal(handled, signal.SIG_DFL)
            raise KeyboardInterrupt
        self.asked = True
        self._query.interrupt()
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S, PATIENCE_S)

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        if self._may_force:
            self._may_force = False
            raise Forced
