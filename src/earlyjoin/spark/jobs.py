"""Spark jobs of one query, and no others: each carries the query's tag, so that they can be cancelled together."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from earlyjoin.errors import EarlyJoinError, SourceError
from earlyjoin.spark.failures import is_from_worker, said
from earlyjoin.spark.session import first_line

T = TypeVar("T")

_LOOK_S, _LOOK_AT_MOST_S = 0.2, 5.0

_SESSION_GONE = (
    "stopped SparkContext",
    "SparkContext was shut down",
    "SparkContext has been shutdown",
    "Answer from Java side is empty",
    "INVALID_HANDLE",
    "Session not found",
    "SESSION_CLOSED",
    "Cannot invoke RPC on closed channel",
    "StatusCode.UNAVAILABLE",
    "Error while sending or receiving",
    "NO_ACTIVE_SESSION",
)
_NO_ANSWER = ("ConnectionRefusedError", "Py4JNetworkError")
"""What a driver that is gone is told by; a task may be refused a connection too, which is another matter."""


class Jobs:
    """Runs functions that start Spark jobs, each under the tag of this query. Threads may share it."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.tag = f"earlyjoin-{uuid.uuid4().hex}"
        self.cancelled = False
        self._active = 0
        self._changes = threading.Condition()
        """Guards ``cancelled`` and ``_active``: nothing starts unseen while the query is being stopped."""
        self._inside = threading.local()
        self.connect = type(session).__module__.startswith("pyspark.sql.connect")
        """Is the driver elsewhere, behind Spark Connect?"""

    def tagged(self, work: Callable[[], T]) -> T:
        """Do it in this thread. May be called by such work again."""
        with self._marked():
            return work()

    @contextlib.contextmanager
    def _marked(self) -> Iterator[None]:
        """Jobs of this thread carry the tag meanwhile, and errors become ours."""
        depth = getattr(self._inside, "depth", 0)
        with self._changes:
            if self.cancelled:
                raise SourceError("the query was stopped")
            self._active += 1
        self._inside.depth = depth + 1
        try:
            if not depth:
                self._mark(True)
            yield
        except EarlyJoinError:
            raise
        except Exception as error:
            raise self.failure(error) from error
        finally:
            self._inside.depth = depth
            if not depth:  # those further out go on
                with contextlib.suppress(Exception):  # the session may be gone
                    self._mark(False)
            with self._changes:
                self._active -= 1
                self._changes.notify_all()

    def together(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """Do them at the same time, each in a thread of its own. The first that fails ends the others."""
        failed: list[BaseException] = []

        def run(work: Callable[[], T]) -> T:
            try:
                return self.tagged(work)
            except BaseException as error:
                failed.append(error)  # in the order of time: those that are interrupted fail later
                raise

        with ThreadPoolExecutor(len(works), thread_name_prefix="earlyjoin-spark") as pool:
            futures = [pool.submit(run, work) for work in works]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
                if failed:
                    raise failed[0]
                return [future.result() for future in futures]
            except BaseException:
                # The others would be waited for; one may be about to start its job.
                pause_s = _LOOK_S
                self.interrupt()
                while wait(futures, timeout=pause_s).not_done:
                    self.interrupt()
                    pause_s = min(2 * pause_s, _LOOK_AT_MOST_S)
                raise

    def thread(
        self, work: Callable[[], None], failed: Callable[[EarlyJoinError], object] | None = None
    ) -> threading.Thread:
        """A thread that does it. Tells what it fails with, also before the work has begun."""

        def run() -> None:
            try:
                self.tagged(work)
            except EarlyJoinError as error:
                if failed is not None:
                    failed(error)

        return threading.Thread(target=run, name="earlyjoin-spark", daemon=True)

    def cancel(self) -> None:
        """Cancel whatever runs, for good."""
        with self._changes:
            chase = self._active > 0 and not self.cancelled
            self.cancelled = True
        self.interrupt()
        if chase:
            threading.Thread(target=self._chase, name="earlyjoin-spark-stop", daemon=True).start()

    def _chase(self) -> None:
        """Cancel jobs that were on their way when the query was stopped."""
        pause_s = _LOOK_S
        while not self._is_idle(pause_s):
            self.interrupt()
            pause_s = min(2 * pause_s, _LOOK_AT_MOST_S)

    def _is_idle(self, wait_s: float) -> bool:
        with self._changes:
            return self._changes.wait_for(lambda: not self._active, wait_s)

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
        is of no use for stopping a query. The context's tags are the same for all threads.
        """
        if self.connect:
            (self.session.addTag if on else self.session.removeTag)(self.tag)
        else:
            context = self.session.sparkContext
            (context.addJobTag if on else context.removeJobTag)(self.tag)

    def failure(self, error: BaseException) -> EarlyJoinError:
        """What went wrong, in words."""
        if self.cancelled:
            return SourceError("the query was stopped")
        if _tells_of_end(error) or self._session_is_gone():
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


def _tells_of_end(error: BaseException) -> bool:
    text = f"{type(error).__name__} {said(error)}"
    if is_from_worker(error):
        return False
    return text.startswith(_NO_ANSWER) or any(sign in text for sign in _SESSION_GONE)
