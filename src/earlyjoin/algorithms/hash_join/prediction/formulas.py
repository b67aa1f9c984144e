"""What an early hash join is expected to give and to cost (EHJ sections 3 and 4.3), as plain functions.

R is the first input, the smaller one and the one-side of a 1:N join; S is the second. A reading strategy A:B is given
by its share ``q = A / (A + B)`` of rows that come from R. Counts are expected values and therefore floats.

::

    rows read  0 ───────────── M ──────────────── N more ─────────────── R ended ─────── all read ── clean-up
    memory     fills, 1:1       S leaves, R grows    R alone, all of it     R stays       R stays
    expected   formula 1 or 2   transition rate      (1 − q2) σ M           σ M a row     the rest
               └ formula 3 holds instead while memory keeps the ratio in which the inputs are read (HMJ)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from earlyjoin.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSize:
    """How large the inputs are, and which share of all their pairs matches."""

    r: float
    s: float
    selectivity: float

    def __post_init__(self) -> None:
        if self.r < 0 or self.s < 0 or not 0 <= self.selectivity <= 1:
            raise InputError(
                f"sizes must be 0 or more and the selectivity between 0 and 1, got {self.r} and {self.s} rows, "
                f"selectivity {self.selectivity}"
            )

    @property
    def results(self) -> float:
        """Size of the whole result."""
        return self.selectivity * self.r * self.s


def share(a: float, b: float) -> float:
    """``q`` of an A:B reading strategy.

    >>> share(1, 1), share(3, 1)
    (0.5, 0.75)
    """
    if min(a, b) < 0 or a + b == 0:
        raise InputError(f"a reading strategy needs two numbers of which at least one is above 0, got {a}:{b}")
    return a / (a + b)


def rows_read(k: float, q: float, size: JoinSize) -> tuple[float, float]:
    """``r(k)`` and ``s(k)``: rows of R and of S among the first k; when one input has ended the other is read alone."""
    k = min(k, size.r + size.s)
    r = min(size.r, k * q)
    s = min(size.s, k - r)
    return k - s, s


def alternate_for(k: int) -> tuple[int, int]:
    """``r(k)`` and ``s(k)`` of strict alternation, which begins with R.

    >>> alternate_for(5)
    (3, 2)
    """
    return k - k // 2, k // 2


def results_in_memory(k: float, q: float, size: JoinSize) -> float:
    """Formula 1: results after k rows of an N:M join, all of them still in memory."""
    r, s = rows_read(k, q, size)
    return size.selectivity * r * s


def results_of_ones(r: float, s: float, many_per_one: Sequence[float], *, matching: float = 1.0) -> float:
    """Formula 2: results of a 1:N join after r rows of R and s of S, all in memory.

    ``many_per_one`` holds, in the order in which R is read, how many rows of S each row of R matches. ``matching`` is
    the share of S that has a partner at all (a foreign key that may be null).
    """
    total = math.fsum(many_per_one)
    return matching * s / total * math.fsum(many_per_one[: int(r)]) if total else 0.0


def results_of_uniform_ones(r: float, s: float, size_r: float, *, matching: float = 1.0) -> float:
    """Formula 2 when every row of R matches about as many rows of S."""
    return matching * r * s / size_r if size_r else 0.0


def lost_against_alternating(a: float, b: float) -> float:
    """Share of the results after k rows that A:B reading gives away against 1:1 reading.

    >>> round(lost_against_alternating(2, 1), 2), lost_against_alternating(3, 1), lost_against_alternating(3, 2)
    (0.11, 0.25, 0.04)
    """
    return (a - b) ** 2 / (a + b) ** 2


def results_in_full_memory(k: float, q: float, memory: float, size: JoinSize) -> float:
    """Formula 3: results after k ≥ M rows while memory is shared out as the inputs are read and neither has ended."""
    return results_in_memory(memory, q, size) + rate_in_full_memory(q, memory, size) * max(0.0, k - memory)


def rate_in_full_memory(q: float, memory: float, size: JoinSize) -> float:
    """Results for each row read once memory is full, under the assumptions of formula 3."""
    return 2 * size.selectivity * memory * q * (1 - q)


def results_before_cleanup(q: float, memory: float, size: JoinSize) -> float:
    """Results when both inputs are read and the clean-up has not begun, with memory held at the reading ratio.

    >>> round(results_before_cleanup(0.5, 300_000, JoinSize(r=500_000, s=500_000, selectivity=1e-5)))
    1275000
    """
    if memory >= size.r + size.s:
        return size.results
    r, s = rows_read(memory, q, size)
    later = size.selectivity * memory * ((1 - q) * (size.r - r) + q * (size.s - s))
    return min(size.results, results_in_memory(memory, q, size) + later)


def rows_of_s_left(q1: float, q2: float, memory: float, size: JoinSize) -> float:
    """``leftS``: rows of S still to be read when R ends; q1 is used until memory is full, q2 from then on."""
    if memory * q1 >= size.r:
        return max(0.0, size.s - size.r * (1 - q1) / q1)
    if q2 == 0:
        return 0.0
    return max(0.0, size.s - memory * (1 - q1) - (1 - q2) * (size.r - memory * q1) / q2)


def kept_fraction(memory: float, size: JoinSize, partitions: int | None = None) -> float:
    """``f``: share of R whose partitions are completely in memory when R has ended.

    With a number of partitions the share is a whole number of them, because a partition stays completely or not at all.
    """
    fraction = min(1.0, memory / size.r) if size.r else 1.0
    return fraction if partitions is None else math.floor(fraction * partitions) / partitions


def expected_tuple_ios(
    q1: float, q2: float, memory: float, size: JoinSize, *, partitions: int | None = None, discarded: float = 0.0
) -> float:
    """Rows written and read in all by EHJ (section 4.3), inputs not counted; ``q1 = q2 = 1`` is hybrid hash join.

    ``discarded`` rows of S never went to disk because their only partner was found before (1:N joins).
    """
    if memory >= size.r + size.s:
        return 0.0
    kept = kept_fraction(memory, size, partitions)
    return 2 * (size.r + size.s - kept * (size.r + rows_of_s_left(q1, q2, memory, size)) - discarded)


def avoided_tuple_ios(q1: float, q2: float, memory: float, size: JoinSize) -> float:
    """Rows not written and not read again because complete partitions of R stay in memory (section 3.2)."""
    return 2 * kept_fraction(memory, size) * (size.r + rows_of_s_left(q1, q2, memory, size))


def transition_rows(q1: float, q2: float, memory: float) -> float:
    """``N``: rows read after memory is full until biased flushing has filled it with R alone."""
    return (memory - memory * q1) / q2 if q2 else math.inf


def rate_while_flushing(after_full: float, q1: float, q2: float, memory: float, size: JoinSize) -> float:
    """Results for each row read, so many rows after memory was full, under biased flushing (section 4.3)."""
    c = min(1.0, (after_full * q2 + memory * q1) / memory)
    return size.selectivity * memory * (q2 * (1 - c) + (1 - q2) * c)


def results_while_flushing(after_full: float, q1: float, q2: float, memory: float, size: JoinSize) -> float:
    """The sum of ``rate_while_flushing`` over the first so many rows after memory was full, while R gives rows."""
    turning = min(after_full, transition_rows(q1, q2, memory))
    # c grows evenly, so the rate is a straight line and its mean is that of both ends.
    ends = [rate_while_flushing(at, q1, q2, memory, size) for at in (0.0, turning)]
    steady = size.selectivity * (1 - q2) * memory
    return turning * sum(ends) / 2 + steady * (after_full - turning)
