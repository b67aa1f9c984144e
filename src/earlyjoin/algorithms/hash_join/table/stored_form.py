"""The form in which rows are kept: strings and bytes with 64-bit offsets, whatever form they arrive in.

Columns in memory have that form anyway (:mod:`earlyjoin.state.rows.columns`). Converting a batch once, when it is
ordered by partition, spares a conversion for each slice of it, and a page on disk must not carry buffers that views
share.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Keys


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of rows as they are kept."""
    return pa.schema([field.with_type(_stored_type(field.type)) for field in schema])


def to_stored(columns: list[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Columns of a batch as rows that can be kept; ``schema`` is that of ``stored_schema``."""
    stored = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(stored, schema=schema)


def _stored_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_string(type_) or pa.types.is_string_view(type_):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(type_) or pa.types.is_binary_view(type_) else type_


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """Makes the keys of kept rows again: of key columns in the form in which the predicate knows them."""

    key: BoundPredicate
    side: int
    fields: tuple[pa.Field, ...]
    """The key columns as they arrive."""

    @classmethod
    def of(cls, key: BoundPredicate, side: int, schema: pa.Schema) -> StoredKeys:
        """For one input as it arrives."""
        return cls(key, side, tuple(schema.field(name) for name in dict.fromkeys(key.columns[side])))

    def encode(self, batch: pa.RecordBatch) -> Keys:
        """The keys of a batch of kept rows."""
        columns = [batch.column(field.name) for field in self.fields]
        columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, self.fields, strict=True)]
        return self.key.encode(self.side, pa.RecordBatch.from_arrays(columns, schema=pa.schema(self.fields)))
