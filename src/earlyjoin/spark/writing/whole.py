"""Taking the rows of a join to a directory, each by the shortest way.

::

    large inputs ───────────────▶ Spark's own join ──▶ Spark's writer
    small ones, joined here ──┬─▶ Parquet on this machine: written where they are
                              ├─▶ anything else, and not many: as Arrow to Spark's writer
                              └─▶ many: Spark joins them again, as if they were large
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import pyarrow as pa

from earlyjoin.errors import SourceError
from earlyjoin.spark.columns.arrow_forms import restored
from earlyjoin.spark.execution import Execution
from earlyjoin.spark.jobs import Jobs
from earlyjoin.spark.writing import sinks
from earlyjoin.spark.writing.parquet_directory import codec_of, spark_schema, write_batches
from earlyjoin.spark.writing.targets import Target
from earlyjoin.state.counters import Phase

SENT_NBYTES = 64 * 2**20
"""Most that is held here to be sent to Spark."""
_FILE_NBYTES = 32 * 2**20


class Writing:
    """Everything about one call of ``write``."""

    def __init__(
        self,
        execution: Execution,
        given: Sequence[Any],
        jobs: Jobs,
        target: Target,
        count: Callable[[int], None],
    ) -> None:
        """``given`` are the inputs as the user gave them; ``count`` is told of rows on their way."""
        self._execution, self._given = execution, given
        self._jobs, self.target, self._count = jobs, target, count

    def whole(self) -> int:
        """Write the whole result; nothing of it was given out."""
        execution = self._execution
        found = execution.whole_rows()
        if found is not None:
            with closing(found):
                written = self.batches(found)
            if written is not None:
                execution.counters.results[Phase.ARRIVING] = written
                return written
        execution.phase = Phase.CLEANUP
        frame = self._jobs.tagged(lambda: self._restored(execution.whole_frame()))
        written = sinks.write(frame, self.target, self._jobs)
        execution.counters.results[Phase.CLEANUP] = written
        return written

    def rest(self, early: Sequence[pa.RecordBatch]) -> int:
        """Write these rows, which were found early, and whatever the bulk has still to give."""
        execution = self._execution
        execution.phase = Phase.CLEANUP
        frame = self._jobs.tagged(lambda: self._restored(execution.bulk_frame()))
        if early:
            frame = self.sent(pa.Table.from_batches(early)).union(frame)
        execution.unchanged.check()
        written = sinks.write(frame, self.target, self._jobs)
        execution.unchanged.check()
        execution.counters.results[Phase.CLEANUP] += written - sum(batch.num_rows for batch in early)
        return written

    def batches(self, found: Iterable[pa.RecordBatch]) -> int | None:
        """Write rows of this process; None, and nothing is written, when there are too many to be sent to Spark."""
        schema, target = self._execution.plan.output.schema, self.target
        fields, codec = self._plain_fields(), codec_of(self._jobs.session)
        plain = target.format == "parquet" and not target.partition_by and not target.options
        new = target.mode == "overwrite" or not target.exists
        path = target.local
        if plain and new and fields is not None and codec is not None and path is not None and self._here():
            written = write_batches(self._counted(found), schema, path, spark_fields=fields, codec=codec)
            self._jobs.session.catalog.refreshByPath(str(path.absolute()))
            return written
        held, nbytes = [], 0
        for batch in self._counted(found):
            held.append(batch)
            nbytes += batch.nbytes
            if nbytes > SENT_NBYTES:
                self._count(-sum(one.num_rows for one in held))
                return None
        return self.table(pa.Table.from_batches(held, schema=schema))

    def table(self, table: pa.Table) -> int:
        """Write rows of this process by way of Spark, however many they are."""
        return sinks.write(self.sent(table), self.target, self._jobs)

    def sent(self, table: pa.Table) -> Any:
        """Rows of this process as a DataFrame of exactly the types that Spark would give."""
        files = 1 + table.nbytes // _FILE_NBYTES
        return self._jobs.tagged(partial(self._sent, table, files))

    def _sent(self, table: pa.Table, files: int) -> Any:
        schema = self._plain_fields()
        if schema is None:
            schema = self._execution.bulk_frame(everything=True).schema
        # Spark makes a partition of each ten thousand rows: a task, and a file, for every one of them.
        return self._restored(self._jobs.session.createDataFrame(table, schema=schema).coalesce(files))

    def _restored(self, frame: Any) -> Any:
        return restored(frame, self._execution.plan.output.columns, self._given)

    def _here(self) -> bool:
        return sinks.is_here(self.target, self._jobs)

    def _plain_fields(self) -> Any | None:
        """Spark's schema of the result, where all types are simple; found without asking Spark."""
        fields = []
        for column in self._execution.plan.output.columns:
            sources = [
                self._given[side].schema.fields[position]
                for side, position in enumerate(column.position)
                if position is not None
            ]
            if any(one.dataType != sources[0].dataType for one in sources):
                return None
            fields.append(sources[0])
        return spark_schema(self._execution.plan.output.schema, fields)

    def _counted(self, found: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in found:
            self._count(batch.num_rows)
            yield batch
        if self._execution.stop_asked:  # then these were not all of them
            raise SourceError("the query was stopped")
