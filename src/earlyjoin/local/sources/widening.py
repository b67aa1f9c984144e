"""Dictionary columns whose indices are too narrow for batches that mix several dictionaries."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from earlyjoin.local.sources.base import BatchRows, Source


def widened(source: Source) -> Source:
    """The source, with indices of at least 32 bits in its dictionary columns.

    Batches bring dictionaries of their own; a joined batch holds rows of many: more values than 8 bits can number.
    """
    schema = pa.schema([field.with_type(_wide(field.type)) for field in source.schema])
    return source if schema.equals(source.schema) else _Widened(source, schema)


class _Widened(Source):
    """Casts every batch."""

    def __init__(self, inner: Source, schema: pa.Schema) -> None:
        self._inner = inner
        self.name, self.schema = inner.name, schema
        self.rows_hint, self.bytes_hint = inner.rows_hint, inner.bytes_hint
        self.live, self.replayable, self.reopening = inner.live, inner.replayable, inner.reopening
        self.untyped, self.files = inner.untyped, inner.files

    @property
    def read_once(self) -> object | None:
        """That of the input."""
        return self._inner.read_once

    def used_up(self) -> bool:
        """As the input says."""
        return self._inner.used_up()

    def shuffled_blocks(self) -> tuple[list[int], int] | None:
        """Those of the input."""
        return self._inner.shuffled_blocks()

    def batches(self, size: BatchRows, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        for batch in self._inner.batches(size, start_row):
            columns = [
                column if column.type == field.type else _recoded(column, field.type)
                for column, field in zip(batch.columns, self.schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _wide(type_: pa.DataType) -> pa.DataType:
    if not pa.types.is_dictionary(type_) or type_.index_type.bit_width >= 32:
        return type_
    return pa.dictionary(pa.int32(), type_.value_type, ordered=type_.ordered)


def _recoded(column: pa.Array, type_: pa.DataType) -> pa.Array:
    return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), column.dictionary, ordered=type_.ordered)
