"""Conditions on one input alone: a column against a constant, or against another column of the same input.

They are part of the condition of the join, as in SQL's ``ON``: a row for which one does not hold matches nothing, and
an outer join that keeps its side gives it out unmatched. Values are compared as those of two columns are: NaN is
larger than every number, text is ordered by its bytes, a null compares with nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal

import numpy as np
import pyarrow as pa

from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates.base import LEFT, RIGHT, BoundPredicate, Combinable, Pairs
from earlyjoin.predicates.columns import SIDES, Column, find_column, input_text, listed, near_name
from earlyjoin.predicates.comparison import Comparison
from earlyjoin.predicates.equality import Equal
from earlyjoin.predicates.filters import Filter
from earlyjoin.predicates.keys import Bool, Keys
from earlyjoin.predicates.types import Incomparable, value_type

Sign = Literal["=", "<", "<=", ">", ">=", "<>"]
_MOST_DIGITS = 38
_CONSTANT = "constant"


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

    def bind(self, left: pa.Schema, right: pa.Schema) -> BoundOneSided:
        """Resolve side, columns and types, or raise InputError / UnsupportedError naming what does not fit."""
        side = self._side(left, right) if self.side is None else self.side
        schema = (left, right)[side]
        column = find_column(schema, self.column, side)
        if self.other is not None:
            names: tuple[str, ...] = (self.column, self.other)
            other = find_column(schema, self.other, side)
            return self._bound(side, names, self._predicate(column, other), None, None)
        tried: Incomparable | None = None
        for value in _constants(self.constant or "", column, quoted=self.quoted):
            batch = pa.record_batch([value], names=[_CONSTANT])
            try:
                predicate = self._predicate(column, Column(side, _CONSTANT, value.type))
            except Incomparable as error:
                tried = error
            else:
                return self._bound(side, (self.column,), predicate, value[0], predicate.encode(RIGHT, batch))
        if pa.types.is_nested(value_type(column.type)):
            raise UnsupportedError(f"where: {self}: {column} is nested, and no constant can be written for it")
        if self.quoted:
            what = f"which does not read as {value_type(column.type)}"
        else:
            what = f"a number; write it in single quotes: {self._head()} '{self.constant}'"
        raise InputError(f"where: {self} compares {column} with {self._constant()}, {what}") from tried

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

    def _predicate(self, column: Column, other: Column) -> BoundPredicate:
        one, two = (pa.schema([pa.field(each.name, each.type)]) for each in (column, other))
        if self.op == "=":
            return Equal((column.name,), (other.name,), (False,)).bind(one, two)
        return Comparison(column.name, self.op, other.name).bind(one, two)

    def _bound(
        self,
        side: int,
        names: tuple[str, ...],
        predicate: BoundPredicate,
        constant: pa.Scalar | None,
        key: Keys | None,
    ) -> BoundOneSided:
        columns = (names, ()) if side == LEFT else ((), names)
        return BoundOneSided(side, self.op, columns, str(self), predicate, constant, key)

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


def _constants(text: str, column: Column, *, quoted: bool) -> Iterator[pa.Array]:
    """What a constant may mean beside a column, the likeliest first: an array of one value each."""
    type_ = value_type(column.type)
    if not quoted:
        yield _number(text, floating=pa.types.is_floating(type_))
        return
    if not pa.types.is_null(type_):
        for wanted in (type_, *_finer(type_)):
            try:
                yield pa.array([text], pa.string()).cast(wanted)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                continue
    if pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        with suppress(InvalidOperation):
            yield _decimal(Decimal(text))
    yield pa.array([text], pa.string())


def _finer(type_: pa.DataType) -> list[pa.DataType]:
    """Types that hold more than the column's own, for moments between two of its ticks."""
    if pa.types.is_timestamp(type_):
        return [pa.timestamp(unit, type_.tz) for unit in ("ms", "us", "ns")]
    if pa.types.is_date(type_):
        return [pa.timestamp(unit) for unit in ("s", "us", "ns")]
    return []


def _number(text: str, *, floating: bool) -> pa.Array:
    """An integer or a decimal without rounding, a float beside floats and where it has too many digits."""
    number = Decimal(text)
    whole = number == number.to_integral_value()
    if whole and abs(number) < 2**63:
        return pa.array([int(number)], pa.int64())
    return pa.array([float(text)], pa.float64()) if floating else _decimal(number)


def _decimal(number: Decimal) -> pa.Array:
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):  # infinite
        return pa.array([float(number)], pa.float64())
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > _MOST_DIGITS:
        return pa.array([float(number)], pa.float64())
    return pa.array([number], pa.decimal128(precision, scale))
