"""``explain()`` of a join on Spark: what is done and why, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.spark.early.blocks import Blocks
from earlyjoin.spark.execution import Execution
from earlyjoin.spark.inspecting.scans import Below, Computed, Files
from earlyjoin.state.budget import format_bytes

if TYPE_CHECKING:
    from earlyjoin.spark.query import SparkQuery


def explain(query: SparkQuery, execution: Execution) -> str:
    """A few lines, one fact each."""
    lines = [
        ("join", query.plan.text),
        ("engine", f"spark {query.session_version}"),
        *_phases(execution),
        ("memory", f"{execution.budget.limit} in the driver; executors have what Spark gives them"),
        *((name, _side(execution, side)) for side, name in enumerate(("left", "right"))),
        ("estimate", _estimate(query)),
        ("output", ", ".join(f"{field.name} {field.type}" for field in query.schema)),
    ]
    width = max(len(name) for name, _ in lines) + 2
    return "\n".join(f"{name:<{width}}{text}" for name, text in lines)


def _phases(execution: Execution) -> list[tuple[str, str]]:
    whole = execution.driver_join
    if whole is not None:
        return [("driver", whole.explain()), ("to_df", execution.bulk(everything=True).explain())]
    return [("early", _early(execution)), ("bulk", execution.bulk(everything=True).explain())]


def _early(execution: Execution) -> str:
    reason = execution.no_early
    if reason is not None:
        return f"none: {reason}"
    if any(isinstance(below, Computed) for below in execution.below):
        return "the first rows of a few files, and the groups of their keys, joined in the driver"
    drawn = ", then random blocks that tell the size" if execution.plan.how is JoinType.INNER else ""
    return f"the first rows of a few files of each side{drawn}, joined in the driver without a shuffle"


def _side(execution: Execution, side: int) -> str:
    below = execution.below[side]
    early = execution.early if execution.driver_join is None else None
    columns = f"{len(execution.plan.schemas[side])} columns"
    blocks = early.blocks[side] if early is not None and early.draws is not None else None
    return f"{_described(below, blocks)}, {columns}"


def _described(below: Below, blocks: Blocks | None) -> str:
    if isinstance(below, Computed):
        return f"no blocks: {below.reason}"
    if not isinstance(below, Files):
        return f"a table in memory of {format_bytes(below.nbytes)}, one block"
    many = f", {blocks.count} blocks" if blocks is not None else ""
    return f"{len(below.paths)} {below.format} files of {format_bytes(below.nbytes)}{many}"


def _estimate(query: SparkQuery) -> str:
    estimate = query.estimate
    if estimate is None:
        return f"none: {query.estimate_reason}"
    return (
        f"{estimate['rows']:,} rows, between {estimate['low']:,} and {estimate['high']:,} "
        f"({estimate['confidence']:.0%} confidence)"
    )
