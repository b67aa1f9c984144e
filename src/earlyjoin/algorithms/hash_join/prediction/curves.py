"""Results over time and I/O that a hash join is expected to show, from sizes, memory and reading strategy alone.

Shares of the result need no selectivity: it cancels out. The formulas assume that both inputs come in random order and
that keys are spread evenly (EHJ section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from earlyjoin.algorithms.hash_join.prediction import formulas as f
from earlyjoin.algorithms.hash_join.prediction.one_to_many_formulas import (
    expected_tuple_ios_one_to_many,
    rows_until_full,
)
from earlyjoin.algorithms.protocol import Formulas


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is known before a join runs; R is the input that the algorithm favours."""

    formulas: Formulas | None
    """Those that the algorithm declares."""
    r: float
    s: float
    memory_rows: float
    q1: float = 0.5
    """Part of the rows that come from R until memory is full."""
    q2: float = 0.5
    """And from then on."""
    one_to_many: bool = False


@dataclass(frozen=True, slots=True)
class Milestone:
    """How much of the result is expected when so many rows have been read."""

    when: str
    rows_read: float
    share: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """Milestones in the order in which they come, and rows written and read again; None where no formula is known."""

    milestones: tuple[Milestone, ...]
    tuple_ios: float | None

    def text(self, results: float | None = None) -> str:
        """In words; with the size of the result, in rows as well."""
        parts = [f"{_share(m.share, results)} when {m.when} ({m.rows_read:,.0f} rows read)" for m in self.milestones]
        words = "; ".join(parts) + (", the rest at clean-up" if self.milestones[-1].share < 0.9995 else "")
        if self.tuple_ios is not None:
            words += f"; about {self.tuple_ios:,.0f} rows to disk and back, counting both ways"
        return words


def predict(given: Situation) -> Prediction | None:
    """What the formulas say; None for an algorithm that they do not describe or inputs without rows."""
    if given.formulas is None or min(given.r, given.s, given.memory_rows) <= 0:
        return None
    size = f.JoinSize(r=given.r, s=given.s, selectivity=min(1.0, 1 / given.r))
    whole = given.r + given.s
    full = rows_until_full(given.q1, given.memory_rows, size) if given.one_to_many else given.memory_rows
    if full >= whole:
        return Prediction((Milestone("both inputs are read, all in memory", whole, 1.0),), 0.0)
    early = Milestone("memory is full", full, f.results_in_memory(full, given.q1, size) / size.results)
    if given.formulas is Formulas.FREEZING:
        return _freezing(given, size, early)
    before = f.results_before_cleanup(given.q1, given.memory_rows, size) / size.results
    read = Milestone("both inputs are read", whole, max(before, early.share))
    everything = 2 * whole
    ios = everything if given.formulas is Formulas.EMPTYING else everything - 2 * given.memory_rows
    known = given.formulas is not Formulas.RESULTS_ONLY and not given.one_to_many
    return Prediction((early, read), ios if known else None)


def _freezing(given: Situation, size: f.JoinSize, early: Milestone) -> Prediction:
    memory, q1, q2 = given.memory_rows, given.q1, given.q2
    left = f.rows_of_s_left(q1, q2, memory, size)
    ended_at = size.r + size.s - left
    flushing = f.results_while_flushing(max(0.0, ended_at - memory), q1, q2, memory, size) / size.results
    ended = min(1.0, early.share + flushing)
    read = min(1.0, ended + f.kept_fraction(memory, size) * left / size.s)
    milestones = [early, Milestone("both inputs are read", size.r + size.s, read)]
    if left > 0:
        milestones.insert(1, Milestone("the smaller input is read", ended_at, ended))
    if given.one_to_many:
        ios = expected_tuple_ios_one_to_many(q1, q2, memory, size)
    else:
        ios = f.expected_tuple_ios(q1, q2, memory, size)
    return Prediction(tuple(milestones), max(0.0, ios))


def shares_of(first: Sequence[int], later: Sequence[int], build_side: int) -> tuple[float, float]:
    """``q1`` and ``q2`` of ratios that are given for the left and the right input.

    >>> shares_of((1, 1), (1, 3), 1)
    (0.5, 0.75)
    """
    q1, q2 = (f.share(ratio[build_side], ratio[1 - build_side]) for ratio in (first, later))
    return q1, q2


def _share(share: float, results: float | None) -> str:
    percent = f"{100 * share:.1f}".rstrip("0").rstrip(".")
    return f"{percent} % of the result" + (f", {share * results:,.0f} rows," if results is not None else "")
