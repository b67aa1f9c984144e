"""Conditions on the joined row: they filter what the other predicates found, and drive nothing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from earlyjoin.errors import InputError
from earlyjoin.predicates.base import Predicate
from earlyjoin.predicates.comparison import greater, greater_equal, less, less_equal, not_equal
from earlyjoin.predicates.equality import equal
from earlyjoin.predicates.keys import Bool

if TYPE_CHECKING:
    from earlyjoin.predicates.conjunction import Condition, Conjunction

_OPERATORS: dict[str, Callable[[str, str], Predicate]] = {
    "<=": less_equal,
    ">=": greater_equal,
    "<>": not_equal,
    "!=": not_equal,
    "==": equal,
    "<": less,
    ">": greater,
    "=": equal,
}
# A name is plain, or quoted with backticks or double quotes when it has spaces or operators in it.
_NAME = r'(?:`([^`]+)`|"([^"]+)"|([^\s<>=!`"]+))'
_COMPARISON = re.compile(rf"\s*{_NAME}\s*({'|'.join(_OPERATORS)})\s*{_NAME}\s*")


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """A residual condition over the output columns; made by :func:`where`."""

    expression: pc.Expression

    def bind(self, schema: pa.Schema) -> Filter:
        """Check the expression against the output schema before any data is read; InputError if it does not fit."""
        result = self._evaluate(schema.empty_table())
        if not pa.types.is_boolean(result.type):
            raise InputError(f"where: {self} is {result.type}, but a condition must be boolean")
        return self

    def mask(self, table: pa.Table) -> Bool:
        """For each row of the output table: does the condition hold? Null counts as False."""
        mask: Bool = self._evaluate(table).fill_null(False).to_numpy()
        return mask

    def _evaluate(self, table: pa.Table) -> pa.ChunkedArray:
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

    def __and__(self, other: Condition) -> Conjunction:
        from earlyjoin.predicates.conjunction import Conjunction

        return Conjunction.of(self, other)

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
    columns = f"columns of the joined rows: {', '.join(names)}"
    unknown = re.search(r"No match for FieldRef\.Name\((.*?)\)", message)
    if unknown is not None:
        close = difflib.get_close_matches(unknown[1], names, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        return f"names the column {unknown[1]!r}, which does not exist: {hint}{columns}"
    twice = re.search(r"Multiple matches for FieldRef\.Name\((.*?)\)", message)
    if twice is not None:
        return f"names the column {twice[1]!r}, which is ambiguous; {columns}"
    return f"cannot be evaluated: {message.splitlines()[0]}; {columns}"


def where(condition: pc.Expression | str) -> Filter | Predicate:
    """Keep only joined rows that satisfy a condition.

    A ``pyarrow.compute`` expression is evaluated over the joined row, by the names the columns have in the output. A
    text compares a left with a right column and becomes the predicate that says so, see :func:`parse_where`.

    >>> print(where(pc.field("price") > 10))
    (price > 10)
    """
    if isinstance(condition, str):
        return parse_where(condition)
    if not isinstance(condition, pc.Expression):
        raise InputError(f"where takes a pyarrow.compute expression or a text such as 'a < b', got {condition!r}")
    return Filter(condition)


def parse_where(text: str) -> Predicate:
    """``"a < b"`` as the predicate between column ``a`` of the left and column ``b`` of the right input.

    The operators are ``< <= > >= = == != <>``; names with spaces or operators in them are quoted as ``"a b"`` or with
    backticks.

    >>> print(parse_where("start <= stop"))
    left.start <= right.stop
    """
    match = _COMPARISON.fullmatch(text)
    if match is None:
        raise InputError(
            f"{text!r} is not a comparison: write a left column, one of {' '.join(_OPERATORS)}, and a right column, "
            "such as 'a < b'"
        )
    left = next(name for name in match.group(1, 2, 3) if name)
    right = next(name for name in match.group(5, 6, 7) if name)
    return _OPERATORS[match.group(4)](left, right)
