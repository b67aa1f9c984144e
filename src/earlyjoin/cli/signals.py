"""The signals that ask a command to end: Ctrl-C, SIGTERM, and SIGHUP of a terminal that was closed."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_AT_ONCE_S = 0.25

Handler = Callable[[int, FrameType | None], None]


@contextmanager
def handled(numbers: Sequence[signal.Signals], handler: Handler) -> Iterator[None]:
    """Let a function handle these signals, but for those that were ignored when the process started (``nohup``)."""
    # Python lets only the main thread handle signals; a test may run elsewhere.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in numbers}
    before = {number: was for number, was in before.items() if was is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)


@contextmanager
def aborted_by_signals() -> Iterator[None]:
    """Where nothing else is said, SIGTERM and SIGHUP end the command as Ctrl-C does: files are removed on the way."""
    repeats = Repeats()

    def abort(number: int, frame: FrameType | None) -> None:
        if not repeats.at_once(number):
            raise KeyboardInterrupt

    with handled((signal.SIGTERM, signal.SIGHUP), abort):
        yield


class Repeats:
    """Tells one request that came as several signals from a second request.

    ``timeout`` sends SIGTERM to the process and to its group, which is twice; nobody types that fast.
    """

    def __init__(self) -> None:
        self._last_s = -math.inf

    def at_once(self, number: int) -> bool:
        """Does this signal belong to the one before?"""
        before_s, self._last_s = self._last_s, time.monotonic()
        return number != signal.SIGINT and self._last_s - before_s < _AT_ONCE_S
