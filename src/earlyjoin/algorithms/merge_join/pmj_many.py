"""Progressive merge join of three inputs and more on one attribute.

Phases and runs are those of two inputs (:mod:`earlyjoin.algorithms.merge_join.operator`): all sides are gathered
together, sorted together and written together, and one merge takes runs of all sides. What differs is how sorted rows
are joined: a key is a group on every side, and the result is the cross product of the groups
(:mod:`~earlyjoin.algorithms.window_merge.groups`, in memory and in a merge,
:mod:`~earlyjoin.algorithms.merge_join.multi_merge`). No intermediate result of two of the inputs ever exists.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.merge_join import merge_tree
from earlyjoin.algorithms.merge_join.merge_tree import RunPair
from earlyjoin.algorithms.merge_join.multi_merge import MergedRun, MultiMerge, RunPages, key_to_compare, matching
from earlyjoin.algorithms.merge_join.pmj import ProgressiveMergeJoin
from earlyjoin.algorithms.merge_join.run_creation import Gathered
from earlyjoin.algorithms.merge_join.settings import SortOptions
from earlyjoin.algorithms.merge_join.state import Merge
from earlyjoin.algorithms.merge_join.sweep_state import MemorySweep
from earlyjoin.algorithms.protocol import Context, Plan, Step
from earlyjoin.algorithms.window_merge.groups import GroupJoin, Ordered, Workspace
from earlyjoin.errors import BudgetExceeded, UnsupportedError
from earlyjoin.predicates.base import Capability
from earlyjoin.predicates.encoding.keys import Int64
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
        workspace = Workspace(self.plan.sides, self.context.output_rows, account, limit, some_have_met=True)
        return GroupJoin([_ordered(side) for side in self._gathered], workspace, self.context, self._in_memory)

    def _in_memory(self, index: tuple[Int64, ...]) -> Step:
        """The combinations of rows in memory that match: all of them are new."""
        rows, keys = [side.rows for side in self._gathered], [side.keys for side in self._gathered]
        kept = np.ones(len(index[0]), dtype=np.bool_)
        return matching(key_to_compare(self._keys[0]), rows, keys, index, kept)

    def _make_merge(self, inputs: list[int], budget: Budget, *, write: bool, pairs: bool, pages_at_once: int) -> Merge:
        """A merge of some sets of runs that writes a new set, or (the last) none. Pages are read one by one."""
        chosen = [self._pairs[number] for number in inputs]
        outputs = [self._merged_run(side, chosen, budget) for side in range(self.plan.sides)] if write else []
        sequences = iter(self._run_sequences(chosen, 1))
        runs = [[RunPages(next(sequences), pair.runs[side]) for pair in chosen] for side in range(self.plan.sides)]
        sweep = MultiMerge(self._keys, self.context, budget, runs, outputs)
        return Merge(inputs, sweep, tuple(outputs), budget is self.context.budget, 1)

    def _merged_run(self, side: int, chosen: list[RunPair], budget: Budget) -> MergedRun:
        writer = self._destination(side).writer(self._keys[side])
        page_rows = max(pair.runs[side].page_rows for pair in chosen)
        return MergedRun(writer, budget.account("merged page"), page_rows, self._shares.page_limit)

    def _most_in_last_merge(self) -> int:
        """A page of every run is open at one time: as many as fit."""
        return min(self.options.fan_in, merge_tree.fitting(self._pairs, self.context.budget.limit))


def _ordered(side: Gathered) -> Ordered:
    order = side.in_order()
    old = np.zeros(len(order) + 1, dtype=np.int32)
    np.cumsum(order < side.joined, out=old[1:])
    return Ordered(order, side.words[order], old)
