"""What a query is expected to show, from what its sources and its reading strategy tell before it runs."""

from __future__ import annotations

from collections.abc import Sequence

from earlyjoin.algorithms.hash_join.prediction.curves import Prediction, Situation, predict, shares_of
from earlyjoin.algorithms.reading import Phased, Ratio, SmallerFirst
from earlyjoin.local.execution import LocalExecution
from earlyjoin.local.sources.base import Source

_OVERHEAD_BYTES = 64
"""Key, stamps and place in an index, for each row in memory."""


def predicted(sources: Sequence[Source], execution: LocalExecution) -> Prediction | None:
    """The prediction, or None when sizes are unknown or no formula fits the algorithm."""
    if len(sources) != 2:
        return None
    left, right = (source.rows_hint for source in sources)
    memory = _memory_rows(sources, execution)
    if left is None or right is None or memory is None:
        return None
    build = execution.operator.build_side
    q1, q2 = shares_of(*_ratios(execution.reading), build)
    sizes = (left, right)
    return predict(
        Situation(
            formulas=execution.operator.description.formulas,
            r=sizes[build],
            s=sizes[1 - build],
            memory_rows=memory,
            q1=q1,
            q2=q2,
            one_to_many=execution.operator.one_side is not None,
        )
    )


def _memory_rows(sources: Sequence[Source], execution: LocalExecution) -> float | None:
    """Rows that fit, by the mean size of a row of both inputs."""
    limit = execution.operator.context.budget.limit
    if limit.rows is not None:
        return limit.rows
    rows = sum(source.rows_hint or 0 for source in sources)
    sizes = [source.bytes_hint for source in sources]
    if not rows or any(size is None for size in sizes):
        return None
    mean = sum(size or 0 for size in sizes) / rows + _OVERHEAD_BYTES
    return (limit.bytes or 0) / mean


def _ratios(reading: Ratio | None) -> tuple[Sequence[int], Sequence[int]]:
    """The ratio before and after memory is full; inputs that are pushed count as equally fast."""
    if reading is None:
        return (1, 1), (1, 1)
    if isinstance(reading, Phased):
        return reading.weights, reading.later
    if isinstance(reading, SmallerFirst):
        return (1, 1), reading.favoured
    return reading.weights, reading.weights
