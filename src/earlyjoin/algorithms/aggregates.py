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
from pyarrow import acero

from earlyjoin.algorithms.estimation.estimate import Aggregate
from earlyjoin.algorithms.estimation.tally import EVERY_MATCH, Measure
from earlyjoin.algorithms.output import OutputSchema
from earlyjoin.algorithms.protocol import Matches, Plan
from earlyjoin.errors import InputError
from earlyjoin.predicates import saved
from earlyjoin.predicates.filters import unfit

_SAFE_INTEGER_SUM = 2.0**62


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
    """An aggregate of one join: its worth match by match, and its exact value over all matches seen."""

    def __init__(self, name: str, asked: AggregateOf, plan: Plan) -> None:
        self.name = name
        self.kind = asked.kind
        self._expression = asked.expression
        self._text = str(asked)
        self._output = plan.output.restricted_to(self._columns(plan.output))
        self._integers = False
        if self._expression is not None:
            type_ = self._evaluate(self._output.schema.empty_table()).type
            self._integers = bool(pa.types.is_integer(type_) or pa.types.is_boolean(type_))
            if self.kind is not Aggregate.COUNT and not (
                self._integers or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
            ):
                raise InputError(f"aggregate {name!r}: {self._text} is over {type_}, and numbers are needed")
        self._seen: tuple[pa.Array | None, int] = (None, 0)
        self.matches = 0
        self.total: int | float | Decimal = 0

    def measure(self, step: Matches) -> Measure:
        """What the matches of a step are worth; remembers them for ``book``."""
        if self._expression is None:
            self._seen = (None, len(step))
            return EVERY_MATCH
        batch = self._output.build(step.rows, step.index)
        values = self._evaluate(pa.Table.from_batches([batch])).combine_chunks()
        self._seen = (values, len(step))
        chosen = None if values.null_count == 0 else pc.is_valid(values).to_numpy(zero_copy_only=False)
        if self.kind is Aggregate.COUNT:
            return Measure(chosen)
        if chosen is not None:
            values = values.fill_null(False if pa.types.is_boolean(values.type) else 0)
        return Measure(chosen, _floats(values))

    def book(self) -> None:
        """Add the step that was measured last to the exact value."""
        values, rows = self._seen
        self._seen = (None, 0)
        if values is None:
            self.matches += rows
            return
        self.matches += len(values) - values.null_count
        if self.kind is not Aggregate.COUNT:
            self.total += self._sum(values)

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

    def _sum(self, values: pa.Array) -> Any:
        if pa.types.is_boolean(values.type):
            values = values.cast(pa.int8())
        if pa.types.is_integer(values.type):
            # Arrow's sum of integers wraps around without a word.
            if abs(pc.sum(values.cast(pa.float64(), safe=False)).as_py() or 0.0) >= _SAFE_INTEGER_SUM:
                values = values.cast(pa.decimal128(20, 0))
        elif pa.types.is_float16(values.type):
            values = values.cast(pa.float32())
        elif pa.types.is_decimal(values.type):
            # Room for the digits that a sum has more than its parts.
            scale = values.type.scale
            wide = pa.decimal128(38, scale) if values.type.precision <= 30 else pa.decimal256(76, scale)
            values = values.cast(wide)
        return pc.sum(values, min_count=0).as_py()

    def _evaluate(self, table: pa.Table) -> pa.ChunkedArray:
        plan = acero.Declaration.from_sequence(
            [
                acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
                acero.Declaration("project", acero.ProjectNodeOptions([self._expression], ["value"])),
            ]
        )
        try:
            return plan.to_table(use_threads=False).column("value")
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError) as error:
            raise InputError(f"aggregate {self.name!r}: {self._text} {unfit(error, table.schema.names)}") from error

    def _columns(self, output: OutputSchema) -> set[str]:
        """The columns that the expression reads. Arrow does not tell, but without one of them it does not bind."""
        if self._expression is None:
            return set()
        schema, needed = output.schema, set()
        self._evaluate(schema.empty_table())
        for position, name in enumerate(schema.names):
            try:
                self._evaluate(schema.remove(position).empty_table())
            except InputError:
                needed.add(name)
        return needed


def _floats(values: pa.Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    numbers: np.ndarray[Any, np.dtype[np.float64]]
    numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers
