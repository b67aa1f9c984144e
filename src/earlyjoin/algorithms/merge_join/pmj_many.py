"""Progressive merge join of three inputs and more on one attribute.

Phases and runs are those of two inputs (:mod:`earlyjoin.algorithms.merge_join.operator`): all sides are gathered
together, sorted together and written together, and one merge takes runs of all sides. What differs is how sorted rows
are joined: a key is a group on every side, and the result is the cross product of the groups
(:mod:`~earlyjoin.algorithms.merge_join.group_join` in memory, :mod:`~earlyjoin.algorithms.merge_join.multi_sweep` in a
merge). No intermediate result of two of the inputs ever exists.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.merge_join import merge_tree
from earlyjoin.algorithms.merge_join.group_join import GroupJoin, Ordered, Workspace
from earlyjoin.algorithms.merge_join.merge_tree import RunPair
from earlyjoin.algorithms.merge_join.multi_sweep import MultiSweep, key_to_compare
from earlyjoin.algorithms.merge_join.multi_window import MultiOutput, RunOutput
from earlyjoin.algorithms.merge_join.pmj import ProgressiveMergeJoin
from earlyjoin.algorithms.merge_join.run_creation import Gathered
from earlyjoin.algorithms.merge_join.settings import SortOptions
from earlyjoin.algorithms.merge_join.state import Merge
from earlyjoin.algorithms.merge_join.sweep_state import MemorySweep
from earlyjoin.algorithms.protocol import Context, Plan
from earlyjoin.errors import BudgetExceeded, UnsupportedError
from earlyjoin.predicates.base import Capability
from earlyjoin.state.budget import Budget

MOST_SIDES = 16


@registry.register_for_many
class MultiProgressiveMergeJoin(ProgressiveMergeJoin):
    """PMJ over three to sixteen inputs: one merge takes runs of every side."""

    description = replace(
        ProgressiveMergeJoin.description,
        title="progressive merge join of many inputs",
        needs=Capability.HASHABLE,
        join_types=frozenset({JoinType.INNER}),
        most_sides=MOST_SIDES,
        rows_at_once=3,
        offers_blocks=False,
        gives_memory_back=False,
    )

    def __init__(self, plan: Plan, context: Context) -> None:
        super().__init__(plan, context)
        self._check_options()
        rows = self._shares.for_merging(context.budget.limit).rows
        if rows is not None and rows < plan.sides:
            raise BudgetExceeded(
                f"a memory of {context.budget.whole} is too small to join {plan.sides} inputs: a merge holds a row of "
                f"each; give at least {4 * plan.sides} rows"
            )

    def _check_options(self) -> None:
        defaults = SortOptions()
        for name in ("split", "replacement_selection", "sorted_output"):
            if getattr(self.options, name) != getattr(defaults, name):
                raise UnsupportedError(
                    f"option {name.replace('_', '-')} is for joins of two inputs; leave it out for {self.plan.sides}"
                )

    def _make_joining(self, page_rows: int) -> MemorySweep:
        """Sort all sides. Of rows that were joined before, only combinations with others are met."""
        account, limit = self._shares.sweeping.account("combinations"), self._shares.sweeping.limit.bytes
        workspace = Workspace(self.plan.sides, self.context.output_rows, account, limit)
        sides = [_ordered(side) for side in self._gathered]
        return GroupJoin(sides, key_to_compare(self._keys[0]), workspace, self.context.counters)

    def _make_merge(self, inputs: list[int], budget: Budget, *, write: bool, pairs: bool, pages_at_once: int) -> Merge:
        """A merge of some sets of runs that writes a new set, or (the last) none."""
        chosen = [self._pairs[number] for number in inputs]
        output = None
        if write:
            output = MultiOutput(tuple(self._run_output(side, chosen) for side in range(self.plan.sides)))
        sequences = self._run_sequences(chosen, pages_at_once)
        sweep = MultiSweep(self._keys, self.context, budget, sequences, output, self._shares.page_limit, pairs=pairs)
        return Merge(inputs, sweep, output, budget is self.context.budget, pages_at_once)

    def _run_output(self, side: int, chosen: list[RunPair]) -> RunOutput:
        writer = self._destination(side).writer(self._keys[side])
        return RunOutput(writer, max(pair.runs[side].page_rows for pair in chosen))

    def _most_in_last_merge(self) -> int:
        """A page of every run is open at one time: as many as fit."""
        return min(self.options.fan_in, merge_tree.fitting(self._pairs, self.context.budget.limit))


def _ordered(side: Gathered) -> Ordered:
    order = side.in_order()
    old = np.zeros(len(order) + 1, dtype=np.int32)
    np.cumsum(order < side.joined, out=old[1:])
    return Ordered(side.rows, order, side.words[order], side.keys, old=old)
