"""From what the user asked to a plan: conditions bound, columns named, and what cannot be done refused."""

from __future__ import annotations

import pyarrow as pa

from earlyjoin.algorithms.join_types import JoinType
from earlyjoin.algorithms.output import DEFAULT_SUFFIXES, OutputSchema
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates.conjunction import Condition, bind


def make_plan(
    condition: Condition,
    left: pa.Schema,
    right: pa.Schema,
    *,
    how: str | JoinType = JoinType.INNER,
    suffixes: tuple[str, str] = DEFAULT_SUFFIXES,
) -> Plan:
    """Bind a condition to two inputs, or raise InputError / UnsupportedError naming what does not fit."""
    try:
        kind = JoinType(how)
    except ValueError:
        raise InputError(f"unknown join type {how!r}; choose one of: {', '.join(JoinType)}") from None
    for schema, name in ((left, "left"), (right, "right")):
        for field in schema:
            if pa.types.is_run_end_encoded(field.type):
                raise UnsupportedError(
                    f"column {field.name!r} of the {name} input has type {field.type}, which cannot be kept; "
                    f"decode it first with pyarrow.compute.run_end_decode, or leave the column out"
                )
    bound = bind(condition, left, right)
    output = OutputSchema.of(left, right, kind, shared=bound.shared, suffixes=suffixes)
    joined_row = output
    if not kind.gives_pairs and bound.filters:  # else nobody looks at it, and its names may clash
        joined_row = OutputSchema.of(left, right, JoinType.INNER, shared=bound.shared, suffixes=suffixes)
    for filter_ in bound.filters:
        filter_.bind(joined_row.schema)
    return Plan(schemas=(left, right), condition=bound, output=output, joined_row=joined_row, how=kind)
