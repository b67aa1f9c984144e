"""Arrow expressions over the joined row: they filter what the other predicates found, and drive nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from earlyjoin.errors import InputError
from earlyjoin.predicates.base import Combinable, Pairs
from earlyjoin.predicates.encoding.carried import empty_table
from earlyjoin.predicates.encoding.columns import listed, near_name
from earlyjoin.predicates.encoding.keys import Bool


@dataclass(frozen=True, slots=True, eq=False)
class Filter(Combinable):
    """A residual condition over the output columns; made by :func:`earlyjoin.predicates.where`."""

    expression: pc.Expression

    def bind(self, schema: pa.Schema) -> Filter:
        """Check the expression against the output schema before any data is read; InputError if it does not fit."""
        result = self._evaluate(empty_table(schema))
        if not pa.types.is_boolean(result.type):
            raise InputError(f"where: {self} is {result.type}, but a condition must be boolean")
        return self

    @property
    def expressions(self) -> tuple[Filter, ...]:
        """The expressions in it: itself."""
        return (self,)

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each side that it reads by their own names: none, it knows those of the joined row."""
        return ((), ())

    @property
    def text(self) -> str:
        """The condition as a person would write it."""
        return str(self)

    def holds(self, table: pa.Table) -> Bool:
        """For each row of the output table: does the condition hold? Null counts as False."""
        mask: Bool = self._evaluate(table).fill_null(False).to_numpy()
        return mask

    def mask(self, pairs: Pairs) -> Bool:
        """For each candidate pair: does the condition hold?"""
        return self.holds(pairs.joined())

    def _evaluate(self, table: pa.Table) -> pa.ChunkedArray:
        from pyarrow import acero  # brings pandas along, which most joins can do without

        plan = acero.Declaration.from_sequence(
            [
                acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
                acero.Declaration("project", acero.ProjectNodeOptions([self.expression], ["mask"])),
            ]
        )
        try:
            # One thread: batches then come out in the order of the rows.
            return plan.to_table(use_threads=False).column("mask")
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError) as error:
            raise InputError(f"where: {self} {unfit(error, table.schema.names)}") from error

    def __eq__(self, other: object) -> bool:
        # Expressions overload == to build a comparison.
        return isinstance(other, Filter) and bool(self.expression.equals(other.expression))

    def __hash__(self) -> int:
        return hash(str(self.expression))

    def __str__(self) -> str:
        return str(self.expression)


def unfit(error: Exception, names: list[str]) -> str:
    """What Arrow complains about an expression, in terms of the output's columns."""
    message = str(error)
    columns = f"columns of the joined rows: {listed(names)}"
    unknown = re.search(r"No match for FieldRef\.Name\((.*?)\)", message)
    if unknown is not None:
        close = near_name(unknown[1], names)
        hint = f"did you mean {close!r}? " if close else ""
        return f"names the column {unknown[1]!r}, which does not exist: {hint}{columns}"
    twice = re.search(r"Multiple matches for FieldRef\.Name\((.*?)\)", message)
    if twice is not None:
        return f"names the column {twice[1]!r}, which is ambiguous; {columns}"
    return f"cannot be evaluated: {message.splitlines()[0]}; {columns}"
