"""Conditions on one input alone: a column against a constant, or against another column of the same input.

They are part of the condition of the join, as in SQL's ``ON``: a row for which one does not hold matches nothing, and
an outer join that keeps its side gives it out unmatched. Values are compared as those of two columns are: NaN is
larger than every number, text is ordered by its bytes, a null compares with nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates.base import LEFT, RIGHT, BoundPredicate, Combinable, Pairs
from earlyjoin.predicates.comparison import Comparison
from earlyjoin.predicates.encoding.columns import SIDES, InputColumn, find_column, input_text, listed, near_name
from earlyjoin.predicates.encoding.keys import Bool, Keys
from earlyjoin.predicates.encoding.types import Incomparable, value_type
from earlyjoin.predicates.equality import Equal
from earlyjoin.predicates.filters import Filter
from earlyjoin.predicates.written.constants import constants

Sign = Literal["=", "<", "<=", ">", ">=", "<>"]
_CONSTANT = "constant"


class Unreadable(InputError):
    """A constant that does not fit its column. The types are Arrow's; an engine with other types says them itself."""

    def __init__(self, text: str, column: InputColumn, constant: str, quoted: str | None, type_name: str = "") -> None:
        name = type_name or str(value_type(column.type))
        if quoted is None:
            what = f"which does not read as {name}"
        else:
            what = f"a number; write it in single quotes: {quoted}"
        where = f"column {column.name!r} of {input_text(column.side)} ({name})"
        super().__init__(f"where: {text} compares {where} with {constant}, {what}")
        self._said, self.column = (text, column, constant, quoted), column

    def in_type(self, name: str) -> Unreadable:
        """The same with another name for the type of the column."""
        return Unreadable(*self._said, name)


@dataclass(frozen=True, slots=True)
class OneSided(Combinable):
    """A comparison that looks at one input alone; made by :func:`earlyjoin.predicates.where` from a text."""

    column: str
    op: Sign
    constant: str | None = None
    """What the column is compared with, as it was written, without quotes."""
    quoted: bool = False
    """Was the constant a text in quotes, or a number?"""
    other: str | None = None
    """The other column, where there is no constant."""
    side: int | None = None
    """The input; None: the one that has the column."""
    zone: str | None = None
    """Whose clocks a moment without an offset is read by; None: the column's."""

    def bind(self, left: pa.Schema, right: pa.Schema) -> BoundOneSided:
        """Resolve side, columns and types, or raise InputError / UnsupportedError naming what does not fit."""
        side = self._side(left, right) if self.side is None else self.side
        schema = (left, right)[side]
        column = find_column(schema, self.column, side)
        if self.other is not None:
            other = find_column(schema, self.other, side)
            return self._bound((column, other), self._predicate(column, other), None, None)
        tried: Incomparable | None = None
        for value in constants(self.constant or "", self._read_as(column), quoted=self.quoted, what=str(self)):
            batch = pa.record_batch([value], names=[_CONSTANT])
            try:
                predicate = self._predicate(column, InputColumn(side, _CONSTANT, value.type))
            except Incomparable as error:
                tried = error
            else:
                return self._bound((column,), predicate, value[0], predicate.encode(RIGHT, batch))
        if pa.types.is_nested(value_type(column.type)):
            raise UnsupportedError(f"where: {self}: {column} is nested, and no constant can be written for it")
        quoted = None if self.quoted else f"{self._head()} '{self.constant}'"
        raise Unreadable(str(self), column, self._constant(), quoted) from tried

    def _read_as(self, column: InputColumn) -> pa.DataType:
        type_ = value_type(column.type)
        if self.zone is not None and pa.types.is_timestamp(type_) and type_.tz is not None:
            return pa.timestamp(type_.unit, self.zone)
        return type_

    def _side(self, left: pa.Schema, right: pa.Schema) -> int:
        having = [side for side, schema in enumerate((left, right)) if self.column in schema.names]
        if len(having) == 1:
            return having[0]
        if having:
            raise InputError(
                f"where: {self} names the column {self.column!r}, which both inputs have; "
                f"write left.{self.column} or right.{self.column}"
            )
        close = near_name(self.column, [*left.names, *right.names])
        hint = f"did you mean {close!r}? " if close else ""
        inputs = "; ".join(f"{input_text(side)}: {listed(one.names)}" for side, one in enumerate((left, right)))
        raise InputError(
            f"where: {self} names the column {self.column!r}, which neither input has: {hint}columns of {inputs}"
        )

    def _predicate(self, column: InputColumn, other: InputColumn) -> BoundPredicate:
        one, two = (pa.schema([pa.field(each.name, each.type)]) for each in (column, other))
        if self.op == "=":
            return Equal((column.name,), (other.name,), (False,)).bind(one, two)
        return Comparison(column.name, self.op, other.name).bind(one, two)

    def _bound(
        self,
        columns: tuple[InputColumn, ...],
        predicate: BoundPredicate,
        constant: pa.Scalar | None,
        key: Keys | None,
    ) -> BoundOneSided:
        names, types, side = tuple(one.name for one in columns), tuple(one.type for one in columns), columns[0].side
        of_sides = (names, ()) if side == LEFT else ((), names)
        return BoundOneSided(side, self.op, of_sides, str(self), predicate, types, constant, key)

    def _head(self) -> str:
        column = self.column if self.side is None else f"{SIDES[self.side]}.{self.column}"
        return f"{column} {self.op}"

    def _constant(self) -> str:
        return f"'{self.constant}'" if self.quoted else str(self.constant)

    def __str__(self) -> str:
        if self.other is None:
            return f"{self._head()} {self._constant()}"
        return f"{self._head()} {'' if self.side is None else SIDES[self.side] + '.'}{self.other}"


@dataclass(frozen=True, slots=True)
class BoundOneSided:
    """A comparison whose input and types are known."""

    side: int
    op: Sign
    columns: tuple[tuple[str, ...], ...]
    """Of its side the column and, where there is no constant, the other one."""
    text: str
    predicate: BoundPredicate
    """It compares the column, as if it were that of the left input, with what stands on the other side of the sign."""
    types: tuple[pa.DataType, ...]
    """Of these columns."""
    constant: pa.Scalar | None
    key: Keys | None
    """Of the constant."""

    @property
    def expressions(self) -> tuple[Filter, ...]:
        """The Arrow expressions in it: none."""
        return ()

    def mask(self, pairs: Pairs) -> Bool:
        """For each candidate pair: does it hold for the row of this side?"""
        batch = pairs.columns(self.side, self.columns[self.side])
        each = np.arange(len(pairs), dtype=np.int64)
        key = self.predicate.encode(LEFT, batch)
        if self.key is None:
            return self.predicate.holds(key, each, self.predicate.encode(RIGHT, batch), each)
        return self.predicate.holds(key, each, self.key, np.zeros_like(each))
