"""Spark jobs of one query, and no others: each carries the query's tag, so that they can be cancelled together."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from earlyjoin.errors import EarlyJoinError, SourceError
from earlyjoin.spark.session import first_line

T = TypeVar("T")

_LOOK_S, _CHASE_S = 0.2, 60.0

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
        self._active = 0
        self.connect = type(session).__module__.startswith("pyspark.sql.connect")
        """Is the driver elsewhere, behind Spark Connect?"""

    def tagged(self, work: Callable[[], T]) -> T:
        """Do it in this thread."""
        if self.cancelled:
            raise SourceError("the query was stopped")
        self._mark(True)
        self._active += 1
        try:
            return work()
        except EarlyJoinError:
            raise
        except Exception as error:
            raise self.failure(error) from error
        finally:
            self._active -= 1
            with contextlib.suppress(Exception):  # the session may be gone
                self._mark(False)

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
        """A thread that does it, and that has its own way to tell what it fails with."""

        def run() -> None:
            with contextlib.suppress(EarlyJoinError):
                self.tagged(work)

        return threading.Thread(target=run, name="earlyjoin-spark", daemon=True)

    def cancel(self) -> None:
        """Cancel whatever runs, for good."""
        self.cancelled = True
        self.interrupt()
        if self._active:
            threading.Thread(target=self._chase, name="earlyjoin-spark-stop", daemon=True).start()

    def _chase(self) -> None:
        """Cancel jobs that were on their way when the query was stopped."""
        end = time.monotonic() + _CHASE_S
        while self._active and time.monotonic() < end:
            time.sleep(_LOOK_S)
            self.interrupt()

    def interrupt(self) -> None:
        """Cancel whatever runs now."""
        with contextlib.suppress(Exception):  # a session that is gone runs nothing
            if self.connect:
                self.session.interruptTag(self.tag)
            else:
                self.session.sparkContext.cancelJobsWithTag(self.tag)

    def _mark(self, on: bool) -> None:
        """Let jobs that this thread starts carry the tag, or not any more.

        A classic session knows its tags by thread: ``interruptTag`` finds only what its own thread has started, which
        is of no use to whoever stops a query. The context's tags are the same for all threads.
        """
        if self.connect:
            (self.session.addTag if on else self.session.removeTag)(self.tag)
        else:
            context = self.session.sparkContext
            (context.addJobTag if on else context.removeJobTag)(self.tag)

    def failure(self, error: BaseException) -> EarlyJoinError:
        """What went wrong, in words."""
        text = f"{type(error).__name__} {error}"
        if self.cancelled:
            return SourceError("the query was stopped")
        if any(sign in text for sign in _SESSION_GONE) or self._session_is_gone():
            return SourceError(
                "the Spark session ended while the join was running; rows given out so far are valid, "
                "start a session and join again for the rest"
            )
        return SourceError(f"Spark failed: {first_line(error)}")

    def _session_is_gone(self) -> bool:
        """Does the session still answer? What a client says that was closed in the middle of a call tells nothing."""
        try:
            self.session.conf.get("spark.sql.session.timeZone")
        except Exception:
            return True
        return bool(getattr(self.session, "is_stopped", False))
