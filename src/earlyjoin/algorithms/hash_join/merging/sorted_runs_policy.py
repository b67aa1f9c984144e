"""What HMJ and RPJ share: rows leave memory as sorted runs, and sorted runs are merged (RPJ section 2.2)."""

from __future__ import annotations

from typing import Any

from earlyjoin.algorithms.hash_join.flushing import Victim
from earlyjoin.algorithms.hash_join.join_state import JoinState
from earlyjoin.algorithms.hash_join.merging.matching_runs import MatchingRunsRule
from earlyjoin.algorithms.hash_join.merging.partition_merge import MergeWork
from earlyjoin.algorithms.hash_join.merging.settings import MergeSettings
from earlyjoin.algorithms.hash_join.merging.tasks import DiskDiskTask, MergeCleanUp
from earlyjoin.algorithms.hash_join.policy import Policy
from earlyjoin.algorithms.hash_join.rules import DuplicateRule
from earlyjoin.algorithms.hash_join.table.memory_part import MemoryPart
from earlyjoin.algorithms.hash_join.table.table import Flushed, PartitionedTable
from earlyjoin.algorithms.hash_join.tasks import Task
from earlyjoin.algorithms.sweep_areas import SweepWords, make_sweep
from earlyjoin.kernels.sorting import stable_order
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.counters import Counters

_ROWS_OF_A_MERGE = 8
"""A page of each side and its chunk, each with keys, and what is written."""


class SortedRuns(Policy):
    """Every victim leaves as a sorted run of its own."""

    def __init__(self, state: JoinState) -> None:
        super().__init__(state)
        assert isinstance(state.settings, MergeSettings)
        self.settings = state.settings
        self._order, _ = make_sweep(state.key)
        self.merge_work = MergeWork(
            state.plan, state.context, state.table, state.settle, state.rule, self._order, state.expendable,
            state.one_side,
        )  # fmt: skip

    @staticmethod
    def rule(table: PartitionedTable, build_side: int) -> DuplicateRule:
        """Matching runs, residence in memory, and the history of md-tasks."""
        return MatchingRunsRule(table.partitions)

    def flush(self, victims: list[Victim], written: Counters) -> None:
        """Every victim leaves as a sorted run of its own."""
        for victim in victims:
            self.flush_sorted(victim.side, victim.partition, rows=victim.rows, written=written)

    def flush_sorted(
        self,
        side: int,
        partition: int,
        *,
        rows: int | None = None,
        label: int | None = None,
        written: Counters | None = None,
    ) -> Flushed | None:
        """Rows of a memory part leave as a sorted run."""
        return self.table.flush(side, partition, rows=rows, order=self._sorted, label=label, counters=written)

    def flush_pair(self, partition: int, written: Counters | None = None) -> None:
        """Everything that a partition has in memory leaves: matching runs, because all of it has met."""
        label = self.table.next_label()
        for side in (0, 1):
            if len(self.table.parts[side][partition]):
                self.flush_sorted(side, partition, label=label, written=written)

    def _sorted(self, part: MemoryPart, rows: Int64) -> tuple[Int64, SweepWords]:
        keys = part.keys
        assert keys is not None
        words = self._order.words(part.side, keys)[rows]
        order = stable_order(words)
        return rows[order], words[order]

    @property
    def can_merge_aside(self) -> bool:
        """Does the memory for reading hold what a merge beside a full table needs? Wide rows wait for the clean-up."""
        limit = self.table.pages.limit.bytes
        return limit is None or _ROWS_OF_A_MERGE * self.state.context.row_nbytes <= limit

    def merge_task(self, partition: int) -> DiskDiskTask:
        """The runs that a partition has are merged."""
        return DiskDiskTask(self.merge_work, self.settings.fan_in, partition)

    def cleanup(self) -> MergeCleanUp:
        """Merges with the whole memory."""
        return MergeCleanUp(self.state, self.merge_work, self.flush_pair)

    def load_task(self, values: dict[str, Any]) -> Task:
        """A dd-task or an md-task."""
        if values["kind"] == DiskDiskTask.kind:
            return DiskDiskTask.load(self.merge_work, self.settings.fan_in, values)
        return super().load_task(values)
