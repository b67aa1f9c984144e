"""How HMJ and RPJ are set: which rows leave, how runs are merged, what pages cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from earlyjoin.algorithms.hash_join.flush_policies import HASH_MERGE_POLICIES
from earlyjoin.algorithms.hash_join.rpj.arrival_statistics import DECAY, UNIT_ROWS
from earlyjoin.algorithms.hash_join.rpj.formulas import PageCosts
from earlyjoin.algorithms.hash_join.settings import HashSettings
from earlyjoin.algorithms.options import option
from earlyjoin.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSettings(HashSettings):
    """What an algorithm with sorted runs is built with."""

    page_part: ClassVar[int] = 16
    flush: str = option("adaptive", "which partitions leave memory (hmj)", of=tuple(HASH_MERGE_POLICIES))
    fan_in: int = option(10, "most runs of a side that one merge takes while rows still arrive", least=2)
    flush_fraction: float | None = option(
        None,
        "part of the rows in memory that leaves at once (rpj; auto: 0.05, of a memory in bytes 0.1)",
        least=0,
        most=1,
    )
    least_run: float = option(
        0.25, "shortest run, as part of what leaves at once; not for memory in rows (rpj)", least=0, most=1
    )
    unit_rows: int = option(UNIT_ROWS, "arrivals that make a time unit of the statistics (rpj)", least=1)
    decay: float = option(DECAY, "what recent arrivals keep of their weight after a time unit (rpj)", least=0, most=1)
    random_cost: float = option(PageCosts().random, "what a page costs after a seek (rpj)", least=0)
    sequential_cost: float = option(PageCosts().sequential, "what a page costs right behind the last (rpj)", least=0)
    wait_cost: float = option(
        0.0, "what it costs, in the same measure, to wait after a task for the next silence (rpj)", least=0
    )

    @property
    def pages_read(self) -> int:
        """A page of as many runs of both sides as a merge takes, two that are written, and some room."""
        return 3 * self.fan_in

    def check(self) -> None:
        """Nothing may be free of cost, and something has to leave."""
        # Not super(): dataclasses with slots are made anew, and a bare super() would look for the old class.
        HashSettings.check(self)
        if self.flush_fraction is not None and not self.flush_fraction > 0:
            raise InputError(f"option flush-fraction must be above 0, got {self.flush_fraction}")
        if not self.decay < 1:
            raise InputError(f"option decay must be below 1, got {self.decay}")
        if not 0 < self.sequential_cost <= self.random_cost:
            raise InputError("option sequential-cost must be above 0 and not above random-cost")
