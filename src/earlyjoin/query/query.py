"""A join as a person holds it, on either engine: iterate, look at the head, watch, hand over, write, stop.

An engine adds how the work is done (its *execution*), what it knows of the size, and what only it can do. What it
cannot do says so, and what to do instead.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib import import_module
from typing import Any, ClassVar

import pyarrow as pa

from earlyjoin.algorithms.protocol import Plan
from earlyjoin.errors import InputError
from earlyjoin.query.describing import Portrait
from earlyjoin.query.life import Progress, State, summary
from earlyjoin.query.running import Running, count_of
from earlyjoin.state.budget import MemoryLimit


class Query(Running, ABC):
    """A join that is made but not yet run, as ``join`` and ``multi_join`` give it.

    Iterating gives ``pyarrow.RecordBatch`` objects as they are found; the result can be taken once. Rows that ``head``
    has shown are given out again. Use it as a context manager, or let it run to its end, so that memory, files and
    jobs are given back at once.
    """

    engine: ClassVar[str]
    plan: Plan

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return self.plan.output.schema

    @property
    @abstractmethod
    def algorithm(self) -> str:
        """The name of the algorithm in use."""

    @abstractmethod
    def explain(self) -> str:
        """What will be done and why, in words."""

    def __repr__(self) -> str:
        return self._portrait().line()

    def _repr_html_(self) -> str:
        return self._portrait().html()

    def _portrait(self) -> Portrait:
        return Portrait(
            join=self.plan.text,
            engine=self.engine,
            algorithm=self._algorithm_so_far(),
            state=self.state,
            rows=self._watch.rows,
            schema=self.schema,
        )

    @abstractmethod
    def _algorithm_so_far(self) -> str:
        """The algorithm, without reading anything or asking an engine."""

    # How far it is

    @property
    @abstractmethod
    def progress(self) -> Progress:
        """How far the query is. May be asked from another thread."""

    @property
    def estimate(self) -> dict[str, Any] | None:
        """Size of the whole result: ``rows``, the interval ``low`` to ``high``, and its ``confidence``.

        None while nothing can be said; ``estimate_reason`` tells why. Exact once the query has finished.
        """
        if self.state is State.FINISHED:
            rows = self._watch.rows
            return {"rows": rows, "low": rows, "high": rows, "confidence": 1.0}
        return self._estimated()

    @abstractmethod
    def _estimated(self) -> dict[str, Any] | None:
        """The estimate of a query that has not finished."""

    @property
    @abstractmethod
    def estimate_reason(self) -> str | None:
        """Why ``estimate`` is None; None when it is not."""

    @property
    def estimates(self) -> dict[str, dict[str, Any] | None]:
        """The aggregates that were asked, by name: ``value``, ``low``, ``high`` and ``confidence`` of each.

        None while nothing can be said. Exact once the query has finished; then None is the mean of no rows.
        """
        return {}

    def estimate_now(self) -> dict[str, Any] | None:
        """The size of the whole result before any row is given out, from a few blocks that are read for it."""
        raise self._refusal("estimate_now()", "estimate follows the join while it runs")

    def summary(self) -> dict[str, Any]:
        """What was done, as plain values (see the README for the fields)."""
        return summary(
            engine=self.engine,
            algorithm=self.algorithm,
            watch=self._watch,
            counters=self._work.counters,
            budget=self._work.budget,
            estimate=self.estimate,
            estimates=self.estimates,
        )

    # Taking the rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The result as it is found. Iterating again goes on where the last iteration stopped.

        Rows are given out once: when all were, after ``stop``, or when an Arrow stream has begun to take them,
        iterating again is an error.
        """
        return self._batches()

    def head(self, rows: int) -> pa.Table:
        """The first rows, as soon as so many are found; iterating afterwards gives them out again."""
        rows = count_of(rows, "head")
        self._check_open()
        taken: list[pa.RecordBatch] = []
        while sum(batch.num_rows for batch in taken) < rows and (batch := self._next(stream=self._stream)) is not None:
            taken.append(batch)
        self._shown = taken + self._shown
        return pa.Table.from_batches(taken, schema=self.schema).slice(0, rows)

    def to_arrow(self) -> pa.Table:
        """All rows that are still to come, as a table."""
        return pa.Table.from_batches(list(self), schema=self.schema)

    def to_pandas(self, **options: Any) -> Any:
        """All rows that are still to come, as a pandas DataFrame; options are those of ``pyarrow.Table.to_pandas``."""
        self._check_open()
        _need("pandas", "to_pandas()")
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> Any:
        """All rows that are still to come, as a Polars DataFrame."""
        self._check_open()
        return _need("polars", "to_polars()").from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The result as an Arrow stream, for whatever reads such: DuckDB, Polars, ``pyarrow.table(query)``.

        Batches are joined when they are asked for. An error on the way reaches the reader. A stream that is
        dropped after its first batch and before its last ends the query. Of several streams the first that is read gets
        the rows, and reading another is an error, as in a self join of one query. Rows come cast to a
        ``requested_schema`` of the same columns; any other is refused.
        """
        self._check_open()
        reader = pa.RecordBatchReader.from_batches(self.schema, self._streamed())
        if requested_schema is None:
            return reader.__arrow_c_stream__()
        try:
            return reader.__arrow_c_stream__(requested_schema)
        except (pa.ArrowException, ValueError, TypeError) as error:
            names = ", ".join(f"{field.name} {field.type}" for field in self.schema)
            raise InputError(
                f"the rows of this query cannot be given as the requested schema: {error}; they have {names}"
            ) from error

    def limited(self, rows: int | None) -> Iterator[pa.RecordBatch]:
        """Like iterating, but stops the query once so many rows were given out."""
        self._check_untaken()
        left = None if rows is None else count_of(rows, "limited")
        try:
            while left is None or left > 0:
                batch = self._next(left)
                if batch is None:
                    self._given_out = True
                    return
                if left is not None:
                    left -= batch.num_rows
                yield batch
        finally:
            if (
                rows is not None and self._stream is None
            ):  # also when it is left before: the last batch may have been cut off
                self.stop()

    def to_df(self) -> Any:
        """The whole result as a lazy Spark DataFrame."""
        raise self._refusal("to_df()", "use to_arrow(), or join with engine='spark'")

    @abstractmethod
    def write(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        overwrite: bool = False,
        limit: int | None = None,
        **options: Any,
    ) -> int:
        """Write the result, and return the number of rows. ``format`` is for names that do not tell it."""

    # While it runs

    @property
    def memory(self) -> MemoryLimit:
        """The memory limit that is in force."""
        return self._work.budget.limit

    def set_memory(self, memory: str | int | MemoryLimit) -> None:
        """Change the memory of a running query."""
        raise self._refusal("set_memory()", "give memory= to join")

    def switch_reading(self, *rows: int) -> None:
        """From now on read so many rows of the first input for so many of the second."""
        raise self._refusal("switch_reading()", "Spark reads both inputs in an order of its own")

    def pause(self, directory: str | os.PathLike[str]) -> None:
        """Save the whole state into a new directory and end this query; ``resume`` goes on from there."""
        raise self._refusal("pause()", "stop() ends the query, and what was given out stays valid")

    def _refusal(self, what: str, instead: str) -> InputError:
        """The error for what the engine of this query cannot do."""
        return InputError(f"a join on the {self.engine} engine has no {what}: {instead}")


def _need(package: str, what: str) -> Any:
    """A package that only some people have."""
    try:
        return import_module(package)
    except ImportError as error:
        raise InputError(
            f"{what} needs {package}, which cannot be imported ({error}); install it with 'pip install {package}', "
            "or take the rows with to_arrow()"
        ) from error
