"""Three ways in which rows meet, and what the estimators say meanwhile.

*ripple*: a symmetric operator, every arriving block meets all rows of the other side so far. *diagonal*: block k of one
side meets block k of the other. *pmj*: the operator itself with a memory of one block, whose blocks grow in stages.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.aggregates import Expressions
from earlyjoin.algorithms.aggregates import sum as sum_of
from earlyjoin.algorithms.estimation import (
    Aggregate,
    BetweenBlocks,
    Estimate,
    IndependentPairs,
    OrderCheck,
    TwoSided,
)
from earlyjoin.algorithms.estimation.joined_blocks import LoadEstimate
from earlyjoin.algorithms.estimation.rates import RateCheck
from earlyjoin.algorithms.estimation.tally import EVERY_MATCH, Measure, RowMoments, Totals
from earlyjoin.algorithms.merge_join.pmj import ProgressiveMergeJoin
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.algorithms.protocol import Context, Matches
from earlyjoin.predicates import band
from earlyjoin.report.coverage.inputs import LEFT_ROWS, RIGHT_ROWS, DrawnInputs, Floats, InputPair, Ints
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.disk.spill import SpillDirectory

Design = Literal["ripple", "diagonal", "pmj"]
Asked = tuple[str, str]
"""An estimator and an aggregate."""

BLOCKS = 50
CHECKED = (5, 10, 20, 30, 40, 49)
"""After how many blocks of 50 the interval is compared with the truth."""
_TOTAL = (LEFT_ROWS, RIGHT_ROWS)
_KINDS = (Aggregate.COUNT, Aggregate.SUM)
_FOLLOWED = 16384


@dataclass(slots=True)
class SeededRun:
    """What one seeded run said: for each estimator, aggregate and checked block, the estimate."""

    truth: dict[str, float]
    estimates: dict[tuple[str, str, int], Estimate]
    alarms: int
    """Checks that took this random order for something else."""


_Answer = tuple[int, dict[Asked, Estimate | None], bool]


def run(inputs: InputPair, design: Design, seed: int) -> SeededRun:
    """Join the inputs of one seed block by block."""
    drawn = inputs.drawn(seed)
    ways = {"ripple": _ripple, "diagonal": _diagonal, "pmj": _pmj}
    estimates: dict[tuple[str, str, int], Estimate] = {}
    alarms = 0
    for block, found, alarm in ways[design](drawn):
        alarms += alarm
        estimates.update({(*asked, block): one for asked, one in found.items() if one is not None})
    return SeededRun(drawn.truth(), estimates, alarms)


class _Held:
    """Rows of one side by key: how many, the sum of their values and of the squares of these."""

    def __init__(self, inputs: InputPair) -> None:
        self._inputs = inputs
        self.sums = [np.zeros(inputs.domain) for _ in range(3)]

    def add(self, keys: Ints, values: Floats | None) -> None:
        worth = np.ones(len(keys)) if values is None else values
        for power, sums in enumerate(self.sums):
            sums += np.bincount(keys, weights=worth**power, minlength=self._inputs.domain)

    def met_by(self, keys: Ints) -> list[Floats]:
        """For each of these rows of the other side, the sums over the rows held that match it."""
        return [self._inputs.near(sums)[keys] for sums in self.sums]


def _worth(side: int, met: list[Floats], values: Floats | None) -> tuple[Floats, Floats, float]:
    """Matches and sum of values of each row, and the sum of the squares of all: the value is the left row's."""
    if side == 1 or values is None:
        return met[0], met[1], float(met[2].sum())
    return met[0], met[0] * values, float(np.sum(met[0] * values**2))


def _asked(name: str, estimators: list[TwoSided]) -> dict[Asked, Estimate | None]:
    found: dict[Asked, Estimate | None] = {}
    for estimator in estimators:
        found[name, estimator.aggregate.value] = estimator.get()
        found["paper", estimator.aggregate.value] = IndependentPairs.of(estimator).get()
    return found


def _ripple(drawn: DrawnInputs) -> Iterator[_Answer]:
    honest, rates = [TwoSided(_TOTAL, aggregate=kind) for kind in _KINDS], RateCheck()
    orders = [OrderCheck(), OrderCheck()]
    held = [_Held(drawn.inputs), _Held(drawn.inputs)]
    blocks = [np.array_split(side, BLOCKS) for side in drawn.keys]
    values = np.array_split(drawn.values, BLOCKS)
    for number in range(BLOCKS):
        for side in (0, 1):
            batch, own = blocks[side][number], values[number] if side == 0 else None
            matches, sums, squares = _worth(side, held[1 - side].met_by(batch), own)
            rates.update(side, len(batch), honest[0].rows[1 - side], float(matches.sum()))
            honest[0].update(side, len(batch), matches)
            honest[1].update(side, len(batch), matches, sums, squares)
            orders[side].update(batch.astype(np.float64))
            held[side].add(batch, own)
        if number + 1 in CHECKED:
            alarm = any(order.reason for order in orders) or not rates.agree(*honest[0].unit_variances())
            yield number + 1, _asked("two-sided", honest), alarm


def _diagonal(drawn: DrawnInputs) -> Iterator[_Answer]:
    honest = [TwoSided(_TOTAL, aggregate=kind) for kind in _KINDS]
    between = [BetweenBlocks(_TOTAL, aggregate=kind) for kind in _KINDS]
    parts = zip(*(np.array_split(side, BLOCKS) for side in (*drawn.keys, drawn.values)), strict=True)
    for number, (left, right, values) in enumerate(parts, 1):
        held = [_Held(drawn.inputs), _Held(drawn.inputs)]
        held[0].add(left, values)
        held[1].add(right, None)
        moments, totals = [], Totals()
        for side, batch in enumerate((left, right)):
            matches, sums, squares = _worth(side, held[1 - side].met_by(batch), values if side == 0 else None)
            totals = Totals(float(matches.sum()), float(sums.sum()), squares)
            moments.append(RowMoments.of(len(batch), matches, sums, squares))
        for one, blocks in zip(honest, between, strict=True):
            one.update_rectangle((len(left), len(right)), totals, (moments[0], moments[1]))
            one.new_block()
            blocks.update((len(left), len(right)), int(totals.matches), totals.value)
        if number in CHECKED:
            found = _asked("two-sided", honest)
            found |= {("between blocks", one.aggregate.value): one.get() for one in between}
            yield number, found, False


class _Forgetting(ProgressiveMergeJoin):
    """PMJ that forgets a block instead of writing it: after it was joined in memory no estimate looks at it again."""

    def _make_runs(self, *, all_rows: bool = False) -> None:
        self._flush_due = False
        for side in self._gathered:
            side.clear()
        assert self.joined_blocks is not None
        self.joined_blocks.leave()
        self.context.counters.flushes += 1


def _pmj(drawn: DrawnInputs) -> Iterator[_Answer]:
    """What ``q.estimate`` and ``q.estimates`` see, without a query around it."""
    left = pa.table({"k": drawn.keys[0], "v": drawn.values})
    right = pa.table({"k": drawn.keys[1]})
    plan = make_plan(band("k", eps=drawn.inputs.eps), left.schema, right.schema)
    expressions = Expressions({"sum": sum_of("v")}, plan)

    def measuring(step: Matches) -> list[Measure]:
        return [EVERY_MATCH, expressions.aggregates[0].measure(expressions.values(step)[0])]

    listener = LoadEstimate(_KINDS, measuring, _FOLLOWED)
    with tempfile.TemporaryDirectory() as directory:
        memory = MemoryLimit(rows=-(-(LEFT_ROWS + RIGHT_ROWS) // BLOCKS))
        context = Context(budget=Budget(memory), spill=SpillDirectory(directory))
        operator = _Forgetting(plan, context)
        assert operator.joined_blocks is not None
        operator.joined_blocks.listener = listener
        try:
            parts = [table.to_batches(max_chunksize=len(table) // (4 * BLOCKS)) for table in (left, right)]
            for one in zip(*parts, strict=True):
                for side, batch in enumerate(one):
                    for _ in operator.arrive(side, batch):
                        pass
                number = context.counters.flushes
                if number in CHECKED and sum(operator.joined_blocks.rows) <= sum(map(len, one)):
                    alarm = listener.orders_depend()
                    yield number, _asked("two-sided", [listener.joined(n, _TOTAL) for n in (0, 1)]), alarm
        finally:
            operator.close()
            context.spill.close()
