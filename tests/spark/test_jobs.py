"""Spark jobs of a query under one tag: shared by threads, stopped at bad moments, with the error that is told."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from earlyjoin.errors import SourceError
from earlyjoin.spark.jobs import Jobs


class Context:
    """Remembers what it was told, and lets a test step in between."""

    def __init__(self) -> None:
        self.tags: dict[int, str] = {}
        self.cancels = 0
        self.cancelled = threading.Event()
        self.when_tagged: Callable[[], object] = lambda: None

    def addJobTag(self, tag: str) -> None:  # noqa: N802
        self.tags[threading.get_ident()] = tag
        self.when_tagged()

    def removeJobTag(self, tag: str) -> None:  # noqa: N802
        del self.tags[threading.get_ident()]

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802
        self.cancels += 1
        self.cancelled.set()


@pytest.fixture
def context() -> Context:
    return Context()


@pytest.fixture
def jobs(context: Context) -> Jobs:
    conf = SimpleNamespace(get=lambda name: "UTC")
    return Jobs(SimpleNamespace(sparkContext=context, conf=conf))


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_work_that_is_counted_in_many_threads_is_counted_right(jobs: Jobs, eager_threads: None) -> None:
    def work() -> None:
        for _ in range(300):
            jobs.tagged(lambda: None)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert jobs._active == 0


def test_a_stop_between_the_look_and_the_job_reaches_the_job(jobs: Jobs, context: Context) -> None:
    context.when_tagged = jobs.cancel  # the query was not stopped when it was looked at

    def job() -> bool:
        context.cancelled.clear()  # what was cancelled before it started did not meet it
        return context.cancelled.wait(5)

    assert jobs.tagged(job)


def test_stopping_leaves_no_thread_behind(jobs: Jobs) -> None:
    started, end = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        end.wait(5)

    thread = jobs.thread(work)
    thread.start()
    started.wait(5)
    jobs.cancel()
    jobs.cancel()
    end.set()
    thread.join(5)
    deadline = time.monotonic() + 5
    while any("earlyjoin-spark-stop" in one.name for one in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_nothing_starts_after_a_stop(jobs: Jobs) -> None:
    jobs.cancel()
    with pytest.raises(SourceError, match="the query was stopped"):
        jobs.tagged(lambda: pytest.fail("it ran"))


def test_work_within_work_keeps_the_tag(jobs: Jobs, context: Context) -> None:
    def outer() -> dict[int, str]:
        jobs.tagged(lambda: None)
        return dict(context.tags)

    assert jobs.tagged(outer) == {threading.get_ident(): jobs.tag}
    assert context.tags == {}


def test_the_first_real_error_is_told_and_soon(jobs: Jobs, context: Context) -> None:
    def slow() -> None:
        assert context.cancelled.wait(30)
        raise RuntimeError("Job 7 cancelled part of cancelled job tag")

    def broken() -> None:
        raise ValueError("the reason")

    for works in ([slow, broken], [broken, slow]):
        context.cancelled.clear()
        begin = time.monotonic()
        with pytest.raises(SourceError, match="the reason"):
            jobs.together(works)
        assert time.monotonic() - begin < 5


def test_the_other_one_is_interrupted_also_when_its_job_starts_later(jobs: Jobs, context: Context) -> None:
    def late() -> None:
        assert context.cancelled.wait(5)
        context.cancelled.clear()
        assert context.cancelled.wait(5)  # the first came too early
        raise RuntimeError("cancelled")

    def broken() -> None:
        raise ValueError("the reason")

    with pytest.raises(SourceError, match="the reason"):
        jobs.together([late, broken])
    assert context.cancels >= 2


def test_a_thread_tells_of_a_failure_before_its_work(jobs: Jobs) -> None:
    told: list[Any] = []
    jobs.cancel()
    thread = jobs.thread(lambda: None, told.append)
    thread.start()
    thread.join(5)
    assert [str(error) for error in told] == ["the query was stopped"]


def test_a_refused_connection_of_a_task_is_not_the_end_of_the_session(jobs: Jobs) -> None:
    class PySparkError(Exception):
        __module__ = "pyspark.errors"

    refused = PySparkError(": java.net.ConnectException: Connection refused: db:5432\n\tat a.B.c(B.java:1)")
    assert str(jobs.failure(refused)) == "Spark failed: Connection refused: db:5432"
    assert "the Spark session ended" in str(jobs.failure(ConnectionRefusedError(111, "Connection refused")))
    mine = PySparkError('Traceback (most recent call last):\n  File "x.py", line 1, in f\nKeyError: INVALID_HANDLE')
    assert "KeyError: INVALID_HANDLE" in str(jobs.failure(mine))
