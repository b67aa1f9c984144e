"""How a join on Spark is to be run: validated once, then never changed."""

from __future__ import annotations

from dataclasses import dataclass

from earlyjoin.algorithms.output import DEFAULT_SUFFIXES
from earlyjoin.errors import InputError
from earlyjoin.state.budget import MemoryLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """Everything about a join on Spark that is not its inputs and its condition."""

    how: str = "inner"
    suffixes: tuple[str, str] = DEFAULT_SUFFIXES
    memory: str | int | MemoryLimit | None = None
    """Of the driver's process: blocks of the early phase and batches on their way; executors have Spark's own."""
    seed: int = 0
    early: bool = True
    """Join a few blocks at once, before Spark's join delivers?"""
    early_share: float = 0.04
    """Time for random blocks, as a part of the time that Spark's join is expected to take."""

    driver_nbytes: int = 16 * 2**20
    """Inputs of a join without an equality that have no more than this together, as Spark counts them, are fetched and
    joined in the driver; 0: never."""

    def __post_init__(self) -> None:
        MemoryLimit.parse(self.memory)
        if not self.early_share >= 0:
            raise InputError(f"early_share must be 0 or more, got {self.early_share!r}")
        if self.driver_nbytes < 0:
            raise InputError(f"driver_nbytes must be 0 or more, got {self.driver_nbytes!r}")
        if len(self.suffixes) != 2 or self.suffixes[0] == self.suffixes[1]:
            raise InputError(f"suffixes must be two different texts, got {self.suffixes!r}")
