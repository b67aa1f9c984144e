"""How the algorithms on the partitioned hash table are set: partitions, pages, roles of the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from earlyjoin.errors import InputError
from earlyjoin.state.budget import MemoryLimit

Hashing = Literal["mixed", "mod"]
"""``mixed``: any key, spread evenly; ``mod``: the first key word modulo the number of partitions (RPJ section 6)."""

PAGE_ROWS = 20
"""Rows of a page when memory is counted in rows (EHJ section 5.2)."""
_FEWEST, _MOST = 8, 64
_UNKNOWN = 16
_LEAST_ROWS, _LEAST_BYTES = 8, 32 * 1024
"""What a partition should be able to hold in memory: very small memories have fewer partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HashSettings:
    """What an algorithm is built with; a user's options end up here."""

    page_part: ClassVar[int] = 2
    """How many pages the memory for reading is meant to hold."""
    partitions: int | None = None
    """Number of partitions; None chooses from the memory and the expected size."""
    hashing: Hashing = "mixed"
    page_rows: int | None = None
    """Rows of a page as the counters count pages; None counts the pages that are really written."""
    one_side: int | None = None
    """The side whose keys occur once (1:N); None: keys may repeat on both sides (N:M)."""
    build_side: int | None = None
    """The side called R in the papers, which is kept in memory if possible; None: the smaller one, or the left."""

    def __post_init__(self) -> None:
        if self.partitions is not None and self.partitions < 1:
            raise InputError(f"the number of partitions must be 1 or more, got {self.partitions}")
        if self.page_rows is not None and self.page_rows < 1:
            raise InputError(f"page_rows must be 1 or more, got {self.page_rows}")
        for name, side in (("one_side", self.one_side), ("build_side", self.build_side)):
            if side not in (None, 0, 1):
                raise InputError(f"{name} must be 0 (left) or 1 (right), got {side}")


def automatic_partitions(memory: MemoryLimit, expected: int | None) -> int:
    """So many that a partition of the smaller input (rows, or bytes, as memory counts) is likely to fit at clean-up.

    Few partitions mean large slices and large writes (EHJ section 5.2 found 11 best in most cases).
    """
    whole, least = (memory.rows, _LEAST_ROWS) if memory.rows is not None else (memory.bytes or 1, _LEAST_BYTES)
    wanted = _UNKNOWN if expected is None else int(np.clip(np.ceil(2.5 * expected / whole), _FEWEST, _MOST))
    return max(2, min(wanted, whole // least))
