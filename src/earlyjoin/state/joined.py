"""Was this pair joined before? The exactly-once rules, all of them and nowhere else.

Every algorithm meets a pair of rows in more than one phase and must report it in one of them only. The papers have
four ways to know, and all algorithms here use these functions:

* **Residence** (XJoin, RPJ, DINER, MINER; :func:`resided_together`): a row is in memory during [ATS, DTS). Rows that
  were in memory at one moment were joined when the last of them arrived.
* **Probe history** (XJoin and RPJ md-tasks; :class:`ProbeHistory`): a memory partition was joined with the other side's
  disk partition at recorded moments.
* **Runs** (PMJ, HMJ, RPJ dd-tasks; :func:`same_run`, :class:`RunPairs`): runs written together, or joined on disk, are
  done with each other. :func:`unjoined_boxes` is the same for rows in memory of which some were joined before.
* **One timestamp** (EHJ sections 4.4 and 4.5; :func:`early_hash_joined`): biased flushing makes one stamp enough.

All stamps are ticks of one :class:`~earlyjoin.state.clock.LogicalClock`, so no two events are simultaneous. All
functions take arrays (or scalars that broadcast) and answer for each pair at once.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from earlyjoin.predicates.encoding.keys import Bool, Int64

Ticks = Int64 | int


def resided_together(*intervals: tuple[Ticks, Ticks]) -> Bool:
    """Do all the intervals [arrival, departure) share a moment? One interval for each input, two or more.

    >>> resided_together((0, 10), (5, 20)), resided_together((0, 5), (5, 9))
    (np.True_, np.False_)
    """
    latest_arrival = intervals[0][0]
    first_departure = intervals[0][1]
    for arrival, departure in intervals[1:]:
        latest_arrival = np.maximum(latest_arrival, arrival)
        first_departure = np.minimum(first_departure, departure)
    return np.less(latest_arrival, first_departure)


def same_run(first_run: Ticks, second_run: Ticks, *more_runs: Ticks) -> Bool:
    """Were all rows written in runs of the same number, which were joined before they were written?

    >>> same_run(3, 3), same_run(3, 3, 3), same_run(3, 3, 4)
    (np.True_, np.True_, np.False_)
    """
    same: Bool = np.equal(first_run, second_run)
    for run in more_runs:
        same = same & np.equal(first_run, run)
    return same


def unjoined_boxes(starts: Int64, counts: Int64, old: Int64) -> tuple[Int64, Int64]:
    """The combinations of rows in memory that have not all met before, as boxes that share none.

    A line of ``starts`` and ``counts`` is a group of rows that match: for each side, where its rows lie in a row.
    The first ``old`` rows of each side were joined with each other. Box k takes rows of side k that are new, old ones
    of the sides before it and any of those behind it: every combination with a new row, by the first side that has one.
    """
    sides = starts.shape[1]
    box, side = np.arange(sides)[:, np.newaxis], np.arange(sides)
    new = counts - old
    at = starts[:, np.newaxis] + np.where(side == box, old[:, np.newaxis], 0)
    size = np.where(side < box, old[:, np.newaxis], np.where(side == box, new[:, np.newaxis], counts[:, np.newaxis]))
    filled = (size > 0).all(axis=2)
    return np.ascontiguousarray(at[filled]), np.ascontiguousarray(size[filled])


class ProbeHistory:
    """The moments at which a memory partition was joined with the other side's disk partition."""

    def __init__(self, moments: Iterable[int] = ()) -> None:
        self._moments: list[int] = list(moments)

    @property
    def moments(self) -> Int64:
        """All recorded moments, ascending."""
        return np.asarray(self._moments, dtype=np.int64)

    def record(self, moment: int) -> None:
        """The memory partition was used at this moment; moments must increase."""
        if self._moments and moment <= self._moments[-1]:
            raise ValueError(f"probe moments must increase: {moment} after {self._moments[-1]}")
        self._moments.append(moment)

    def covered(self, memory_arrival: Ticks, memory_departure: Ticks, disk_departure: Ticks) -> Bool:
        """Did some probe see the one row in memory and the other already on disk?"""
        earliest = np.maximum(memory_arrival, disk_departure)
        moments = np.append(self.moments, np.iinfo(np.int64).max)
        first_after = moments[np.searchsorted(moments[:-1], earliest, side="right")]
        seen: Bool = np.logical_and(first_after < memory_departure, first_after < np.iinfo(np.int64).max)
        return seen


class RunPairs:
    """Which pairs of disk runs (one run of each side) have been joined with each other.

    Runs of a side are numbered as they are written, and a left run meets the right runs in that order: one number for
    each left run, the first right run that it has not met, says it all.
    """

    def __init__(self, met: Iterable[int] = ()) -> None:
        self._met = np.asarray(list(met), dtype=np.int64)

    @property
    def met(self) -> Int64:
        """For each left run: how many right runs, from the first on, it has been joined with."""
        return self._met

    def mark(self, left_run: int, right_runs: int) -> None:
        """``left_run`` has been joined with the first ``right_runs`` right runs."""
        if left_run >= len(self._met):
            self._met = np.append(self._met, np.zeros(left_run + 1 - len(self._met), dtype=np.int64))
        self._met[left_run] = max(right_runs, self._met[left_run])

    def covered(self, left_run: Ticks, right_run: Ticks) -> Bool:
        """Were the runs of these rows joined with each other?"""
        met = np.append(self._met, 0)
        done: Bool = np.less(right_run, met[np.minimum(left_run, len(self._met))])
        return done

    def first_open(self, left_runs: int, right_runs: int) -> tuple[int, int] | None:
        """The next two runs to join when so many exist, or None."""
        if right_runs == 0:
            return None
        behind = np.flatnonzero(self._met[:left_runs] < right_runs)
        if len(behind):
            return int(behind[0]), int(self._met[behind[0]])
        return (len(self._met), 0) if len(self._met) < left_runs else None


def early_hash_joined(
    r_arrival: Ticks, s_arrival: Ticks, r_flush: Ticks, s_flush: Ticks, last_probe: Ticks | None = None
) -> Bool:
    """EHJ's rule: was the pair joined in the hashing phase, or by the background process?

    ``r_flush`` and ``s_flush`` are the moments at which the pair's partition of R and of S was frozen
    (``LogicalClock.NEVER`` if it never was); biased flushing freezes S first, which is asserted because the rule
    rests on it. ``last_probe`` is the moment at which the file of the S row last probed the R partition.
    """
    if not np.all(np.less_equal(s_flush, r_flush)):
        raise AssertionError("biased flushing must freeze the S partition before the R partition")
    s_before_s_flush = np.less_equal(s_arrival, s_flush)
    s_before_r_flush = np.less_equal(s_arrival, r_flush)
    new = (
        (s_before_s_flush & np.greater(r_arrival, s_flush))
        | (~s_before_s_flush & s_before_r_flush & np.greater(r_arrival, s_arrival))
        | ~s_before_r_flush
    )
    joined = ~new
    if last_probe is not None:
        # Only rows of S that came before R was frozen can have met R in memory through a probe.
        joined = joined | (s_before_r_flush & np.less_equal(r_arrival, last_probe) & np.less_equal(r_arrival, r_flush))
    return joined
