"""Schemas of one input must agree: across files, across batches, and with the columns that were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.predicates.encoding.columns import listed, near_name


def plain(schema: pa.Schema) -> pa.Schema:
    """Without the metadata that describes the file or frame (a pandas index, say) rather than the columns."""
    return schema.remove_metadata()


def project(schema: pa.Schema, columns: Sequence[str] | None, where: str) -> pa.Schema:
    """The chosen columns, in the chosen order; all when ``columns`` is None."""
    if columns is None:
        return schema
    for column in columns:
        if schema.get_all_field_indices(column) == []:
            raise InputError(unknown_column(column, schema.names, where))
    if len(set(columns)) < len(columns):
        raise InputError(f"{where}: columns names one column twice: {', '.join(columns)}")
    return pa.schema([schema.field(column) for column in columns])


def unknown_column(column: str, names: Sequence[str], where: str) -> str:
    """The message for a column that is not there, with the closest one that is."""
    close = near_name(column, names)
    return f"{where}: no column {column!r}; " + (f"did you mean {close!r}?" if close else f"it has {listed(names)}")


def difference(schema: pa.Schema, expected: pa.Schema) -> str | None:
    """What differs in names and types, told for the first column that does; nullability and metadata may differ."""
    if schema.names == expected.names:
        pairs = zip(schema, expected, strict=True)
        return next((f"column {a.name!r} is {a.type}, not {b.type}" for a, b in pairs if a.type != b.type), None)
    for name in expected.names:
        if name not in schema.names:
            return f"column {name!r} is missing"
    for name in schema.names:
        if name not in expected.names:
            return f"column {name!r} is new"
    at = next((i for i, (a, b) in enumerate(zip(schema.names, expected.names, strict=False)) if a != b), len(expected))
    names = [*schema.names, "(nothing)"], [*expected.names, "(nothing)"]
    return f"column {at + 1} is {names[0][min(at, len(schema))]!r}, not {names[1][min(at, len(expected))]!r}"


def nullability(schema: pa.Schema, expected: pa.Schema) -> str | None:
    """The first column, of the same names and types, that may hold nulls in one schema alone."""
    for one, other in zip(schema, expected, strict=True):
        if one.nullable and not other.nullable:
            return f"column {one.name!r} may hold nulls, and was declared without them"
        if other.nullable and not one.nullable:
            return f"column {one.name!r} is declared without nulls, and could hold them"
    return None


EMPTY_ADVICE = "pass a table without rows (schema.empty_table()), which has columns"


def merged(schemas: Iterable[tuple[str, pa.Schema]], where: str) -> pa.Schema:
    """The schema that several files (or batches) share; a column is nullable when it is so in any of them."""
    result: pa.Schema = None
    first = ""
    for name, schema in schemas:
        if result is None:
            result, first = plain(schema), name
        elif differs := difference(schema, result):
            raise InputError(
                f"{where}: {name}: {differs}, compared with {first}; all parts of one input need the same columns"
            )
        else:
            result = _either_nullable(result, schema)
    if result is None:
        raise InputError(f"{where}: nothing in it, so its columns are unknown; {EMPTY_ADVICE}")
    return result


def _either_nullable(schema: pa.Schema, other: pa.Schema) -> pa.Schema:
    fields = [a.with_nullable(True) if b.nullable and not a.nullable else a for a, b in zip(schema, other, strict=True)]
    return pa.schema(fields)


def conform(batch: pa.RecordBatch, schema: pa.Schema, where: str) -> pa.RecordBatch:
    """The same columns under ``schema``; an error names the column that does not fit."""
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    if differs := difference(batch.schema, schema):
        raise InputError(f"{where}: a batch does not fit the schema: {differs}; all batches need the same columns")
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def nulls_as_text(schema: pa.Schema) -> pa.Schema:
    """Columns that were empty in all rows looked at become text: what comes later fits, and nulls stay nulls."""
    return pa.schema([f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in schema])


def parse_types(types: Mapping[str, object] | None) -> dict[str, pa.DataType]:
    """The ``types`` option: Arrow types, or their names ("int64", "string", "timestamp[us]", "date32")."""
    result: dict[str, pa.DataType] = {}
    for column, given in (types or {}).items():
        if isinstance(given, pa.DataType):
            result[column] = given
            continue
        try:
            result[column] = pa.type_for_alias(given)
        except (ValueError, TypeError) as error:
            wrong = f"{given!r} for column {column!r} is no type; give"
            names = "a name such as int64, double, string, date32, timestamp[us], bool"
            raise InputError(
                f"types: {wrong} a pyarrow type, or {names}", command=f"--types-SIDE: {wrong} {names}"
            ) from error
    return result
