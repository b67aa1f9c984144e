"""Between Spark's columns and the plan's: schemas in, output columns out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from earlyjoin.algorithms.output import OutputColumn
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.spark.bulk.base import PREFIXES
from earlyjoin.spark.columns.arrow_types import plain_schema
from earlyjoin.spark.session import first_line

SIDES = ("left", "right")


def positional(dataframe: Any, side: int) -> Any:
    """The DataFrame with its columns named by position: no clash, also when it is joined with itself."""
    return dataframe.toDF(*(f"{PREFIXES[side]}{position}" for position in range(len(dataframe.columns))))


def arrow_schema(dataframe: Any, side: int) -> pa.Schema:
    """The columns as Arrow has them when they are collected: timestamps in the zone of the session."""
    if dataframe.isStreaming:
        raise InputError(f"the {SIDES[side]} input is a stream; this version joins finite tables on Spark")
    names = dataframe.columns
    if not names:
        raise InputError(f"the {SIDES[side]} input has no columns")
    plain = plain_schema(dataframe)
    if plain is not None:
        return plain
    try:
        schema = positional(dataframe, side).limit(0).toArrow().schema
    except Exception as error:
        raise UnsupportedError(
            f"the {SIDES[side]} input has a column that cannot become Arrow: {first_line(error)}; "
            "leave it out or cast it"
        ) from error
    return pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])


def output_frame(plan: Plan, rows: Any) -> Any:
    """Joined rows with columns by position, as the user sees them: names, one column for shared keys."""
    # As texts: a Column is put together by several calls to Java.
    return rows.selectExpr(
        *(f"{_value(column, plan)} AS {quoted(column.field.name)}" for column in plan.output.columns)
    )


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return "`" + name.replace("`", "``") + "`"


def output_batch(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch that Spark gave, with exactly the types of the plan."""
    arrays = [
        values if values.type == field.type else values.cast(field.type)
        for values, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _value(column: OutputColumn, plan: Plan) -> str:
    sources, types = [], []
    for side, place in enumerate(column.position):
        if place is not None:
            sources.append(f"{PREFIXES[side]}{place}")
            types.append(plan.schemas[side].field(place).type)
    if len(sources) == 1:
        return sources[0]
    if types[0] != types[1]:  # Spark has no common type of a boolean and a number
        sources = [
            f"CAST({one} AS tinyint)" if pa.types.is_boolean(type_) else one
            for one, type_ in zip(sources, types, strict=True)
        ]
    return f"coalesce({', '.join(sources)})"
