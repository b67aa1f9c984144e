"""How HMJ and RPJ are set: which rows leave, how runs are merged, what pages cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from earlyjoin.algorithms.hashing.arrival_statistics import DECAY, UNIT_ROWS
from earlyjoin.algorithms.hashing.flush_policies import HASH_MERGE_POLICIES
from earlyjoin.algorithms.hashing.rpj_formulas import PageCosts
from earlyjoin.algorithms.hashing.settings import HashSettings
from earlyjoin.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSettings(HashSettings):
    """What an algorithm with sorted runs is built with."""

    page_part: ClassVar[int] = 24
    flush: str = "adaptive"
    """HMJ's policy."""
    fan_in: int = 10
    """Most runs of a side that one merge takes (F of the papers) while rows still arrive."""
    flush_fraction: float = 0.05
    """Part of the rows in memory that leaves at once: nflush of RPJ."""
    least_run: float = 0.25
    """RPJ: no run is shorter than this part of nflush while longer ones can leave; memory in rows has no such limit."""
    unit_rows: int = UNIT_ROWS
    """Arrivals that make a time unit of RPJ's statistics."""
    decay: float = DECAY
    """lambda: what recent arrivals keep of their weight when a time unit is over."""
    random_cost: float = PageCosts().random
    """What a page costs after a seek."""
    sequential_cost: float = PageCosts().sequential
    """What a page costs right behind the last."""

    def __post_init__(self) -> None:
        # Not super(): dataclasses with slots are made anew, and a bare super() would look for the old class.
        HashSettings.__post_init__(self)
        if self.flush not in HASH_MERGE_POLICIES:
            known = ", ".join(HASH_MERGE_POLICIES)
            raise InputError(f"unknown flush policy {self.flush!r}; choose one of: {known}")
        if self.fan_in < 2:
            raise InputError(f"fan_in must be 2 or more, got {self.fan_in}; a merge needs two runs")
        if not 0 < self.flush_fraction <= 1:
            raise InputError(f"flush_fraction must be above 0 and at most 1, got {self.flush_fraction}")
        if not 0 <= self.least_run <= 1:
            raise InputError(f"least_run must lie between 0 and 1, got {self.least_run}")
        if self.unit_rows < 1 or not 0 <= self.decay < 1:
            raise InputError(
                f"unit_rows must be 1 or more and decay at least 0 and below 1, got {self.unit_rows} and {self.decay}"
            )
        if not 0 < self.sequential_cost <= self.random_cost:
            raise InputError("sequential_cost must be above 0 and not above random_cost")
