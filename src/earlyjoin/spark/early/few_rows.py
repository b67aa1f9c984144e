"""A few rows of a DataFrame that Spark cuts off: fetched so that it reads no more than it has to.

``limit(n).collect()`` runs one part of the plan, then some more, until there are enough rows; ``limit(n).toArrow()``
runs all of them. So a few rows are collected, and become Arrow here, where their types have one meaning in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from earlyjoin.errors import EarlyJoinError
from earlyjoin.spark.columns.arrow_forms import collected
from earlyjoin.spark.jobs import Jobs

MOST_COLLECTED = 10_000
"""Python values cost more than Arrow's from here on."""
_LOOK_S = 0.05


def few_rows(frame: Any, most: int, schema: pa.Schema, *, connect: bool) -> pa.Table:
    """At most so many rows."""
    limited = frame.limit(most)
    if connect or most > MOST_COLLECTED or not all(map(_has_one_meaning, schema.types)):
        return collected(limited)
    try:
        rows = limited.collect()
        columns = list(zip(*rows, strict=True)) or [()] * len(schema)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    except (ValueError, OverflowError, pa.ArrowException):
        return collected(limited)  # dates that Python does not have, say
    return pa.table(arrays, schema=pa.schema([field.with_nullable(True) for field in schema]))


def _has_one_meaning(type_: pa.DataType) -> bool:
    is_ = pa.types
    return bool(
        is_.is_integer(type_)
        or is_.is_floating(type_)
        or is_.is_boolean(type_)
        or is_.is_string(type_)
        or is_.is_decimal128(type_)
        or is_.is_date32(type_)
    )


class Ahead:
    """A few rows that are fetched in a thread and under a tag of their own: they may turn out not to be needed."""

    def __init__(self, session: Any, schema: pa.Schema) -> None:
        self._session, self._schema = session, schema
        self._fetching: _Fetching | None = None

    def start(self, frame: Any, most: int) -> None:
        """Begin to fetch so many; whatever was fetched before is given up."""
        self.cancel()
        self._fetching = _Fetching(self._session, frame, most, self._schema)

    def ready(self, most: int, wait_s: float) -> pa.Table | None:
        """The rows, if they come within such a time; else they go on being fetched, and ``take`` tells what fails."""
        fetching = self._fetching
        table = fetching.within(wait_s) if fetching is not None and fetching.most == most else None
        if table is not None:
            self._fetching = None
        return table

    def take(self, most: int, stopping: Callable[[], bool]) -> pa.Table | None:
        """The rows, when they are there; None when so many were not asked for, or somebody wants to stop."""
        fetching = self._fetching
        if fetching is None or fetching.most != most:
            self.cancel()
            return None
        self._fetching = None
        try:
            return fetching.result(stopping)
        except BaseException:
            fetching.jobs.cancel()
            raise

    def cancel(self) -> None:
        """They are not needed. Does not wait for the end of what runs."""
        fetching, self._fetching = self._fetching, None
        if fetching is not None:
            fetching.jobs.cancel()


class _Fetching:
    """One such thread."""

    def __init__(self, session: Any, frame: Any, most: int, schema: pa.Schema) -> None:
        self.jobs, self.most = Jobs(session), most
        self._table: pa.Table | None = None
        self._error: EarlyJoinError | None = None

        def work() -> None:
            self._table = few_rows(frame, most, schema, connect=self.jobs.connect)

        self._thread = self.jobs.thread(work, self._failed)
        self._thread.start()

    def _failed(self, error: EarlyJoinError) -> None:
        self._error = error

    def within(self, wait_s: float) -> pa.Table | None:
        self._thread.join(wait_s)
        return None if self._thread.is_alive() else self._table

    def result(self, stopping: Callable[[], bool]) -> pa.Table | None:
        while self._thread.is_alive():
            if stopping():
                self.jobs.cancel()
                return None
            self._thread.join(_LOOK_S)
        if self._error is not None:
            raise self._error
        return self._table
