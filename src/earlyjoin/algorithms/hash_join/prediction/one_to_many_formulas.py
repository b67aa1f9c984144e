"""The counterparts of EHJ's formulas for 1:N joins, where a row of S is of no use once it has met its only partner.

EHJ gives the number of results (formula 2) and says that matched rows of S are dropped; what follows from that for the
moment when memory is full and for the I/O is worked out here. R is the one-side; keys are uniform, and R may have rows
without partner, so a row of S finds a partner among r rows of R with probability ``matching · r / |R|``.

Half of the early results come from rows of S that find R in memory and are never inserted; the other half from rows of
R that find S, whose place in memory is free again only when its partition is flushed. ``freed=True`` asks what would be
if it were free at once. The numbers of discards in EHJ figure 6 are those of the first kind.
"""

from __future__ import annotations

import math

from earlyjoin.algorithms.hash_join.prediction.formulas import (
    JoinSize,
    kept_fraction,
    results_of_uniform_ones,
    rows_of_s_left,
)


def rows_until_full(q: float, memory: float, size: JoinSize, *, matching: float = 1.0, freed: bool = False) -> float:
    """Rows read when memory is full: every other result (every result if ``freed``) saves the place of one row of S.

    After k rows there are ``matching · q (1 − q) k² / |R|`` results; infinite when memory is never full.

    >>> round(rows_until_full(0.5, 75_000, JoinSize(r=150_000, s=1_500_000, selectivity=1 / 150_000)))
    80385
    """
    bend = matching * q * (1 - q) / size.r * (1.0 if freed else 0.5) if size.r else 0.0
    if bend == 0:
        return memory
    root = 1 - 4 * bend * memory
    return (1 - math.sqrt(root)) / (2 * bend) if root >= 0 else math.inf


def results_until_full(q: float, memory: float, size: JoinSize, *, matching: float = 1.0, freed: bool = False) -> float:
    """Formula 2 at the moment when memory is full."""
    k = min(rows_until_full(q, memory, size, matching=matching, freed=freed), size.r / q if q else math.inf)
    return results_of_uniform_ones(min(size.r, k * q), min(size.s, k * (1 - q)), size.r, matching=matching)


def matched_while_flushing(q1: float, q2: float, memory: float, size: JoinSize, *, matching: float = 1.0) -> float:
    """Rows of S that meet their partner between full memory and the end of R, under biased flushing.

    R in memory grows from its share in phase 1 to what stays for good; a row of S meets whichever part is there.
    """
    k = rows_until_full(q1, memory, size, matching=matching)
    if math.isinf(k) or k * q1 >= size.r or q2 == 0:
        return 0.0
    held = k * q1
    growing = max(0.0, min(memory, size.r) - held)
    reads_of_s = (size.r - held) * (1 - q2) / q2
    while_growing = min(reads_of_s, growing * (1 - q2) / q2)
    mean = (held + min(memory, size.r)) / 2
    met = while_growing * mean + (reads_of_s - while_growing) * min(memory, size.r)
    return matching * met / size.r


def rows_never_written(
    q1: float, q2: float, memory: float, size: JoinSize, *, matching: float = 1.0, partitions: int | None = None
) -> float:
    """Rows of S that never go to disk: EHJ's inserts avoided and discards together."""
    early = results_until_full(q1, memory, size, matching=matching)
    flushing = matched_while_flushing(q1, q2, memory, size, matching=matching)
    kept = kept_fraction(memory, size, partitions)
    full = min(rows_until_full(q1, memory, size, matching=matching), size.r / q1 if q1 else math.inf)
    return early + flushing + kept * rows_of_s_left(q1, q2, full, size)


def expected_tuple_ios_one_to_many(
    q1: float, q2: float, memory: float, size: JoinSize, *, matching: float = 1.0, partitions: int | None = None
) -> float:
    """Rows written and read in all by EHJ for a 1:N join, inputs not counted."""
    never = rows_never_written(q1, q2, memory, size, matching=matching, partitions=partitions)
    return max(0.0, 2 * (size.r * (1 - kept_fraction(memory, size, partitions)) + size.s - never))
