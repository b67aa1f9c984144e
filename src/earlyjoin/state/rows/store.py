"""Rows by number: what index pairs point into until rows are built at the very end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.encoding.buffers import of_numbers
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Account
from earlyjoin.state.rows.gathering import gather
from earlyjoin.state.rows.sizes import value_sizes
from earlyjoin.state.rows.storage import column_for, contiguous, take_array


class Rows(Protocol):
    """Anything that gives out rows by number: a store in memory, a batch that just arrived, a page from disk."""

    schema: pa.Schema

    def __len__(self) -> int: ...

    def take(self, index: Int64, columns: Sequence[int] | None = None) -> list[pa.Array]:
        """The chosen rows: an array for each column (of ``columns``, by position), in the order of ``index``."""
        ...

    def sizes(self, index: Int64, columns: Sequence[int] | None = None) -> Int64:
        """Bytes that each of the chosen rows will take once it is gathered: to know before, not after."""
        ...

    def widest(self, columns: Sequence[int]) -> int:
        """No row takes more bytes than this."""
        ...


class BatchRows:
    """The rows of one record batch."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.schema = batch.schema
        self._widest: dict[int, int] = {}

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def take(self, index: Int64, columns: Sequence[int] | None = None) -> list[pa.Array]:
        """The chosen rows; consecutive ones are not copied."""
        chosen = range(self.batch.num_columns) if columns is None else columns
        if contiguous(index):
            return [self.batch.column(c).slice(int(index[0]), len(index)) for c in chosen]
        positions = of_numbers(index)
        return gather([partial(take_array, self.batch.column(c), positions) for c in chosen], len(index))

    def sizes(self, index: Int64, columns: Sequence[int] | None = None) -> Int64:
        """Bytes of each of the chosen rows."""
        chosen = range(self.batch.num_columns) if columns is None else columns
        total = np.zeros(len(index), dtype=np.int64)
        for column in chosen:
            sizes = value_sizes(self.batch.column(column))
            total += sizes if isinstance(sizes, int) else sizes[index]
        return total

    def widest(self, columns: Sequence[int]) -> int:
        """No row takes more bytes than this."""
        for column in columns:
            if column not in self._widest:
                self._widest[column] = int(np.max(value_sizes(self.batch.column(column)), initial=0))
        return sum(self._widest[column] for column in columns)


class RowStore:
    """Rows in memory, numbered from 0 in the order in which they were appended, counted against a budget."""

    def __init__(self, schema: pa.Schema, account: Account) -> None:
        self.schema = schema
        self._account = account
        self._columns = [column_for(field.type, account) for field in schema]
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes held, room for growth included."""
        return sum(column.nbytes for column in self._columns)

    def append(self, batch: pa.RecordBatch) -> int:
        """Copy rows in and return the number of the first; on BudgetExceeded the store is as it was."""
        first = self._length
        try:
            self._account.reserve(rows=batch.num_rows)
            try:
                for column, values in zip(self._columns, batch.columns, strict=True):
                    column.append(values)
            except BudgetExceeded:
                self._account.release(rows=batch.num_rows)
                raise
        except BudgetExceeded:
            for column in self._columns:
                column.truncate(first)
            raise
        self._length += batch.num_rows
        return first

    def take(self, index: Int64, columns: Sequence[int] | None = None) -> list[pa.Array]:
        """Copies of the chosen rows."""
        positions = of_numbers(index)
        chosen = self._columns if columns is None else [self._columns[c] for c in columns]
        return gather([partial(column.take, positions) for column in chosen], len(index))

    def sizes(self, index: Int64, columns: Sequence[int] | None = None) -> Int64:
        """Bytes of each of the chosen rows."""
        chosen = self._columns if columns is None else [self._columns[c] for c in columns]
        total = np.zeros(len(index), dtype=np.int64)
        for column in chosen:
            total += column.sizes(index)
        return total

    def widest(self, columns: Sequence[int]) -> int:
        """No row takes more bytes than this."""
        return sum(self._columns[column].widest for column in columns)

    def batch(self, index: Int64) -> pa.RecordBatch:
        """The chosen rows as a record batch."""
        if len(self.schema) == 0:
            return empty_columns(len(index))
        return pa.RecordBatch.from_arrays(self.take(index), schema=self.schema)

    def view(self, start: int, stop: int) -> pa.RecordBatch:
        """Rows ``start`` to ``stop``, not copied where possible: use them before the store changes, and let them go."""
        if len(self.schema) == 0:
            return empty_columns(stop - start)
        columns = [column.view(start, stop) for column in self._columns]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def truncate(self, length: int) -> None:
        """Forget the rows from ``length`` on."""
        for column in self._columns:
            column.truncate(length)
        self._account.release(rows=max(0, self._length - length))
        self._length = min(self._length, length)

    def keep(self, index: Int64) -> None:
        """Let these rows, in ascending order, be all there are; they get the numbers from 0 on."""
        for column in self._columns:
            column.keep(index)
        self._account.release(rows=self._length - len(index))
        self._length = len(index)

    def clear(self) -> None:
        """Forget all rows and give the memory back."""
        for column in self._columns:
            column.clear()
        self._account.release(rows=self._length)
        self._length = 0


def empty_columns(rows: int) -> pa.RecordBatch:
    """A batch of so many rows and no columns."""
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, type=pa.struct([])))


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """The table as one batch, also when it is empty."""
    batches = table.combine_chunks().to_batches()
    return (
        batches[0]
        if batches
        else pa.RecordBatch.from_arrays([pa.array([], f.type) for f in table.schema], schema=table.schema)
    )
