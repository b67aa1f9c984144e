"""Ctrl-C, SIGTERM and SIGHUP while a query runs.

::

    first signal ──▶ query.interrupt(): ends after the batch in hand, also when it waits for input
         │  one second later and still inside the query (a long step without a result): Forced is raised there
    second signal ──▶ KeyboardInterrupt, wherever the program is
    third signal ──▶ what the system does by default
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from earlyjoin.cli.signals import ENDING, Repeats, handled
from earlyjoin.query.query import Query

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
        self._handled = ExitStack()
        self._repeats = Repeats()

    def __enter__(self) -> Interruption:
        self._handled.enter_context(handled(ENDING, self._on_signal))
        self._handled.enter_context(handled((signal.SIGALRM,), self._on_alarm))
        return self

    def __exit__(self, *_: object) -> None:
        if self.asked:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self._handled.close()

    @contextmanager
    def may_force(self) -> Iterator[None]:
        """Code that may be left at any point, because nothing of it is needed after an interruption."""
        self._may_force = True
        try:
            yield
        finally:
            self._may_force = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        at_once = self._repeats.at_once(number)
        if self.asked and at_once:
            return
        if self.asked:
            for ending in ENDING:
                if signal.getsignal(ending) is not signal.SIG_IGN:
                    signal.signal(ending, signal.SIG_DFL)
            raise KeyboardInterrupt
        self.asked = True
        self._query.interrupt()
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S, PATIENCE_S)

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        if self._may_force:
            self._may_force = False
            raise Forced
