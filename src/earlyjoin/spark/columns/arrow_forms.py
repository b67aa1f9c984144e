"""Columns of types that Arrow does not have: they travel as text, and are what they were when Spark keeps them.

Of Spark's types only intervals of months, and the old intervals of months, days and time, have no Arrow form. Spark
writes them as text and reads that text back without loss. They may be anywhere inside structs, arrays and maps.

Structs, variants and geometries whose parts are never null have an Arrow form, and yet ``toArrow`` fails where one of
them is null as a whole: it casts the parts, which are null then. So such rows are packed by tasks (``collected``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from earlyjoin.algorithms.output import OutputColumn
from earlyjoin.spark.bulk.spooling import SENT, packing
from earlyjoin.spark.session import functions

_WITHOUT_ARROW = frozenset({"YearMonthIntervalType", "CalendarIntervalType"})

_NEVER_NULL_INSIDE = frozenset({"VariantType", "GeometryType", "GeographyType"})

Leaf = Callable[[Any, Any], Any]
"""From a Column of such a type, and the type, to another Column."""


def collectable(frame: Any) -> Any:
    """The same DataFrame with text for everything that cannot become Arrow."""
    fields = frame.schema.fields
    if not any(lacks_arrow(field.dataType) for field in fields):
        return frame
    names = [f"c{position}" for position in range(len(fields))]
    f = functions()
    columns = [
        _rebuilt(f.col(name), field.dataType, _as_text).alias(field.name)
        for name, field in zip(names, fields, strict=True)
    ]
    return frame.toDF(*names).select(*columns)


def restored(rows: Any, columns: Sequence[OutputColumn], given: Sequence[Any]) -> Any:
    """The joined rows with the types that the inputs were ``given`` with."""
    types = [[field.dataType for field in frame.schema.fields] for frame in given]
    wanted = [
        next(types[side][position] for side, position in enumerate(column.position) if position is not None)
        for column in columns
    ]
    if not any(map(lacks_arrow, wanted)):
        return rows
    f = functions()
    names = [f"c{position}" for position in range(len(columns))]
    return rows.toDF(*names).select(
        *(
            _rebuilt(f.col(name), type_, lambda value, leaf: value.cast(leaf)).alias(column.field.name)
            for name, type_, column in zip(names, wanted, columns, strict=True)
        )
    )


def collected(frame: Any) -> pa.Table:
    """All rows of a DataFrame as Arrow; ``toArrow``, and what it fails at."""
    if not any(_may_fail(field.dataType) for field in frame.schema.fields if field.nullable):
        table: pa.Table = frame.toArrow()
        return table
    messages = [row[0] for row in frame.mapInArrow(packing(), SENT).collect()]
    batches = [batch for message in messages for batch in pa.ipc.open_stream(message)]
    wanted: pa.Schema = frame.limit(0).toArrow().schema
    if not batches:
        return wanted.empty_table()
    found = pa.Table.from_batches(batches)
    columns = [
        values if pa.types.is_nested(values.type) else values.cast(field.type)  # instants come in the session's zone
        for values, field in zip(found.columns, wanted, strict=True)
    ]
    return pa.table(columns, schema=pa.schema([f.with_type(c.type) for f, c in zip(wanted, columns, strict=True)]))


def _may_fail(type_: Any) -> bool:
    kind = type(type_).__name__
    if kind == "StructType" and not all(field.nullable for field in type_.fields):
        return True
    return kind in _NEVER_NULL_INSIDE or any(map(_may_fail, _parts(type_)))


def lacks_arrow(type_: Any) -> bool:
    """Is there anything in this type that Arrow does not have?"""
    return type(type_).__name__ in _WITHOUT_ARROW or any(map(lacks_arrow, _parts(type_)))


def _parts(type_: Any) -> list[Any]:
    kind = type(type_).__name__
    if kind == "StructType":
        return [field.dataType for field in type_.fields]
    if kind == "ArrayType":
        return [type_.elementType]
    return [type_.keyType, type_.valueType] if kind == "MapType" else []


def _as_text(value: Any, _: Any) -> Any:
    return value.cast("string")


def _rebuilt(value: Any, type_: Any, leaf: Leaf) -> Any:
    """The value with every part that Arrow does not have replaced."""
    f, kind = functions(), type(type_).__name__
    if kind in _WITHOUT_ARROW:
        return leaf(value, type_)
    if not lacks_arrow(type_):
        return value
    if kind == "ArrayType":
        return f.transform(value, lambda element: _rebuilt(element, type_.elementType, leaf))
    if kind == "MapType":
        entries = f.transform_keys(value, lambda key, _: _rebuilt(key, type_.keyType, leaf))
        return f.transform_values(entries, lambda _, held: _rebuilt(held, type_.valueType, leaf))
    parts = [_rebuilt(value.getField(one.name), one.dataType, leaf).alias(one.name) for one in type_.fields]
    return f.when(value.isNotNull(), f.struct(*parts))
