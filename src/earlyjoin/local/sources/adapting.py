"""Inputs that are known to have no rows: their columns take the types that the other inputs compare them with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from earlyjoin.errors import SourceError
from earlyjoin.local.sources.base import BatchSizes, Source
from earlyjoin.local.sources.columnar.widening import Converted
from earlyjoin.predicates.conjunction import Condition, bind
from earlyjoin.predicates.multiway import MultiEqual


def adapted(sources: Sequence[Source], condition: Condition | MultiEqual) -> tuple[Source, ...]:
    """The sources, where columns of an empty one that are joined have the type of what they are joined with.

    A CSV file with a header and no rows says nothing of types, so its columns come as nulls, which compare with
    anything. The result is to have useful types all the same. Columns that nothing is compared with stay nulls, and so
    do those that are compared with nulls alone.
    """
    if not any(source.untyped for source in sources):
        return tuple(sources)
    schemas = [source.schema for source in sources]
    wanted = list(schemas)
    bound = condition.bind(schemas) if isinstance(condition, MultiEqual) else bind(condition, *schemas)
    for part in bound.compared():
        for places in zip(*part.columns, strict=True):
            types = [schema.field(name).type for schema, name in zip(schemas, places, strict=True)]
            known = next((type_ for type_ in types if not pa.types.is_null(type_)), None)
            for side, name in enumerate(places):
                if known is not None and sources[side].untyped and pa.types.is_null(wanted[side].field(name).type):
                    wanted[side] = _typed(wanted[side], name, known)
    return tuple(
        source if schema is source.schema else _Adapted(source, schema)
        for source, schema in zip(sources, wanted, strict=True)
    )


def _typed(schema: pa.Schema, name: str, type_: pa.DataType) -> pa.Schema:
    index = schema.get_field_index(name)
    return schema.set(index, schema.field(index).with_type(type_))


class _Adapted(Converted):
    """No rows of other types."""

    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        """Nothing, as was known before; rows that come after all would have no type."""
        if next(self._inner.batches(size, start_row), None) is not None:
            raise SourceError(f"{self.name}: had no rows when it was opened, and has some now; start the join again")
        return iter(())
