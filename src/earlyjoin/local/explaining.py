"""``explain()``: what a query does and why, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from earlyjoin.algorithms import registry
from earlyjoin.local.execution import LocalExecution
from earlyjoin.local.predicting import predicted
from earlyjoin.local.sources.base import Source
from earlyjoin.state.budget import format_bytes

if TYPE_CHECKING:
    from earlyjoin.local.query import LocalQuery


def explain(query: LocalQuery, execution: LocalExecution) -> str:
    """A few lines, one fact each."""
    description = registry.get(query.algorithm, query.plan.sides).description
    names = query.plan.names
    driver = query.plan.condition.driver(description.needs) if query.plan.condition.parts else None
    driving = "push, as inputs arrive"
    if execution.reading:
        driving = f"pull, reading {execution.reading} (rows of {' : '.join(names)})"
    lines = [
        ("join", query.plan.text),
        ("algorithm", f"{description.name} ({description.title}): {query.choice.reason}"),
        ("options", _options(execution)),
        ("spills", "yes, when memory is full" if description.spills else "no: stops with an error when memory is full"),
        ("driven by", driver[0].text if driver is not None else "every pair of rows"),
        ("filtered by", _rest(query, driver[1] if driver is not None else ())),
        ("memory", f"{execution.budget.limit}"),
        ("engine", f"local, {driving}"),
        *((name, _source(source)) for name, source in zip(names, query.sources, strict=True)),
        ("estimate", _estimate(query)),
        ("expected", _expected(query, execution)),
        ("output", ", ".join(f"{field.name} {field.type}" for field in query.schema)),
    ]
    width = max(len(name) for name, _ in lines) + 2
    return "\n".join(f"{name:<{width}}{text}" for name, text in lines if text)


def _options(execution: LocalExecution) -> str:
    """Those that differ from the default, and what they mean."""
    options = execution.operator_options
    return "; ".join([text for text in (str(options), *options.notes()) if text])


def _estimate(query: LocalQuery) -> str:
    estimate = query.estimate
    if estimate is None:
        return f"none: {query.estimate_reason}"
    return (
        f"{estimate['rows']:,} rows, between {estimate['low']:,} and {estimate['high']:,} "
        f"({estimate['confidence']:.0%} confidence)"
    )


def _expected(query: LocalQuery, execution: LocalExecution) -> str:
    """Results over time by the formulas of the papers, where sizes are known and the formulas fit."""
    estimate = query.estimate
    prediction = predicted(query.sources, execution)
    return prediction.text(estimate["rows"] if estimate is not None else None) if prediction is not None else ""


def _rest(query: LocalQuery, parts: tuple[object, ...]) -> str:
    texts = [getattr(part, "text", str(part)) for part in parts]
    return " AND ".join([*texts, *(filter_.text for filter_ in query.plan.condition.filters)])


def _source(source: Source) -> str:
    rows = f"{source.rows_hint:,} rows" if source.rows_hint is not None else "number of rows unknown"
    size = f", about {format_bytes(source.bytes_hint)}" if source.bytes_hint else ""
    live = ", live" if source.live else ""
    return f"{source.name}: {rows}{size}{live}, {len(source.schema)} columns"
