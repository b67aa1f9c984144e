"""Rate-based progressive join (RPJ, Tao et al., SIGMOD 2005), with RPJ-md and RPJ-dd of section 6.2.

::

    mm-stage   arriving  probe and insert; memory full: the rows least likely to find a partner leave (optimal flush)
    reactive             the task of the highest expected output rate Er / Et, again and again, until none is expected
                         to find anything:  md  a memory part with the other side's runs
                                            dd  the runs of both sides of a partition, merged (PSMJ)
    clean-up             everything leaves memory; each partition is merged with the whole memory

A task that is interrupted by arrivals stays in work and goes on when the inputs are silent again, before another is
chosen: its expected output was counted as found when it began. Where every task has to wait for a silence, the wait can
be made part of Et (option ``wait-cost``). An md-task whose memory part has to leave is finished first. PAPER UNCLEAR:
the paper looks for input between tasks only (option ``hand-over``); here after every step, if nothing else is said.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.hash_join.flush_policies import optimal_flush
from earlyjoin.algorithms.hash_join.flushing import PartitionStatistics, Victim
from earlyjoin.algorithms.hash_join.join_state import JoinState
from earlyjoin.algorithms.hash_join.merging.matching_runs import MatchingRunsRule, slots
from earlyjoin.algorithms.hash_join.merging.settings import MergeSettings
from earlyjoin.algorithms.hash_join.merging.sorted_runs_policy import SortedRuns
from earlyjoin.algorithms.hash_join.operator import PartitionedHashJoin
from earlyjoin.algorithms.hash_join.rpj.arrival_statistics import ArrivalStatistics
from earlyjoin.algorithms.hash_join.rpj.expected_output import ExpectedOutput
from earlyjoin.algorithms.hash_join.rpj.formulas import PageCosts, merged_pages
from earlyjoin.algorithms.hash_join.rpj.task_choice import best_task
from earlyjoin.algorithms.hash_join.table.disk_part import DiskRun
from earlyjoin.algorithms.hash_join.table.table import Flushed
from earlyjoin.algorithms.hash_join.tasks import MemoryDiskTask, Task
from earlyjoin.algorithms.protocol import Description, Formulas
from earlyjoin.predicates.base import Capability
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.counters import Counters

_PAPER = "RPJ, SIGMOD 2005"
_FLUSH_OF_ROWS, _FLUSH_OF_BYTES = 0.05, 0.1
"""nflush, a parameter that the paper does not give, as a part of the rows in memory. Large runs cost less time."""


class RateBased(SortedRuns):
    """Optimal flush, and the task of the highest rate, from the statistics of arrivals."""

    md: ClassVar[bool] = True
    dd: ClassVar[bool] = True

    def __init__(self, state: JoinState) -> None:
        super().__init__(state)
        settings, partitions = self.settings, self.table.partitions
        self.statistics = ArrivalStatistics(partitions, unit_rows=settings.unit_rows, decay=settings.decay)
        self.expected = ExpectedOutput(partitions)
        self._held_statistics = self.table.memory.account("statistics")
        self._book_statistics()

    def _book_statistics(self) -> None:
        """Statistics count as well. They grow when rows leave, so there is room."""
        more = self.statistics.nbytes + self.expected.nbytes - self._held_statistics.bytes
        if more < 0:
            self._held_statistics.release(-more)
        else:
            self._held_statistics.try_reserve(more)

    def victims(self, statistics: PartitionStatistics) -> list[Victim]:
        """Optimal flush. The papers count memory in rows; of one in bytes whole partitions leave, and no short runs."""
        in_rows = self.table.memory.limit.rows is not None
        fraction = self.settings.flush_fraction or (_FLUSH_OF_ROWS if in_rows else _FLUSH_OF_BYTES)
        count = max(1, int(fraction * statistics.memory.sum()))
        least = 0 if in_rows else int(self.settings.least_run * count)
        victims = optimal_flush(statistics.able, self.statistics.probability(), count, least=least)
        return [Victim(victim.side, victim.partition, victim.rows if in_rows else None) for victim in victims]

    # Statistics

    def arrived(self, side: int, counts: Int64) -> None:
        """Rows have come."""
        self.statistics.arrived(side, counts)
        self.expected.arrived(side, counts)

    def input_ended(self, side: int) -> None:
        """Rows of this side will not come any more."""
        self.statistics.end(side)

    def flush_sorted(
        self,
        side: int,
        partition: int,
        *,
        rows: int | None = None,
        label: int | None = None,
        written: Counters | None = None,
    ) -> Flushed | None:
        """Rows leave, and what they could still meet is to be found on disk."""
        flushed = super().flush_sorted(side, partition, rows=rows, label=label, written=written)
        if flushed is not None:
            departure = self.state.context.ticks.next_tick - 1
            self.expected.flushed(side, partition, flushed.arrivals, departure)
            for kept in (0, 1):
                self.expected.forget_flushes(kept, partition, self._oldest(1 - kept, partition))
            self._book_statistics()
        return flushed

    def _oldest(self, side: int, partition: int) -> int:
        """Arrival of the oldest row that is in memory or about to come in."""
        arrivals = self.table.parts[side][partition].arrivals
        oldest = int(arrivals[0]) if len(arrivals) else self.state.context.ticks.next_tick
        arriving = self.state.arriving
        return min(oldest, arriving.first_tick) if arriving is not None and arriving.piece is not None else oldest

    # Tasks

    def has_task(self) -> bool:
        """Is some task expected to find anything?"""
        md = self.md and bool(self._memory_pairs().any())
        return md or (self.dd and self.can_merge_aside and bool(self.expected.disk.any()))

    def _memory_pairs(self) -> Int64:
        """Er of md-tasks; rows that need no further match have gone without a word, from memory and in merges."""
        return np.where((self.table.in_memory > 0) & (self.table.on_disk[::-1] > 0), self.expected.memory, 0)

    def next_task(self) -> Task | None:
        """The task of the highest expected output rate."""
        runs = np.array([[len(part) for part in side] for side in self.table.runs])
        pages = np.array([[sum(map(self._pages, part)) for part in side] for side in self.table.runs])
        costs = PageCosts(self.settings.random_cost, self.settings.sequential_cost)
        best = best_task(
            self._memory_pairs(), self.expected.disk, runs, pages, self._merged_pages(),
            costs=costs, wait=self.settings.wait_cost, md=self.md, dd=self.dd and self.can_merge_aside,
        )  # fmt: skip
        if best is None:
            return None
        if best.side is None:
            self.expected.merged(best.partition)
            return self.merge_task(best.partition)
        task = MemoryDiskTask(self.state, best.side, best.partition, self.finished)
        self.expected.probed(best.side, best.partition, task.started_at)
        return task

    def _merged_pages(self) -> Int64:
        """Pages that the merges of each partition would read."""
        merged = np.zeros(self.table.partitions, dtype=np.int64)
        if self.dd:
            for partition in np.flatnonzero(self.expected.disk):
                found = slots(*(self.table.runs[side][partition] for side in (0, 1)))
                sizes = [sum(map(self._pages, (*slot.left, *slot.right))) for slot in found]
                merged[partition] = merged_pages(sizes, self.settings.fan_in)
        return merged

    def _pages(self, run: DiskRun) -> int:
        """Pages of a run as the counters count them."""
        page_rows = self.table.files[0].page_rows
        return len(run.sizes) if page_rows is None else -(-run.rows // page_rows)

    def finished(self, task: MemoryDiskTask) -> None:
        """The memory part was used at the moment at which the task began."""
        assert isinstance(self.state.rule, MatchingRunsRule)
        self.state.rule.history[task.side][task.partition].record(task.started_at)

    # State

    def save(self) -> dict[str, Any]:
        """The statistics."""
        return {"statistics": self.statistics.save(), "expected": self.expected.save()}

    def load(self, values: dict[str, Any]) -> None:
        """Take them over."""
        self.statistics.load(values["statistics"])
        self.expected.load(values["expected"])
        self._book_statistics()

    def close(self) -> None:
        """Give memory back."""
        self._held_statistics.clear()


class MemoryDiskAlone(RateBased):
    """RPJ-md."""

    dd = False


class DiskDiskAlone(RateBased):
    """RPJ-dd."""

    md = False


@registry.register
class RateBasedProgressiveJoin(PartitionedHashJoin):
    """Rate-based progressive join: what is expected of rows decides which leave, and which task is next."""

    description = Description(
        name="rpj",
        title="rate-based progressive join",
        paper=_PAPER,
        needs=Capability.HASHABLE,
        spills=True,
        rows_at_once=5,
        joins_on_arrival=True,
        formulas=Formulas.RESULTS_ONLY,
    )
    options_type = MergeSettings
    policy_type: ClassVar[type[RateBased]] = RateBased


@registry.register
class MemoryDiskRateBasedProgressiveJoin(RateBasedProgressiveJoin):
    """RPJ-md: the reactive stage has md-tasks alone, as XJoin's has."""

    description = Description(
        name="rpj-md",
        title="rate-based progressive join, memory-disk tasks alone",
        paper=f"{_PAPER}, section 6.2",
        needs=Capability.HASHABLE,
        spills=True,
        rows_at_once=5,
        joins_on_arrival=True,
        formulas=Formulas.RESULTS_ONLY,
    )
    policy_type = MemoryDiskAlone


@registry.register
class DiskDiskRateBasedProgressiveJoin(RateBasedProgressiveJoin):
    """RPJ-dd: the reactive stage has dd-tasks alone, as HMJ's has."""

    description = Description(
        name="rpj-dd",
        title="rate-based progressive join, disk-disk tasks alone",
        paper=f"{_PAPER}, section 6.2",
        needs=Capability.HASHABLE,
        spills=True,
        rows_at_once=5,
        joins_on_arrival=True,
        formulas=Formulas.RESULTS_ONLY,
    )
    policy_type = DiskDiskAlone
