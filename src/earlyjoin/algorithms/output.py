"""The joined row: its columns and names, and the one place where rows are built from row numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.errors import InputError
from earlyjoin.predicates.encoding.buffers import plain
from earlyjoin.predicates.encoding.carried import carried_type, from_carried
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.predicates.encoding.types import is_list
from earlyjoin.state.rows.packed import RowPacking, UnpackedRows
from earlyjoin.state.rows.sizes import array_nbytes, batch_nbytes
from earlyjoin.state.rows.store import Rows, empty_columns

DEFAULT_SUFFIXES = ("", "_right")
_INTEGER = pa.decimal128(20, 0)
"""Holds every integer, signed or not."""
_DIGIT = pa.decimal128(3, 0)
"""Holds 0 and 1, in the narrowest form that Arrow casts small integers to."""


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of the joined row and where it comes from: its position on each side, None where it does not exist."""

    field: pa.Field
    position: tuple[int | None, ...]


class OutputSchema:
    """The columns of a joined row, and how to fill them."""

    def __init__(self, columns: Sequence[OutputColumn], packings: Sequence[RowPacking | None] = ()) -> None:
        self.columns = tuple(columns)
        self.packings = tuple(packings)
        """How the rows of each side travel, if any are packed; positions are those of the columns before that."""
        self.schema = pa.schema([column.field for column in columns])
        self._types = [column.field.type for column in columns]
        self._wanted: dict[tuple[bool, ...], tuple[list[int], ...]] = {}
        self._measured: tuple[list[int], int] | None = None
        self._origins: dict[tuple[bool, ...], list[tuple[int, int] | None]] = {}

    @classmethod
    def of(
        cls,
        left: pa.Schema,
        right: pa.Schema,
        how: JoinType,
        *,
        shared: Sequence[str] = (),
        suffixes: tuple[str, str] = DEFAULT_SUFFIXES,
        ignore_case: bool = False,
    ) -> OutputSchema:
        """The output of joining two inputs.

        Columns named in ``shared`` (keys joined as ``on="k"``) appear once: the right one in a right join, in a full
        join whichever side has the row, else the left one. A name that both sides have gets the side's suffix. Semi
        and anti joins give the left columns alone. ``ignore_case`` takes names that differ in case only for the same,
        as Spark does.
        """
        if not how.gives_pairs:
            return cls([OutputColumn(field, (position, None)) for position, field in enumerate(left)])
        # A key may have been found on the right under another spelling, which is so only where case is ignored.
        same = str.lower if ignore_case or not set(shared) <= set(right.names) else str
        once = {same(name) for name in shared}
        clashing = ({same(name) for name in left.names} & {same(name) for name in right.names}) - once
        columns = []
        for position, field in enumerate(left):
            nullable = field.nullable or how in (JoinType.RIGHT, JoinType.FULL)
            if same(field.name) in once:
                other = next(at for at, name in enumerate(right.names) if same(name) == same(field.name))
                columns.append(_shared_column(how, position, field, other, right.field(other)))
            else:
                name = field.name + (suffixes[0] if same(field.name) in clashing else "")
                columns.append(OutputColumn(pa.field(name, field.type, nullable), (position, None)))
        for position, field in enumerate(right):
            if same(field.name) in once:
                continue
            nullable = field.nullable or how in (JoinType.LEFT, JoinType.FULL)
            name = field.name + (suffixes[1] if same(field.name) in clashing else "")
            columns.append(OutputColumn(pa.field(name, field.type, nullable), (None, position)))
        advice = f"choose other suffixes than {suffixes!r} or rename a column"
        _check_names([column.field.name for column in columns], advice, ignore_case=ignore_case)
        return cls(columns)

    @classmethod
    def of_many(cls, names: Sequence[str], schemas: Sequence[pa.Schema], *, shared: Sequence[str] = ()) -> OutputSchema:
        """The output of an inner join of named inputs: their columns, input by input.

        Columns named in ``shared`` appear once, where and as the first input has them. Any other name that several
        inputs have gets the name of the input, in each of them: ``id_a``, ``id_b``.
        """
        counts = Counter(name for schema in schemas for name in dict.fromkeys(schema.names))
        columns = []
        for side, (input_, schema) in enumerate(zip(names, schemas, strict=True)):
            for position, field in enumerate(schema):
                if field.name in shared and side > 0:
                    continue
                clashes = counts[field.name] > 1 and field.name not in shared
                name = f"{field.name}_{input_}" if clashes else field.name
                places = tuple(position if other == side else None for other in range(len(schemas)))
                columns.append(OutputColumn(pa.field(name, field.type, field.nullable), places))
        _check_names([column.field.name for column in columns], "rename a column or an input")
        return cls(columns)

    def restricted_to(self, names: Container[str]) -> OutputSchema:
        """The same rows with fewer columns."""
        return OutputSchema([column for column in self.columns if column.field.name in names], self.packings)

    def of_packed(self, packings: Sequence[RowPacking | None]) -> OutputSchema:
        """The same rows, of inputs that travel packed."""
        return OutputSchema(self.columns, packings)

    def build(self, rows: tuple[Rows | None, ...], index: tuple[Int64 | None, ...]) -> pa.RecordBatch:
        """Make record batches of row numbers. A side that is None is null in every row."""
        length = next(len(numbers) for numbers in index if numbers is not None)
        if not self.columns:
            return empty_columns(length)
        taken: list[list[pa.Array]] = []
        for source, numbers, wanted in zip(self._unpacked(rows), index, self._wanted_of(rows), strict=True):
            taken.append([] if source is None or numbers is None or not wanted else source.take(numbers, wanted))
        arrays = []
        for origin, type_, column in zip(self._origins_of(rows), self._types, self.columns, strict=True):
            values = pa.nulls(length, type_) if origin is None else taken[origin[0]][origin[1]]
            arrays.append(values if values.type == type_ else _as(values, column.field))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def nbytes(self, batch: pa.RecordBatch) -> int:
        """Bytes of rows that were built."""
        if not self.packings:
            return batch_nbytes(batch)
        if self._measured is None:
            widths = [self._packed_width(column) for column in self.columns]
            numbers = [number for number, width in enumerate(widths) if not width]
            self._measured = numbers, sum(widths)
        numbers, row_nbytes = self._measured
        return sum(array_nbytes(batch.column(number)) for number in numbers) + row_nbytes * int(batch.num_rows)

    def _packed_width(self, column: OutputColumn) -> int:
        """Of a value of the column, as it was packed; 0 for a column that travels as it is."""
        packed = [
            packing.width(position)
            for side, (packing, position) in enumerate(zip(self.packings, column.position, strict=True))
            if packing is not None and position is not None and not self._travels(side, position)
        ]
        return max(packed, default=0)

    def _travels(self, side: int, position: int | None) -> bool:
        """Does a column travel as it is?"""
        packing = self.packings[side]
        return position is None or packing is None or position in packing.places

    def _unpacked(self, rows: tuple[Rows | None, ...]) -> tuple[Rows | None, ...]:
        """The rows with all their columns."""
        if not self.packings:
            return rows
        return tuple(
            source if source is None or packing is None else UnpackedRows(source, packing)
            for source, packing in zip(rows, self.packings, strict=True)
        )

    def fitting(self, rows: tuple[Rows | None, ...], index: tuple[Int64 | None, ...], nbytes: int) -> int:
        """How many of the rows, from the first on, can be built within so many bytes; at least one."""
        sides = self._filling(rows, index)
        length = len(sides[0][1])
        if length * sum(source.widest(wanted) for source, _, wanted in sides) <= nbytes:
            return length
        return max(1, int(np.searchsorted(np.cumsum(self.sizes(rows, index)), nbytes, side="right")))

    def sizes(self, rows: tuple[Rows | None, ...], index: tuple[Int64 | None, ...]) -> Int64:
        """Bytes that each of the rows takes when it is built."""
        sides = self._filling(rows, index)
        sizes = np.zeros(len(sides[0][1]), dtype=np.int64)
        for source, numbers, wanted in sides:
            sizes += source.sizes(numbers, wanted)
        return sizes

    def _filling(
        self, rows: tuple[Rows | None, ...], index: tuple[Int64 | None, ...]
    ) -> list[tuple[Rows, Int64, list[int]]]:
        """The sides that are there: their rows, which of them, and the columns that they fill."""
        sides = []
        for source, numbers, wanted in zip(self._unpacked(rows), index, self._wanted_of(rows), strict=True):
            if source is not None and numbers is not None:
                sides.append((source, numbers, wanted))
        return sides

    def _wanted_of(self, rows: tuple[Rows | None, ...]) -> tuple[list[int], ...]:
        """For each side the positions of the columns that it fills."""
        present = tuple(source is not None for source in rows)
        if present not in self._wanted:
            sources = [[self._source(column, rows, side) for column in self.columns] for side in range(len(rows))]
            self._wanted[present] = tuple([place for place in places if place is not None] for places in sources)
        return self._wanted[present]

    def _origins_of(self, rows: tuple[Rows | None, ...]) -> list[tuple[int, int] | None]:
        """For each column the side that fills it, and its place among those that this side fills; None: it is null."""
        present = tuple(source is not None for source in rows)
        if present not in self._origins:
            origins: list[tuple[int, int] | None] = []
            filled = [0] * len(rows)
            for column in self.columns:
                places = [self._source(column, rows, side) for side in range(len(rows))]
                side = next((side for side, place in enumerate(places) if place is not None), None)
                origins.append(None if side is None else (side, filled[side]))
                if side is not None:
                    filled[side] += 1
            self._origins[present] = origins
        return self._origins[present]

    @staticmethod
    def _source(column: OutputColumn, rows: tuple[Rows | None, ...], side: int) -> int | None:
        """The position of the column on this side, if this side is the first that can fill it."""
        first = next((s for s, p in enumerate(column.position) if p is not None and rows[s] is not None), None)
        return column.position[side] if first == side else None


def _shared_column(how: JoinType, position: int, left: pa.Field, other: int, right: pa.Field) -> OutputColumn:
    """A key that both sides have under one name. Only a full join has to mix the values of both sides."""
    if how is JoinType.FULL:
        type_ = _merged_type(left.type, right.type)
        return OutputColumn(pa.field(left.name, type_, left.nullable or right.nullable), (position, other))
    if how is JoinType.RIGHT:
        return OutputColumn(right.remove_metadata(), (None, other))
    return OutputColumn(left.remove_metadata(), (position, None))


def _merged_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """A type for the keys of both sides."""
    if left == right:
        return left
    if (carried_type(left), carried_type(right)) != (left, right):
        return _merged_type(carried_type(left), carried_type(right))
    if isinstance(left, pa.BaseExtensionType) or isinstance(right, pa.BaseExtensionType):
        stored = (t.storage_type if isinstance(t, pa.BaseExtensionType) else t for t in (left, right))
        return _merged_type(*stored)
    for one, other in ((left, right), (right, left)):
        if pa.types.is_boolean(one) and _is_number(other):  # Arrow has no common type, and an integer is no boolean
            return _merged_type(_DIGIT, other) if pa.types.is_decimal(other) else other
    if is_list(left) and is_list(right):
        return pa.large_list(_merged_type(left.value_type, right.value_type))
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        return pa.struct([(a.name, _merged_type(a.type, b.type)) for a, b in zip(left, right, strict=True)])
    if pa.types.is_date(left) and pa.types.is_timestamp(right):
        return right  # the other way round the time of day would get lost
    if pa.types.is_dictionary(left) != pa.types.is_dictionary(right):
        return _merged_type(*(type_.value_type if pa.types.is_dictionary(type_) else type_ for type_ in (left, right)))
    if _needs_decimal(left, right) or _needs_decimal(right, left):
        # Arrow's own answer is too narrow: int64, or a decimal without room for all digits of the integer.
        left, right = (_INTEGER if pa.types.is_integer(type_) else type_ for type_ in (left, right))
    try:
        both = [pa.schema([pa.field("key", type_)]) for type_ in (left, right)]
        return pa.unify_schemas(both, promote_options="permissive").field(0).type
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return left


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _needs_decimal(one: pa.DataType, other: pa.DataType) -> bool:
    unsigned = pa.types.is_uint64(one) and pa.types.is_signed_integer(other)
    return bool(unsigned or (pa.types.is_integer(one) and pa.types.is_decimal(other)))


def _as(values: pa.Array, field: pa.Field) -> pa.Array:
    """Values in the type that goes out: back from the form in which they travelled, or those of a merged key."""
    travelled = carried_type(field.type)
    if travelled != field.type:  # text may have been kept with wider offsets
        return from_carried(values if values.type == travelled else values.cast(travelled), field.type)
    if pa.types.is_dictionary(values.type) and not pa.types.is_dictionary(field.type):
        values = plain(values)  # Arrow cannot cast a dictionary to views, nor decode one of views
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.storage
    if pa.types.is_boolean(values.type):  # Arrow casts booleans to few types
        values = values.cast(pa.uint8()).cast(_DIGIT) if pa.types.is_decimal(field.type) else values.cast(pa.uint8())
    try:
        return values.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"a value of key column {field.name!r} ({values.type}) does not fit {field.type}, the common type of both "
            f"inputs: {error}; name the key twice, as in equal({field.name!r}, {field.name!r}), to keep both columns"
        ) from error


def _check_names(names: list[str], advice: str, *, ignore_case: bool = False) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InputError(f"the joined row would have two columns named {twice[0]!r}; {advice}")
    if ignore_case:
        folded = [name.lower() for name in names]
        counts = Counter(folded)
        alike = [name for name, fold in zip(names, folded, strict=True) if counts[fold] > 1]
        if alike:
            raise InputError(
                f"the joined row would have columns {', '.join(map(repr, alike))}, which differ in case only, and "
                f"Spark takes no notice of case (spark.sql.caseSensitive is false); {advice}"
            )
