"""Plans of joins whose rows travel packed: the columns that no condition looks at lie in one value a row."""

from __future__ import annotations

from dataclasses import replace

from earlyjoin.algorithms.matching.residual import columns_of
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.state.rows.packed import RowPacking

Packings = tuple[RowPacking | None, ...]
"""For each input how its rows are packed; None: they travel as they are."""


def packings_of(plan: Plan) -> Packings:
    """How the rows of a join travel. It depends on nothing but the plan, so that a paused join finds its rows again."""
    looked_at = [set(names) for names in plan.condition.columns]
    expressions = {name for one in plan.condition.expressions for name in columns_of(one, plan.joined_row.schema)}
    for column in plan.joined_row.columns:
        for side, position in enumerate(column.position):
            if position is not None and column.field.name in expressions:
                looked_at[side].add(plan.schemas[side].field(position).name)
    return tuple(RowPacking.of(schema, names) for schema, names in zip(plan.schemas, looked_at, strict=True))


def packed_plan(plan: Plan, packings: Packings) -> Plan:
    """The same join of packed rows; what goes out is unpacked."""
    if not any(packings):
        return plan
    schemas = tuple(
        schema if packing is None else packing.packed_schema
        for schema, packing in zip(plan.schemas, packings, strict=True)
    )
    output, joined_row = plan.output.of_packed(packings), plan.joined_row.of_packed(packings)
    return replace(plan, schemas=schemas, output=output, joined_row=joined_row)
