"""How the algorithms on the partitioned hash table are set: partitions, pages, roles of the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from earlyjoin.algorithms.options import OperatorOptions, option
from earlyjoin.errors import InputError
from earlyjoin.state.budget import MemoryLimit

PAGE_ROWS = 20
"""Rows of a page when memory is counted in rows (EHJ section 5.2)."""
_FEWEST, _MOST = 4, 64
_UNKNOWN = 16
_ROOM = 2.0
"""Partitions for each time that the smaller input is larger than memory: keys, stamps and indexes take room too."""
_LEAST_ROWS, _LEAST_BYTES = 8, 32 * 1024
"""What a partition should be able to hold in memory: very small memories have fewer partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HashSettings(OperatorOptions):
    """What can be chosen about the algorithms on the partitioned hash table."""

    page_part: ClassVar[int] = 2
    """How many pages the memory for reading is meant to hold, if memory is counted in bytes."""
    partitions: int | None = option(
        None, "number of partitions (auto: from the memory and the expected size)", least=1, most=4096
    )
    hashing: str = option("mixed", "how keys are spread: mixed, or the key modulo the partitions", of=("mixed", "mod"))
    page_rows: int | None = option(
        None, "rows of a page as the counters count pages (auto: pages as they are written)", least=1
    )
    one_side: str | None = option(None, "the input whose keys occur only once (a 1:N join)", of=("left", "right"))
    build_side: str | None = option(
        None, "the input to keep in memory if possible, R in the papers (auto: the smaller)", of=("left", "right")
    )
    hand_over: str = option(
        "step", "when work on disk makes way for rows that have come: after a step, or at the end of the task (RPJ)",
        of=("step", "task"),
    )  # fmt: skip

    @property
    def pages_read(self) -> int:
        """How many pages the memory for reading is meant to hold, if memory is counted in rows."""
        return self.page_part

    def check(self) -> None:
        """The one-side is what is kept in memory."""
        if self.one_side is not None and self.build_side not in (None, self.one_side):
            raise InputError(
                f"option build-side is {self.build_side}, but of a 1:N join the one-side is kept in memory; "
                f"leave build-side out, or set it to {self.one_side}"
            )


def side_number(name: str | None) -> int | None:
    """0 for "left", 1 for "right"."""
    return None if name is None else ("left", "right").index(name)


def automatic_partitions(memory: MemoryLimit, expected: int | None) -> int:
    """So many that a partition of the smaller input (rows, or bytes, as memory counts) is likely to fit at clean-up.

    Few partitions mean large slices and large writes (EHJ section 5.2 found 11 best in most cases).
    """
    whole, least = (memory.rows, _LEAST_ROWS) if memory.rows is not None else (memory.bytes or 1, _LEAST_BYTES)
    wanted = _UNKNOWN if expected is None else int(np.clip(np.ceil(_ROOM * expected / whole), _FEWEST, _MOST))
    return max(2, min(wanted, whole // least))
