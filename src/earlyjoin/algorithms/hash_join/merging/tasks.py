"""The dd-task and the clean-up of HMJ and RPJ: merges of sorted runs, one after the other, until a partition is done.

::

    dd-task   slots of the partition ──▶ merge the smallest F ──▶ … until one slot of matching runs is left
    clean-up  flush what is in memory ──▶ for each partition: one merge with the whole memory that writes nothing;
              a partition with more runs than that can take is joined by hashing, as XJoin's

F, the fan-in, is the number of slots that one merge takes: at most as many as fit, at least two. At clean-up nothing
else is in memory and only what fits counts (RPJ section 3). The run that earlier tasks have left is the longest: it is
merged last, and so once. Hashing reads every page once where merging in several passes would write and read it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from earlyjoin.algorithms.hash_join.cleanup import CleanUp
from earlyjoin.algorithms.hash_join.disk_pairs import unmatched_in_memory
from earlyjoin.algorithms.hash_join.join_state import JoinState
from earlyjoin.algorithms.hash_join.merging.matching_runs import Slot, slots
from earlyjoin.algorithms.hash_join.merging.merge_input import page_cost
from earlyjoin.algorithms.hash_join.merging.partition_merge import MergeWork, PartitionMerge
from earlyjoin.algorithms.hash_join.tasks import FinalWork, Task
from earlyjoin.algorithms.merge_join.merge_tree import smallest_first
from earlyjoin.algorithms.protocol import Step
from earlyjoin.state.budget import Budget

_MERGING_PART = 1.25
"""Pages of all runs of a merge may take one in so many parts of the memory: the rest is for further pages."""


class DiskDiskTask(Task):
    """Joins the runs of both sides of a partition that exist when it starts."""

    kind = "disk-disk"

    def __init__(self, work: MergeWork, fan_in: int, partition: int, labels: set[int] | None = None) -> None:
        self._work, self._fan_in, self.partition = work, fan_in, partition
        runs = [run for side in (0, 1) for run in work.table.runs[side][partition]]
        self._labels = {run.label for run in runs} if labels is None else labels
        self.merge: PartitionMerge | None = None

    def _slots(self) -> list[Slot]:
        left, right = (
            [run for run in self._work.table.runs[side][self.partition] if run.label in self._labels] for side in (0, 1)
        )
        return slots(left, right)

    @property
    def done(self) -> bool:
        """Is one slot of matching runs left?"""
        if self.merge is not None:
            return False
        left = self._slots()
        return len(left) <= 1 and all(slot.matches for slot in left)

    def step(self) -> Step:
        """A piece of a merge, or the next merge."""
        if self.merge is None:
            table = self._work.table
            chosen = next_merge(self._slots(), self._fan_in, table.pages)
            self.merge = merge_of(self._work, self.partition, chosen, table.pages, table.next_label())
            return None
        step = self.merge.step()
        if self.merge.done:
            assert self.merge.label is not None
            self._labels.add(self.merge.label)
            self.merge = None
        return step

    def save(self) -> dict[str, Any]:
        """Where it stands; files being written are in the snapshot of the table."""
        merge = save_merge(self._work, self.merge) if self.merge is not None else None
        return {"kind": self.kind, "partition": self.partition, "labels": sorted(self._labels), "merge": merge}

    @classmethod
    def load(cls, work: MergeWork, fan_in: int, values: dict[str, Any]) -> DiskDiskTask:
        """The task that ``save`` saved."""
        task = cls(work, fan_in, values["partition"], set(values["labels"]))
        if values["merge"] is not None:
            task.merge = load_merge(work, values["partition"], work.table.pages, values["merge"])
        return task

    @property
    def nbytes(self) -> int:
        """What is being merged."""
        return self.merge.nbytes if self.merge is not None else 0

    def close(self) -> None:
        """Give memory back and remove what is half written."""
        if self.merge is not None:
            self.merge.close()


class MergeCleanUp(FinalWork):
    """Joins what was never joined, partition by partition: those first of which nothing was flushed."""

    def __init__(self, state: JoinState, work: MergeWork, flush_pair: Callable[[int], None]) -> None:
        self._state, self._table, self._work, self._flush_pair = state, state.table, work, flush_pair
        on_disk = state.table.on_disk
        self._order = sorted(range(state.table.partitions), key=lambda partition: bool(on_disk[:, partition].any()))
        self._at = 0
        self._row = [0, 0]
        self.merge: PartitionMerge | None = None
        self._hashing: CleanUp | None = None

    @property
    def done(self) -> bool:
        """Is every partition through?"""
        return self._at >= len(self._order)

    def step(self) -> Step:
        """A bounded piece of the work."""
        table, partition = self._table, self._order[self._at]
        if self.merge is not None:
            return self._merge_step(self.merge)
        if self._hashing is not None:
            return self._hashing_step(self._hashing)
        if not table.on_disk[:, partition].any():
            return self._in_memory(partition)
        for other in self._order[self._at :]:
            if any(len(table.parts[side][other]) for side in (0, 1)):
                self._flush_pair(other)
                return None
        left = slots(*(table.runs[side][partition] for side in (0, 1)))
        budget = self._state.context.budget
        if len(fitting(left, len(left), budget)) < len(left):
            self._hashing = CleanUp(self._state, [partition])
        elif self._worth_a_merge(left):
            self.merge = merge_of(self._work, partition, left, budget, None)
        else:
            self._next_partition()
        return None

    def _worth_a_merge(self, left: list[Slot]) -> bool:
        """Are there pairs to find, or rows that go out unmatched?"""
        how = self._state.plan.how
        if len(left) == 1 and left[0].matches:
            return any(how.gives_unmatched(side) and left[0][side] for side in (0, 1))
        return bool(left)

    def _merge_step(self, merge: PartitionMerge) -> Step:
        step = merge.step()
        if merge.done:
            self.merge = None
            self._next_partition()
        return step

    def _hashing_step(self, hashing: CleanUp) -> Step:
        step = hashing.step()
        if hashing.done:
            self._hashing = None
            self._next_partition()
        return step

    def _next_partition(self) -> None:
        for side in (0, 1):
            self._table.forget(side, self._order[self._at])
            self._table.forget_disk(side, self._order[self._at])
        self._at += 1
        self._row = [0, 0]

    def _in_memory(self, partition: int) -> Step:
        """Nothing of the partition was ever flushed: everything has met, unmatched rows come from memory."""
        for side in (0, 1):
            if self._row[side] >= 0:
                step, self._row[side] = unmatched_in_memory(self._state, side, partition, self._row[side])
                return step
        self._next_partition()
        return None

    def save(self) -> dict[str, Any]:
        """Plain values for a snapshot."""
        merge = save_merge(self._work, self.merge) if self.merge is not None else None
        hashing = self._hashing.save() if self._hashing is not None else None
        return {"order": self._order, "at": self._at, "row": list(self._row), "merge": merge, "hashing": hashing}

    def load(self, values: dict[str, Any]) -> None:
        """Take over what ``save`` gave."""
        self._order, self._at, self._row = values["order"], values["at"], list(values["row"])
        if values["merge"] is not None:
            partition, budget = self._order[self._at], self._state.context.budget
            self.merge = load_merge(self._work, partition, budget, values["merge"])
        if values["hashing"] is not None:
            self._hashing = CleanUp(self._state, [self._order[self._at]])
            self._hashing.load(values["hashing"])

    @property
    def nbytes(self) -> int:
        """What is being merged."""
        return self.merge.nbytes if self.merge is not None else 0

    def close(self) -> None:
        """Give memory back and remove what is half written."""
        if self.merge is not None:
            self.merge.close()


def next_merge(left: list[Slot], fan_in: int, budget: Budget) -> list[Slot]:
    """All slots, if one merge can take them; else the first of the smallest, so many that later merges are full.

    Slots are as small as others of less than twice their rows: of those that were flushed the oldest go first.
    """
    least = min((slot.rows for slot in left), default=0) or 1
    classes = [(slot.rows // least).bit_length() for slot in left]
    by_size = sorted(range(len(left)), key=lambda number: (classes[number], number))
    most = len(fitting([left[number] for number in by_size], fan_in, budget))
    if most >= len(left):
        return left
    return fitting([left[number] for number in smallest_first(classes, most, most)], most, budget)


def fitting(left: list[Slot], most: int, budget: Budget) -> list[Slot]:
    """The first slots, at most so many, of which a page of every run fits; but two, which always can be merged."""
    limit, nbytes, rows = budget.limit, 0, 0
    for number, slot in enumerate(left[:most]):
        for run in (*slot.left, *slot.right):
            costs = [page_cost(run, page) for page in range(run.run.pages)]
            nbytes += max((cost for cost, _ in costs), default=0)
            rows += max((length for _, length in costs), default=0)
        if limit.rows is not None:
            over = _MERGING_PART * rows > limit.rows
        else:
            over = _MERGING_PART * nbytes > (limit.bytes or 0) - budget.used_bytes
        if over and number >= 2:
            return left[:number]
    return left[:most]


def merge_of(work: MergeWork, partition: int, chosen: list[Slot], budget: Budget, label: int | None) -> PartitionMerge:
    """A merge of some slots."""
    left = [run for slot in chosen for run in slot.left]
    right = [run for slot in chosen for run in slot.right]
    return PartitionMerge(work, partition, (left, right), budget, label=label)


def save_merge(work: MergeWork, merge: PartitionMerge) -> dict[str, Any]:
    """Which runs it merges, by their places, and where it stands. What it has written goes with the table."""
    places = []
    for runs, merged in zip(work.table.runs, merge.runs, strict=True):
        known = [id(run) for run in runs[merge.partition]]
        places.append([known.index(id(run)) for run in merged])
    values = merge.save()
    work.table.half_written = merge.written
    return {"runs": places, "label": merge.label, "state": values}


def load_merge(work: MergeWork, partition: int, budget: Budget, values: dict[str, Any]) -> PartitionMerge:
    """The merge that ``save_merge`` saved."""
    left, right = ([work.table.runs[side][partition][place] for place in values["runs"][side]] for side in (0, 1))
    merge = PartitionMerge(work, partition, (left, right), budget, label=values["label"])
    merge.written, work.table.half_written = work.table.half_written, ([], [])
    merge.load(values["state"])
    return merge
