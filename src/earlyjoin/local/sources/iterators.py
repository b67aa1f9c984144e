"""Data that comes once: record batch readers, Arrow streams, generators and other iterators of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa

from earlyjoin.errors import EarlyJoinError, InputError, SourceError
from earlyjoin.local.sources.base import BatchSizes, Source
from earlyjoin.local.sources.piping.once import already_read, is_taken, take
from earlyjoin.local.sources.schemas import conform, plain, project
from earlyjoin.local.sources.slicing import Cutter
from earlyjoin.local.sources.text.faults import first_line
from earlyjoin.state.frames import as_table


class IteratorSource(Source):
    """Rows of an iterator of batches, tables or frames; it can be read only once, and may wait between batches.

    Without ``schema``, asking for the schema takes the first item from the iterator and keeps it. Its columns are then
    all nullable, since later items may have nulls where the first has none. ``start_row`` skips rows of the iterator:
    a resumed query that is given an iterator of the rest asks for row 0.
    """

    live = True
    replayable = False

    def __init__(
        self,
        items: Iterable[Any],
        *,
        name: str,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        origin: object | None = None,
    ) -> None:
        self.name = name
        self._columns = columns
        self._items = _iterator(items, name)
        self._origin = self._items if origin is None else origin
        self._begun = False
        self._given = schema
        self._peeked: list[pa.Table] = []
        self._read = False

    @property
    def read_once(self) -> object | None:
        """The iterator, or the object that gave the stream."""
        return self._origin

    def used_up(self) -> bool:
        """Was it read, or has another source taken items from its iterator?

        A new stream of an object that gave one before is another iterator: only that object knows.
        """
        return self._read or (not self._begun and is_taken(self._items))

    @cached_property
    def schema(self) -> pa.Schema:
        """Of every batch; taken from the first item when none was given."""
        return project(self._full_schema, self._columns, self.name)

    @cached_property
    def _full_schema(self) -> pa.Schema:
        if self._given is not None:
            return plain(self._given)
        first = next(self._tables(), None)
        if first is None:
            raise InputError(
                f"{self.name}: the iterator gave nothing, so the columns are unknown; pass a reader that knows them, "
                "as pyarrow.RecordBatchReader.from_batches(schema, ...) makes it"
            )
        self._peeked.append(first)
        return pa.schema([field.with_nullable(True) for field in first.schema])

    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows from ``start_row`` on, as they come; works once."""
        cutter = Cutter(size, start_row)
        if self._read:
            raise SourceError(f"{self.name}: an iterator can be read only once; pass a table or files to read it again")
        self._read = True
        full, schema = self._full_schema, self.schema
        for table in chain(self._taken(), self._tables()):
            for batch in table.to_batches():
                batch = conform(batch, full, self.name)
                yield from cutter.cut(batch if self._columns is None else batch.select(schema.names))

    def _taken(self) -> Iterator[pa.Table]:
        while self._peeked:
            yield self._peeked.pop()

    def _tables(self) -> Iterator[pa.Table]:
        """The items as tables. What the iterator raises is its own failure, not a fault of the join."""
        if not self._begun and not take(self._items):
            raise already_read(self.name, self._items)
        self._begun = True
        while True:
            try:
                item = next(self._items)
            except StopIteration:
                return
            except EarlyJoinError:
                raise
            except Exception as error:
                raise SourceError(f"{self.name}: broke off with {type(error).__name__}: {first_line(error)}") from error
            table = as_table(item, self.name)
            if table is None:
                raise InputError(
                    f"{self.name}: an iterator must give pyarrow batches or tables, it gave {type(item).__name__}"
                )
            yield table


def _iterator(items: Iterable[Any], name: str) -> Iterator[Any]:
    try:
        return iter(items)
    except (MemoryError, EarlyJoinError):
        raise
    except Exception as error:
        message = f"{name}: this {type(items).__name__} cannot be iterated: {first_line(error)}"
        raise InputError(message) from error


def _advice(error: Exception) -> str:
    """What to do about an object that cannot give its stream now."""
    if type(error).__name__ != "ResourceInUseException":
        return ""
    return (
        "; DuckDB has one open result a connection: read one of the inputs into memory first, with .to_arrow_table(), "
        "or make it on a connection of its own (connection.cursor())"
    )


def from_stream(data: Any, *, name: str, columns: Sequence[str] | None = None) -> IteratorSource:
    """Any object with the Arrow stream protocol; nothing says that it could be asked twice, so it is read once."""
    try:
        reader = data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)
        schema = reader.schema
    except (MemoryError, EarlyJoinError):
        raise
    except Exception as error:  # the object's own code ran, and may fail as it likes
        message = f"{name}: this {type(data).__name__} gives no Arrow stream of batches: {first_line(error)}"
        raise InputError(message + _advice(error)) from error
    return IteratorSource(reader, name=name, schema=schema, columns=columns, origin=data)
