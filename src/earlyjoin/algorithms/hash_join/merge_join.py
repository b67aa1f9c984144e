"""What HMJ and RPJ share: rows leave memory as sorted runs, and sorted runs are merged (RPJ section 2.2)."""

from __future__ import annotations

from typing import Any

from earlyjoin.algorithms.hash_join.flushing import Victim
from earlyjoin.algorithms.hash_join.merging.matching_runs import MatchingRunsRule
from earlyjoin.algorithms.hash_join.merging.partition_merge import MergeWork, PartitionMerge
from earlyjoin.algorithms.hash_join.merging.settings import MergeSettings
from earlyjoin.algorithms.hash_join.merging.tasks import DiskDiskTask, MergeCleanUp
from earlyjoin.algorithms.hash_join.operator import PartitionedHashJoin
from earlyjoin.algorithms.hash_join.table.memory_part import MemoryPart
from earlyjoin.algorithms.hash_join.table.table import Flushed
from earlyjoin.algorithms.hash_join.tasks import Task
from earlyjoin.algorithms.protocol import Context, Plan
from earlyjoin.algorithms.sweep_areas import SweepWords, make_sweep
from earlyjoin.kernels.sorting import stable_order
from earlyjoin.predicates.encoding.keys import Int64

_ROWS_OF_A_MERGE = 8
"""A page of each side and its chunk, each with keys, and what is written."""


class MergingHashJoin(PartitionedHashJoin):
    """A partitioned hash join whose runs are sorted."""

    options_type = MergeSettings
    set: MergeSettings
    rule: MatchingRunsRule

    def __init__(self, plan: Plan, context: Context, settings: MergeSettings | None = None) -> None:
        super().__init__(plan, context, settings)
        self._order, _ = make_sweep(self.key)
        expendable = (self.expendable[0], self.expendable[1])
        self.merge_work = MergeWork(
            plan, context, self.table, self.settle, self.rule, self._order, expendable, self.one_side
        )

    def make_rule(self) -> MatchingRunsRule:
        """Matching runs, residence in memory, and the history of md-tasks."""
        return MatchingRunsRule(self.table.partitions)

    def flush(self, victims: list[Victim]) -> None:
        """Every victim leaves as a sorted run of its own."""
        for victim in victims:
            self.flush_sorted(victim.side, victim.partition, rows=victim.rows)

    def flush_sorted(
        self, side: int, partition: int, *, rows: int | None = None, label: int | None = None
    ) -> Flushed | None:
        """Rows of a memory part leave as a sorted run."""
        return self.table.flush(side, partition, rows=rows, order=self._sorted, label=label)

    def flush_pair(self, partition: int) -> None:
        """Everything that a partition has in memory leaves: matching runs, because all of it has met."""
        label = self.table.next_label()
        for side in (0, 1):
            if len(self.table.parts[side][partition]):
                self.flush_sorted(side, partition, label=label)

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
        return limit is None or _ROWS_OF_A_MERGE * self.context.row_nbytes <= limit

    def make_cleanup(self) -> MergeCleanUp:
        """Merges with the whole memory."""
        return MergeCleanUp(self)

    def load_task(self, values: dict[str, Any]) -> Task:
        """A dd-task or an md-task."""
        return DiskDiskTask.load(self, values) if values["kind"] == DiskDiskTask.kind else super().load_task(values)

    def held_bytes(self) -> int:
        """The table and what is being merged."""
        return super().held_bytes() + sum(merge.nbytes for merge in self._merges())

    def _merges(self) -> list[PartitionMerge]:
        """What is being merged: by a dd-task that waits, or by the clean-up."""
        holders = [holder for holder in (self.task, self.cleanup) if isinstance(holder, DiskDiskTask | MergeCleanUp)]
        return [holder.merge for holder in holders if holder.merge is not None]

    def close(self) -> None:
        """Give memory back and remove files."""
        for merge in self._merges():
            merge.close()
        super().close()
