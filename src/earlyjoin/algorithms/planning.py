"""From what the user asked to a plan: conditions bound, columns named, and what cannot be done refused."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from earlyjoin.algorithms.matching.join_types import JoinType, check_cross
from earlyjoin.algorithms.output import DEFAULT_SUFFIXES, OutputSchema
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates.conjunction import Condition, bind
from earlyjoin.predicates.encoding.carried import carried_schema
from earlyjoin.predicates.multiway import MultiEqual


def plan_for(
    condition: Condition | MultiEqual,
    schemas: Sequence[pa.Schema],
    *,
    how: str | JoinType = JoinType.INNER,
    suffixes: tuple[str, str] = DEFAULT_SUFFIXES,
) -> Plan:
    """The plan of a join of two inputs or, with a condition over named inputs, of many."""
    if isinstance(condition, MultiEqual):
        return make_multi_plan(condition, schemas, how=how)
    if len(schemas) != 2:
        raise InputError(f"this condition joins two inputs, got {len(schemas)}; use multi_join for more")
    left, right = schemas
    return make_plan(condition, left, right, how=how, suffixes=suffixes)


def make_plan(
    condition: Condition,
    left: pa.Schema,
    right: pa.Schema,
    *,
    how: str | JoinType = JoinType.INNER,
    suffixes: tuple[str, str] = DEFAULT_SUFFIXES,
    ignore_case: bool = False,
) -> Plan:
    """Bind a condition to two inputs, or raise InputError / UnsupportedError naming what does not fit.

    ``ignore_case``: names of output columns that differ in case only clash. The condition names columns as they are.
    """
    kind = JoinType.named(how)
    schemas = carried_schema(left), carried_schema(right)
    bound = bind(condition, *schemas)
    check_cross(how, conditions=None if bound.always else bound.text)
    output = OutputSchema.of(left, right, kind, shared=bound.shared, suffixes=suffixes, ignore_case=ignore_case)
    joined_row = output
    if not kind.gives_pairs and bound.expressions:  # else nobody looks at it, and its names may clash
        joined_row = OutputSchema.of(
            left, right, JoinType.INNER, shared=bound.shared, suffixes=suffixes, ignore_case=ignore_case
        )
    bound.check_expressions(joined_row.schema)
    return Plan(schemas=schemas, condition=bound, output=output, joined_row=joined_row, how=kind)


def make_multi_plan(
    condition: MultiEqual, schemas: Sequence[pa.Schema], *, how: str | JoinType = JoinType.INNER
) -> Plan:
    """Bind a condition to its named inputs, or raise InputError / UnsupportedError naming what does not fit."""
    names = condition.inputs
    if len(schemas) != len(names):
        raise InputError(f"the condition is about {len(names)} inputs ({', '.join(names)}), got {len(schemas)}")
    check_cross(how, conditions=str(condition))
    if JoinType.named(how) is not JoinType.INNER:
        raise UnsupportedError(
            f"many inputs have an inner join only, not a {how} join; chain joins of two inputs instead: "
            f"join(join(a, b, on=..., how={str(how)!r}), c, on=..., how={str(how)!r})"
        )
    kept = tuple(carried_schema(schema) for schema in schemas)
    bound = condition.bind(kept)
    output = OutputSchema.of_many(names, schemas, shared=bound.shared)
    return Plan(schemas=kept, condition=bound, output=output, joined_row=output, names=names)
