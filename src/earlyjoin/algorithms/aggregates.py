"""Aggregates over the result (online aggregation): SUM, AVG and COUNT of an expression, known a little more every step.

An expression is a column of the result by its output name, or a ``pyarrow.compute`` expression over such columns. It is
evaluated on the matches of a step, of which only the columns that it reads are gathered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from earlyjoin.algorithms.estimation.estimate import Aggregate
from earlyjoin.algorithms.estimation.tally import EVERY_MATCH, Measure
from earlyjoin.algorithms.protocol import Matches, Plan
from earlyjoin.errors import InputError
from earlyjoin.predicates.encoding.carried import empty_table
from earlyjoin.predicates.filters import unfit
from earlyjoin.predicates.written import saved

_SAFE_INTEGER_SUM = 2.0**62
_NARROW_DECIMAL = 30
"""Digits that leave room in 128 bits for the sum of a batch."""
_MISFITS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError)


@dataclass(frozen=True, slots=True, eq=False)
class AggregateOf:
    """What is asked about the result; made by :func:`sum`, :func:`avg` and :func:`count`."""

    kind: Aggregate
    expression: pc.Expression | None
    """None: of the rows themselves."""

    def __str__(self) -> str:
        return f"{self.kind}({'*' if self.expression is None else self.expression})"


def sum(expression: str | pc.Expression) -> AggregateOf:
    """The sum of a column of the result, or of a ``pyarrow.compute`` expression; nulls are left out.

    >>> print(sum("price"))
    sum(price)
    """
    return AggregateOf(Aggregate.SUM, _expression(Aggregate.SUM, expression))


def avg(expression: str | pc.Expression) -> AggregateOf:
    """The mean of a column of the result, or of a ``pyarrow.compute`` expression; nulls are left out."""
    return AggregateOf(Aggregate.AVG, _expression(Aggregate.AVG, expression))


def count(expression: str | pc.Expression | None = None) -> AggregateOf:
    """The number of rows of the result, or of those in which a column or an expression is not null."""
    return AggregateOf(Aggregate.COUNT, None if expression is None else _expression(Aggregate.COUNT, expression))


def _expression(kind: Aggregate, given: object) -> pc.Expression:
    if isinstance(given, str):
        return pc.field(given)
    if not isinstance(given, pc.Expression):
        raise InputError(f"{kind} takes the name of a column or a pyarrow.compute expression, got {given!r}")
    return given


def check_aggregates(aggregates: object) -> None:
    """Raise InputError unless these are names with aggregates."""
    if not isinstance(aggregates, Mapping) or not all(
        isinstance(name, str) and isinstance(one, AggregateOf) for name, one in aggregates.items()
    ):
        raise InputError(
            "aggregates must be names with sum(...), avg(...) or count(...), such as "
            f"{{'revenue': earlyjoin.sum('price')}}; got {aggregates!r}"
        )


def aggregates_to_values(aggregates: Mapping[str, AggregateOf]) -> list[dict[str, Any]]:
    """Plain values."""
    return [
        {
            "name": name,
            "kind": one.kind.value,
            "expression": None if one.expression is None else saved.expression_text(one.expression),
        }
        for name, one in aggregates.items()
    ]


def aggregates_from_values(values: list[dict[str, Any]]) -> dict[str, AggregateOf]:
    """The inverse of ``aggregates_to_values``."""
    return {
        one["name"]: AggregateOf(
            Aggregate(one["kind"]),
            None if one["expression"] is None else saved.expression_from_text(one["expression"]),
        )
        for one in values
    }


class BoundAggregate:
    """An aggregate of one join: what matches are worth, and the exact value over all of them."""

    def __init__(self, name: str, kind: Aggregate, type_: pa.DataType | None) -> None:
        self.name = name
        self.kind = kind
        self._integers = type_ is not None and bool(
            pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_null(type_)
        )
        numbers = type_ is not None and (self._integers or pa.types.is_floating(type_) or pa.types.is_decimal(type_))
        if kind is not Aggregate.COUNT and not numbers:
            raise InputError(f"aggregate {name!r}: {kind} needs numbers, and its expression gives {type_}")
        self.matches = 0
        self.total: int | float | Decimal = 0

    def measure(self, values: pa.Array | None) -> Measure:
        """What the matches of a step are worth, given the values of the expression, or None when it has none."""
        if values is None:
            return EVERY_MATCH
        chosen = None if values.null_count == 0 else pc.is_valid(values).to_numpy(zero_copy_only=False)
        if self.kind is Aggregate.COUNT:
            return Measure(chosen)
        if chosen is not None:
            values = values.fill_null(False if pa.types.is_boolean(values.type) else 0)
        return Measure(chosen, _floats(values))

    def book(self, rows: int, values: pa.Array | None) -> None:
        """Add the matches of a step to the exact value."""
        self.matches += rows if values is None else len(values) - values.null_count
        if values is not None and self.kind is not Aggregate.COUNT:
            self.total += _exact_sum(values)

    def exact(self) -> int | float | None:
        """Over all matches booked; None for the mean of nothing."""
        if self.kind is Aggregate.COUNT:
            return self.matches
        if self.kind is Aggregate.AVG:
            return float(self.total / self.matches) if self.matches else None
        return int(self.total) if self._integers else float(self.total)

    def to_values(self) -> dict[str, Any]:
        """Plain values."""
        return {"matches": self.matches, "total": str(self.total), "kind": type(self.total).__name__}

    def go_on(self, values: dict[str, Any]) -> None:
        """The inverse of ``to_values``."""
        kinds = {"int": int, "float": float, "Decimal": Decimal}
        self.matches, self.total = values["matches"], kinds[values["kind"]](values["total"])


class Expressions:
    """The expressions of all aggregates of a join, evaluated together on the columns that any of them reads."""

    def __init__(self, asked: Mapping[str, AggregateOf], plan: Plan) -> None:
        self._asked = asked
        self._expressions = [one.expression for one in asked.values() if one.expression is not None]
        whole = empty_table(plan.output.schema)
        types = {
            name: None if one.expression is None else self._checked(name, one.expression, whole).type
            for name, one in asked.items()
        }
        self.aggregates = [BoundAggregate(name, one.kind, types[name]) for name, one in asked.items()]
        self._output = plan.output.restricted_to(self._columns(whole))
        # Most expressions are just a column, which needs no evaluation.
        names = self._output.schema.names
        self._plain = [
            next((name for name in names if expression.equals(pc.field(name))), None)
            for expression in self._expressions
        ]

    def values(self, step: Matches) -> list[pa.Array | None]:
        """The values of each aggregate's expression over the matches of a step."""
        if not self._expressions:
            return [None] * len(self.aggregates)
        batch = self._output.build(step.rows, step.index)
        if None in self._plain:
            table = _projected(self._expressions, pa.Table.from_batches([batch]))
            found = [column.combine_chunks() for column in table.columns]
        else:
            found = [batch.column(name) for name in self._plain]
        # a column of an input without rows: nulls of no type in particular
        found = [column.cast(pa.int64()) if pa.types.is_null(column.type) else column for column in found]
        each = iter(found)
        return [None if one.expression is None else next(each) for one in self._asked.values()]

    def _columns(self, whole: pa.Table) -> set[str]:
        """The columns that are read. Arrow does not tell, but without one of them an expression does not bind."""
        needed: set[str] = set()
        for position, name in enumerate(whole.column_names if self._expressions else []):
            try:
                _projected(self._expressions, whole.remove_column(position))
            except _MISFITS:
                needed.add(name)
        return needed

    def _checked(self, name: str, expression: pc.Expression, table: pa.Table) -> pa.ChunkedArray:
        try:
            return _projected([expression], table).column(0)
        except _MISFITS as error:
            raise InputError(f"aggregate {name!r}: {expression} {unfit(error, table.column_names)}") from error


def _projected(expressions: list[pc.Expression], table: pa.Table) -> pa.Table:
    from pyarrow import acero  # brings pandas along, which most joins can do without

    names = [str(number) for number in range(len(expressions))]
    plan = acero.Declaration.from_sequence(
        [
            acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
            acero.Declaration("project", acero.ProjectNodeOptions(expressions, names)),
        ]
    )
    # One thread: batches then come out in the order of the rows.
    return plan.to_table(use_threads=False)


def _exact_sum(values: pa.Array) -> Any:
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if pa.types.is_integer(values.type):
        # Arrow's sum of integers wraps around without a word.
        largest = pc.min_max(values.cast(pa.float64(), safe=False)).as_py()
        if len(values) * max(abs(largest["min"] or 0.0), abs(largest["max"] or 0.0)) >= _SAFE_INTEGER_SUM:
            values = values.cast(pa.decimal128(20, 0))
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    if pa.types.is_decimal(values.type):
        # Room for the digits that a sum has more than its parts.
        scale = values.type.scale
        values = values.cast(
            pa.decimal128(38, scale) if values.type.precision <= _NARROW_DECIMAL else pa.decimal256(76, scale)
        )
    return pc.sum(values, min_count=0).as_py()


def _floats(values: pa.Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    numbers: np.ndarray[Any, np.dtype[np.float64]]
    numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers
