"""``q.estimate`` and ``q.estimates`` of a running join; and why there is none, when there is none.

::

    the operator joins on arrival ──▶ ArrivalCounts: matches of every arriving row   ┐
    it joins memory loads (PMJ)   ──▶ BlockEstimate: matches of every row of a block ┴─▶ alarms? ──▶ estimate or reason

The driver passes every arrival through :meth:`Estimating.through` and shows every step to :meth:`Estimating.saw`, which
keeps the exact value of the aggregates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from earlyjoin.algorithms.estimation import Aggregate, Estimate, Estimator, IndependentPairs, TwoSided
from earlyjoin.algorithms.estimation.joined_blocks import JoinedBlocks, LoadEstimate
from earlyjoin.algorithms.estimation.tally import RowSums
from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.protocol import Operator, Plan, Step
from earlyjoin.local.estimating.arrivals import ArrivalCounts, counting_nbytes
from earlyjoin.local.estimating.orders import OrderWatch
from earlyjoin.local.estimating.step_measures import StepMeasures
from earlyjoin.local.sources.base import Source
from earlyjoin.state.budget import Account

EstimatorName = Literal["honest", "paper"]
"""``honest``: the interval covers what it says; ``paper``: that of the PMJ paper, too narrow under skew."""
MEMORY_SHARE, _MOST_SHARES = 1 / 32, 4
"""Of the memory for the statistics of the number of rows, and as much again for each of the first aggregates."""
FOLLOWED_ROWS, LEAST_FOLLOWED = 16384, 64
"""Rows of each side of a block whose matches are counted one by one; with less memory than for the second, none."""
_DEPENDENT = (
    "matches do not come at an even rate: the orders of the two inputs depend on each other; "
    "shuffle one of them anew, or read it with order='shuffled' (Parquet) and a seed of its own"
)

_Answer = tuple[Estimate | None, str | None]


@dataclass(frozen=True, slots=True)
class Reading:
    """How far the inputs are: the driver's own lists."""

    sources: Sequence[Source]
    rows_taken: list[int]
    ended: list[bool]
    most_batch_rows: int

    def total_rows(self) -> tuple[int | None, int | None]:
        """Rows of either input, as far as they are known."""
        left, right = (
            taken if over else source.rows_hint
            for source, taken, over in zip(self.sources, self.rows_taken, self.ended, strict=True)
        )
        return left, right


class Estimating:
    """The estimates of one run; question 0 is the number of rows, the others are the aggregates."""

    def __init__(
        self,
        plan: Plan,
        operator: Operator,
        reading: Reading,
        step_measures: StepMeasures,
        account: Account | None,
        estimator: EstimatorName = "honest",
    ) -> None:
        self._reading, self._step_measures, self._account, self._estimator = reading, step_measures, account, estimator
        self._orders = OrderWatch(plan, reading.sources)
        self._arrivals: ArrivalCounts | None = None
        self._blocks: LoadEstimate | None = None
        self._offered: JoinedBlocks | None = None
        self._refused = _refusal(plan, operator) or self._begin(plan, operator)

    def _begin(self, plan: Plan, operator: Operator) -> str | None:
        """Get the memory and begin to count, or say why not."""
        too_small = "the memory is too small to keep statistics besides the join"
        if self._account is None:
            return too_small
        room = self._account.limit.bytes
        needed = OrderWatch.most_bytes(plan)
        offered = operator.joined_blocks
        if offered is None:
            needed += counting_nbytes(self._reading.most_batch_rows, len(self._step_measures.aggregates))
        if not self._account.try_reserve(needed):
            return too_small
        if offered is None:
            counters = operator.context.counters
            self._arrivals = ArrivalCounts(
                self._step_measures,
                self._reading.sources,
                lambda: counters.tuples_written > 0 or counters.bytes_written > 0 or counters.flushes > 0,
            )
            return None
        kinds = self._step_measures.kinds
        row_nbytes = 2 * sum(RowSums.nbytes_a_row(with_values=kind is not Aggregate.COUNT) for kind in kinds)
        followed = FOLLOWED_ROWS if room is None else min(FOLLOWED_ROWS, (room - needed) // row_nbytes)
        if followed < LEAST_FOLLOWED or not self._account.try_reserve(followed * row_nbytes):
            followed = 0
        self._offered = offered
        self._blocks = offered.listener = LoadEstimate(kinds, self._step_measures.measure, followed)
        return None

    # What the driver does

    def through(self, side: int, batch: pa.RecordBatch, steps: Iterator[Step]) -> Iterator[Step]:
        """The steps of an arrival, unchanged; what they find is counted."""
        if self._refused is None:
            self._orders.watch(side, batch)
        return steps if self._arrivals is None else self._arrivals.through(side, batch.num_rows, steps)

    def saw(self, step: Step) -> None:
        """A step of any phase goes out."""
        if step is not None:
            self._step_measures.book(step)

    def give_up(self, reason: str) -> None:
        """Estimate no more, and give the memory back."""
        if self._refused is None:
            self._refused = reason
            if self._offered is not None:
                self._offered.listener = None
            self._arrivals = self._blocks = self._offered = None
        self.close()

    def close(self) -> None:
        """Give the memory back; what was found out stays."""
        if self._account is not None:
            self._account.clear()

    # What the user asks

    def get(self, found: int) -> dict[str, Any] | None:
        """The estimate of the size of the whole result, of which so many rows were found already, or None."""
        estimate = self.answer(0)[0]
        if estimate is None:
            return None
        low, high = max(math.floor(estimate.low), found), max(math.ceil(estimate.high), found)
        rows = min(max(round(estimate.rows), low), high)
        return {"rows": rows, "low": low, "high": high, "confidence": estimate.confidence}

    @property
    def reason(self) -> str | None:
        """Why there is no estimate; None when there is one."""
        return self.answer(0)[1]

    def aggregates(self, *, finished: bool) -> dict[str, dict[str, Any] | None]:
        """Each aggregate by its name: value, low, high, confidence; None where nothing can be said."""
        answers: dict[str, dict[str, Any] | None] = {}
        for number, aggregate in enumerate(self._step_measures.aggregates, 1):
            exact = aggregate.exact()
            if finished and exact is not None:
                answers[aggregate.name] = {"value": exact, "low": exact, "high": exact, "confidence": 1.0}
                continue
            estimate = None if finished else self.answer(number)[0]
            answers[aggregate.name] = None
            if estimate is not None:
                values = {"value": estimate.rows, "low": estimate.low, "high": estimate.high}
                answers[aggregate.name] = values | {"confidence": estimate.confidence}
        return answers

    def answer(self, number: int, estimator: EstimatorName | None = None) -> _Answer:
        """The estimate of a question, or None and why."""
        if self._blocks is not None:
            return self._answer_by_blocks(self._blocks, number, estimator or self._estimator)
        if self._arrivals is not None:
            return self._answer_by_arrivals(self._arrivals, number, estimator or self._estimator)
        return None, self._refused

    def to_values(self) -> dict[str, Any]:
        """Plain values for a pause."""
        return {
            "orders": self._orders.to_values(),
            "arrivals": None if self._arrivals is None else self._arrivals.to_values(),
            "blocks": None if self._blocks is None else self._blocks.to_values(),
            "aggregates": [aggregate.to_values() for aggregate in self._step_measures.aggregates],
        }

    def go_on(self, values: dict[str, Any]) -> None:
        """Continue the counts of an earlier process."""
        self._orders.go_on(values["orders"])
        for counts, name in ((self._arrivals, "arrivals"), (self._blocks, "blocks")):
            if counts is not None and values[name] is not None:
                counts.go_on(values[name])
        for aggregate, saved in zip(self._step_measures.aggregates, values["aggregates"], strict=True):
            aggregate.go_on(saved)

    # How

    def _answer_by_blocks(self, blocks: LoadEstimate, number: int, estimator: EstimatorName) -> _Answer:
        total = self._reading.total_rows()
        joined = blocks.joined(number, total)
        if joined.joined_pairs < joined.total_pairs:
            # Rows of different blocks have not met, so the order matters to the end.
            alarm = self._orders.reason((0, 1)) or (_DEPENDENT if blocks.orders_depend() else None)
            if alarm is not None:
                return None, alarm
        return _said(joined, blocks.estimator(number, total), estimator)

    def _answer_by_arrivals(self, arrivals: ArrivalCounts, number: int, estimator: EstimatorName) -> _Answer:
        total = self._reading.total_rows()
        by_rows = arrivals.by_rows(number, total)
        if by_rows.joined_pairs >= by_rows.total_pairs:
            return _said(by_rows, by_rows, estimator)
        # The order of an input that was read completely does not matter.
        unread = [side for side, fraction in enumerate(by_rows.fractions) if fraction < 1]
        alarm = self._orders.reason(unread)
        if alarm is None:
            depend = len(unread) == 2 and arrivals.orders_depend()
            return (None, _DEPENDENT) if depend else _said(by_rows, by_rows, estimator)
        if any(arrivals.blocks[side] is None and self._orders.alarm(side) is not None for side in unread):
            return None, alarm
        left, right = arrivals.blocks
        if left is not None and right is not None and left.shuffle == right.shuffle:
            return None, (
                "both inputs are block-shuffled by the same seed, so their orders agree: give them different seeds"
            )
        return _said(by_rows, arrivals.by_blocks(number, total), estimator)


def _said(joined: TwoSided, honest: Estimator, name: EstimatorName) -> _Answer:
    chosen = IndependentPairs.of(joined) if name == "paper" and joined.joined_pairs < joined.total_pairs else honest
    return chosen.get(), chosen.reason


def _refusal(plan: Plan, operator: Operator) -> str | None:
    """Why nothing can be estimated, whatever the memory."""
    if plan.sides != 2:
        return "sizes are estimated for joins of two inputs"
    if plan.how is not JoinType.INNER:
        return f"sizes are estimated for inner joins: which rows of a {plan.how} join stay alone shows at the end"
    if operator.description.joins_on_arrival or operator.joined_blocks is not None:
        return None
    return operator.why_no_blocks()


def statistics_share(plan: Plan, limit_bytes: int | None, aggregates: int) -> float:
    """Share of the memory that is set aside for statistics: none where nothing is or can be estimated."""
    if limit_bytes is None or plan.sides != 2 or plan.how is not JoinType.INNER:
        return 0.0
    share = MEMORY_SHARE * (1 + min(aggregates, _MOST_SHARES - 1))
    return share if OrderWatch.most_bytes(plan) <= limit_bytes * share else 0.0
