"""The Arrow types that columns have once they are collected, told from Spark's types where no doubt is possible.

Asking Spark (collecting no rows of the DataFrame) is always right, and takes as long as planning a query. The types of
most columns need no asking.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

_LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
_TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
}
_TEXTS = {"string": (pa.string(), pa.large_string()), "binary": (pa.binary(), pa.large_binary())}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def plain_schema(dataframe: Any) -> pa.Schema | None:
    """The columns as ``toArrow`` gives them; None where only Spark can tell (timestamps, nested and special types)."""
    fields = [(field.name, field.dataType.simpleString(), field.nullable) for field in dataframe.schema.fields]
    large = False
    if any(name in _TEXTS for _, name, _ in fields):
        large = dataframe.sparkSession.conf.get(_LARGE) == "true"
    types = [_arrow_type(name, large=large) for _, name, _ in fields]
    if None in types:
        return None
    return pa.schema(
        [pa.field(name, type_, nullable) for (name, _, nullable), type_ in zip(fields, types, strict=True)]
    )


def _arrow_type(name: str, *, large: bool) -> pa.DataType | None:
    if name in _TEXTS:
        return _TEXTS[name][large]
    found = _DECIMAL.fullmatch(name)
    if found is not None:
        return pa.decimal128(int(found[1]), int(found[2]))
    return _TYPES.get(name)
