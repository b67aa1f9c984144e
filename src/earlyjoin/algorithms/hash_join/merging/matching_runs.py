"""Matching runs (RPJ section 5.2, figure 6): which runs of both sides go through merges together.

Two runs match when one merge made them, or when they were flushed together (HMJ): all their pairs are done. They carry
one label. The label says so only as long as matching runs are merged together, so merges take *slots*: matching runs
of both sides, or the next unmatched run of each side.

::

    left   r1 r2 r3 r4        slots (r1, r1) (r2, r2) | (r3, r3) (r4, -)      two merges of two slots each
    right  r1 r2 r3    ──▶    left r5 r6, right r4 r3 ──▶ (r5, r4) (r6, r3)   one merge: r5 matches r4, r6 matches r3
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from earlyjoin.algorithms.hash_join.rules import ResidenceRule, Stamps
from earlyjoin.algorithms.hash_join.table.disk_part import DiskRun
from earlyjoin.predicates.encoding.keys import Bool
from earlyjoin.state import joined


class Slot(NamedTuple):
    """Runs of both sides that are merged together; several of one side only after a merge was saved half-way."""

    left: list[DiskRun]
    right: list[DiskRun]

    @property
    def matches(self) -> bool:
        """Are all pairs done?"""
        return not (self.left and self.right) or self.left[0].label == self.right[0].label

    @property
    def rows(self) -> int:
        """Rows of all its runs."""
        return sum(run.rows for run in (*self.left, *self.right))


def slots(left: Sequence[DiskRun], right: Sequence[DiskRun]) -> list[Slot]:
    """The runs of a partition in slots: matching ones first, then the others, side by side."""
    lefts, rights = _by_label(left), _by_label(right)
    matching = [Slot(runs, rights[label]) for label, runs in lefts.items() if label in rights]
    alone = [runs for label, runs in lefts.items() if label not in rights]
    others = [runs for label, runs in rights.items() if label not in lefts]
    return matching + [Slot(mine or [], other or []) for mine, other in zip_longest(alone, others)]


def _by_label(runs: Sequence[DiskRun]) -> dict[int, list[DiskRun]]:
    found: dict[int, list[DiskRun]] = {}
    for run in runs:
        found.setdefault(run.label, []).append(run)
    return found


class MatchingRunsRule(ResidenceRule):
    """HMJ and RPJ: in matching runs, together in memory once, or seen by an md-task (RPJ section 5.2).

    HMJ of the paper needs the runs alone, because a row is in memory with all that it has met until both leave
    together. Here rows come in batches, and a row that has met others may be kept after these have left: stamps tell.
    """

    def joined(self, partition: int, left: Stamps, right: Stamps) -> Bool:
        """All three rules of a dd-task."""
        return joined.same_run(left.labels, right.labels) | super().joined(partition, left, right)
