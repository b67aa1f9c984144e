"""Columns as they travel through a join: indices and run ends that are wide enough, types that Arrow can gather."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from earlyjoin.local.sources.base import BatchSizes, Source
from earlyjoin.predicates.encoding.carried import carried_schema, from_carried, to_carried


def widened(source: Source) -> Source:
    """The source, with indices of at least 32 bits in its dictionary columns, and so with run ends.

    Batches bring dictionaries of their own; a joined batch holds rows of many: more values than 8 bits can number.
    """
    schema = pa.schema([field.with_type(_wide(field.type)) for field in source.schema])
    return source if schema.equals(source.schema) else _Columns(source, schema, _recoded)


def carried(source: Source) -> Source:
    """The source, with unions, run ends, list views and dictionaries of nested values in the form that is joined."""
    schema = carried_schema(source.schema)
    return source if schema is source.schema else _Columns(source, schema, lambda column, _: to_carried(column))


class Converted(Source):
    """A source of the same rows in another form."""

    def __init__(self, inner: Source, schema: pa.Schema) -> None:
        self._inner = inner
        self.name, self.schema = inner.name, schema
        self.rows_hint, self.bytes_hint = inner.rows_hint, inner.bytes_hint
        self.live, self.replayable, self.reopening = inner.live, inner.replayable, inner.reopening
        self.untyped, self.files = inner.untyped, inner.files

    @property
    def read_once(self) -> object | None:
        """What reading the wrapped input uses up."""
        return self._inner.read_once

    def used_up(self) -> bool:
        """Has somebody begun to read the wrapped input?"""
        return self._inner.used_up()

    def most(self) -> tuple[int, int] | None:
        """The size of the wrapped input."""
        return self._inner.most()

    def shuffled_blocks(self) -> tuple[list[int], int] | None:
        """The blocks of the wrapped input."""
        return self._inner.shuffled_blocks()


class _Columns(Converted):
    """Converts columns of every batch."""

    def __init__(self, inner: Source, schema: pa.Schema, convert: Callable[[pa.Array, pa.DataType], pa.Array]) -> None:
        super().__init__(inner, schema)
        self._convert = convert

    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        for batch in self._inner.batches(size, start_row):
            columns = [
                column if column.type == field.type else self._convert(column, field.type)
                for column, field in zip(batch.columns, self.schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _wide(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_run_end_encoded(type_) and pa.types.is_int16(type_.run_end_type):
        return pa.run_end_encoded(pa.int32(), type_.value_type)
    if not pa.types.is_dictionary(type_) or type_.index_type.bit_width >= 32:
        return type_
    return pa.dictionary(pa.int32(), type_.value_type, ordered=type_.ordered)


def _recoded(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_run_end_encoded(type_):
        return from_carried(to_carried(column), type_)
    return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), column.dictionary, ordered=type_.ordered)
