"""Spark jobs of one query, and no others: each carries the query's tag, so that they can be cancelled together."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from earlyjoin.errors import EarlyJoinError, SourceError
from earlyjoin.spark.session import first_line

T = TypeVar("T")

_SESSION_GONE = (
    "stopped SparkContext",
    "SparkContext was shut down",
    "SparkContext has been shutdown",
    "Connection refused",
    "Answer from Java side is empty",
    "INVALID_HANDLE",
    "Session not found",
    "SESSION_CLOSED",
    "Cannot invoke RPC on closed channel",
    "StatusCode.UNAVAILABLE",
    "Error while sending or receiving",
    "NO_ACTIVE_SESSION",
)


class Jobs:
    """Runs functions that start Spark jobs, each under the tag of this query."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.tag = f"earlyjoin-{uuid.uuid4().hex}"
        self.cancelled = False

    def tagged(self, work: Callable[[], T]) -> T:
        """Do it in this thread."""
        self.session.addTag(self.tag)
        try:
            return work()
        except EarlyJoinError:
            raise
        except Exception as error:
            raise self.failure(error) from error
        finally:
            with contextlib.suppress(Exception):  # the session may be gone
                self.session.removeTag(self.tag)

    def together(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """Do them at the same time, each in a thread of its own."""
        with ThreadPoolExecutor(len(works), thread_name_prefix="earlyjoin-spark") as pool:
            futures = [pool.submit(self.tagged, work) for work in works]
            try:
                return [future.result() for future in futures]
            except BaseException:
                self.interrupt()  # the other one would be waited for
                raise

    def thread(self, work: Callable[[], None]) -> threading.Thread:
        """A thread that does it; whoever starts it takes what it fails with."""
        return threading.Thread(target=self.tagged, args=(work,), name="earlyjoin-spark", daemon=True)

    def cancel(self) -> None:
        """Cancel whatever runs, for good."""
        self.cancelled = True
        self.interrupt()

    def interrupt(self) -> None:
        """Cancel whatever runs now."""
        with contextlib.suppress(Exception):  # a session that is gone runs nothing
            self.session.interruptTag(self.tag)

    def failure(self, error: BaseException) -> EarlyJoinError:
        """What went wrong, in words."""
        text = f"{type(error).__name__} {error}"
        if self.cancelled:
            return SourceError("the query was stopped")
        if any(sign in text for sign in _SESSION_GONE):
            return SourceError(
                "the Spark session ended while the join was running; rows given out so far are valid, "
                "start a session and join again for the rest"
            )
        return SourceError(f"Spark failed: {first_line(error)}")
