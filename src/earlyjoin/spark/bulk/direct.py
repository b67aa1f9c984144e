"""Spark's own join as people write it, where its columns are those of the result as they are.

Renaming columns by position makes every join possible, and costs some 20 ms of analysis and a hundred calls to Java: as
much as a join without a shuffle takes to its first rows. So that is left out where nothing has to be renamed or cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.types as pt

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.predicates.base import LEFT, RIGHT
from earlyjoin.predicates.encoding.types import value_type
from earlyjoin.predicates.equality import BoundEqual
from earlyjoin.spark.columns.types import quoted
from earlyjoin.spark.session import functions

_ALIASES = ("earlyjoin_left", "earlyjoin_right")
_SPARK_NAMES = {JoinType.SEMI: "left_semi", JoinType.ANTI: "left_anti"}


def direct_join(plan: Plan, given: Sequence[Any]) -> Any | None:
    """All rows of an equality join of the inputs as they were ``given``; None where columns have to be changed for it.

    Its columns are the inputs' own, so it is for rows that are taken or written, and not for joining on: a DataFrame
    that is joined with its own inputs again needs columns of its own.
    """
    dropped = _left_out(plan)
    condition = _condition(plan)
    if dropped is None or condition is None:
        return None
    left, right = (frame.alias(alias) for frame, alias in zip(given, _ALIASES, strict=True))
    f, how = functions(), plan.how
    joined = left.join(right, f.expr(condition), _SPARK_NAMES.get(how, how.value))
    return joined.drop(*(f.col(_name(RIGHT, name)) for name in dropped)) if dropped else joined


def _condition(plan: Plan) -> str | None:
    """The condition as a text, if it is an equality that Spark reads as the core does."""
    parts = plan.condition.parts
    if len(parts) != 1 or plan.condition.filters or not isinstance(parts[0], BoundEqual):
        return None
    equality, texts = parts[0], []
    for left, right, null_safe in zip(*equality.sides, equality.null_safe, strict=True):
        if pt.is_boolean(value_type(left.type)) != pt.is_boolean(value_type(right.type)):
            return None
        sign = "<=>" if null_safe else "="
        texts.append(f"{_name(LEFT, left.name)} {sign} {_name(RIGHT, right.name)}")
    return " AND ".join(texts)


def _left_out(plan: Plan) -> list[str] | None:
    """Right columns that the result does not have; None where other columns come first, or under other names."""
    left, right = plan.schemas
    if any(len({name.lower() for name in schema.names}) < len(schema) for schema in (left, right)):
        return None  # a name alone does not tell a column
    columns = [(column.field.name, *column.position) for column in plan.output.columns]
    wanted: list[tuple[str, int | None, int | None]] = [(name, at, None) for at, name in enumerate(left.names)]
    taken = {at for _, _, at in columns if at is not None}
    wanted += [(name, None, at) for at, name in enumerate(right.names) if at in taken]
    if columns != wanted:
        return None
    return [name for at, name in enumerate(right.names) if at not in taken] if plan.how.gives_pairs else []


def _name(side: int, name: str) -> str:
    return f"{_ALIASES[side]}.{quoted(name)}"
