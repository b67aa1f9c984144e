"""Small inputs without an equality: fetched and joined in the driver, as Spark itself sends small tables around.

::

    left:  files or toArrow ─┐
    right: files or toArrow ─┴─▶ an operator over the keys ──▶ pairs of row numbers ──▶ rows

A Spark job costs a fixed time, a shuffle several of them; two tables of a few megabytes are joined sooner than that.
Both are fetched at the same time, once, and only where Spark's own statistics say that they are small. Plain Parquet
files beside the driver are read without Spark (``plain_files``). Statistics know the size of files, not of rows, so
memory is booked when rows come in: where it is refused, nothing was given out and the join goes the usual way.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.errors import BudgetExceeded, SourceError
from earlyjoin.predicates.base import LEFT, RIGHT, Capability
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.spark.columns.arrow_forms import collected
from earlyjoin.spark.columns.keys import spark_alone
from earlyjoin.spark.early.joined_rows import joined_rows
from earlyjoin.spark.early.pairing import Pairing
from earlyjoin.spark.inspecting.plain_files import files_here, has_one_meaning, read_files
from earlyjoin.spark.inspecting.scans import Computed, Planned
from earlyjoin.spark.jobs import Jobs
from earlyjoin.state.budget import Account, MemoryLimit

ROOM = 16
"""Memory for each byte that Spark takes the inputs for: files are packed, and the join needs its half."""

_COPIES = 2
"""The tables, and the keys of the join."""


def left_to_spark(plan: Plan) -> str | None:
    """Why inputs of any size are not joined in the driver; None when small ones are."""
    if (alone := spark_alone(plan)) is not None:
        return alone
    if plan.condition.driver(Capability.HASHABLE) is not None and len(plan.condition.parts) == 1:
        return "Spark joins on an equality itself, and sends a small side to every task"
    return None


def too_large(inputs: Sequence[Planned | Computed], limit: MemoryLimit, most_nbytes: int) -> str | None:
    """Why these inputs are not joined in the driver; None when they are."""
    nbytes = 0
    for side in inputs:
        if isinstance(side, Computed):
            return f"how large the inputs are is not known: {side.reason}"
        nbytes += side.nbytes
    most = most_nbytes if limit.bytes is None else min(most_nbytes, limit.bytes // ROOM)
    return None if nbytes <= most else f"the inputs have {nbytes:,} bytes, and up to {most:,} are joined in the driver"


class DriverJoin:
    """Both inputs fetched into the driver and joined there. ``frames`` are the inputs as they were given."""

    name = "a join in the driver"

    def __init__(
        self,
        plan: Plan,
        frames: Sequence[Any],
        pairing: Pairing,
        jobs: Jobs,
        account: Account,
        *,
        plain: bool,
    ) -> None:
        """``plain``: both inputs are nothing but scans of Parquet files."""
        self._plan, self._frames, self._pairing = plan, frames, pairing
        self._jobs, self._account = jobs, account
        # Behind Spark Connect files are those of the server, wherever it is.
        self._from_files = plain and not jobs.connect and all(map(has_one_meaning, plan.schemas))
        self.rows_read = [0, 0]

    def explain(self) -> str:
        """What is done."""
        where = "read from their files if those are on this machine, else " if self._from_files else ""
        return f"both inputs are small: they are {where}fetched at the same time and joined in the driver, no shuffle"

    def run(self, stopping: Callable[[], bool]) -> Generator[pa.RecordBatch] | None:
        """The whole result; None when the inputs do not fit into memory after all."""
        try:
            tables = self._read() or self._fetch()
        except BudgetExceeded:
            self._account.clear()
            return None
        if tables is None:
            return None
        self.rows_read = [len(table) for table in tables]
        return self._joined(tables, stopping)

    def _read(self) -> list[pa.Table] | None:
        """Both inputs from files beside the driver; None when Spark has to read them."""
        if not self._from_files:
            return None
        found = self._jobs.tagged(lambda: [files_here(frame) for frame in self._frames])
        files = [paths for paths in found if paths is not None]
        if len(files) < len(found):
            return None
        with ThreadPoolExecutor(len(files), thread_name_prefix="earlyjoin-files") as pool:
            read = pool.map(partial(read_files, account=self._account, copies=_COPIES), files, self._plan.schemas)
            tables = [table for table in read if table is not None]
        if len(tables) < len(files):
            self._account.clear()
            return None
        return tables

    def _fetch(self) -> list[pa.Table] | None:
        """Both inputs by Spark; None when it refuses."""
        try:
            tables = self._jobs.together([partial(_collected, frame) for frame in self._frames])
        except SourceError:
            if self._jobs.cancelled:
                raise
            return None  # Spark sets a limit to what is fetched; anything else will fail again, and say why
        self._account.reserve(_COPIES * sum(t.nbytes for t in tables), sum(len(t) for t in tables))
        return tables

    def _joined(self, tables: list[pa.Table], stopping: Callable[[], bool]) -> Generator[pa.RecordBatch]:
        how = self._plan.how
        matched = [np.zeros(len(table), dtype=np.bool_) for table in tables]
        try:
            with closing(self._pairing.found(*tables)) as pieces:
                for i, j in pieces:
                    if stopping():
                        return
                    if how.gives_pairs:
                        yield from joined_rows(self._plan, tables, i, j)
                    elif how is JoinType.SEMI:
                        first = np.unique(i)
                        yield from joined_rows(self._plan, tables, first[~matched[LEFT][first]], None)
                    matched[LEFT][i], matched[RIGHT][j] = True, True
            alone: list[Int64] = [np.flatnonzero(~some) for some in matched]
            if how.gives_unmatched(LEFT) and not stopping():
                yield from joined_rows(self._plan, tables, alone[LEFT], None)
            if how.gives_unmatched(RIGHT) and not stopping():
                yield from joined_rows(self._plan, tables, None, alone[RIGHT])
        finally:
            self._account.clear()


def _collected(frame: Any) -> pa.Table:
    table = collected(frame)
    return table.combine_chunks()
