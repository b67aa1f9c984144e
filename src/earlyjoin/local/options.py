"""How a join is to be run: validated once, then never changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.aggregates import AggregateOf, check_aggregates
from earlyjoin.algorithms.options import GivenOptions
from earlyjoin.algorithms.output import DEFAULT_SUFFIXES
from earlyjoin.algorithms.protocol import DEFAULT_OUTPUT_ROWS
from earlyjoin.algorithms.reading import check_reading
from earlyjoin.errors import InputError
from earlyjoin.local.estimating.running import EstimatorName
from earlyjoin.state.budget import MemoryLimit

Driving = Literal["auto", "pull", "push"]
"""``pull``: inputs are read by the ratio ``reading``; ``push``: as they come; ``auto``: push when one is live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOptions:
    """Everything about a join that is not its inputs and its condition."""

    how: str = "inner"
    algorithm: str = "auto"
    memory: str | int | MemoryLimit | None = None
    suffixes: tuple[str, str] = DEFAULT_SUFFIXES
    reading: str = "auto"
    """Rows of the first input for rows of the second ("5:1") when pull-driven; "auto" favours the smaller one."""
    driving: Driving = "auto"
    wait_ms: float = 25.0
    """Silence of the inputs that starts the reactive phase."""
    batch_rows: int = DEFAULT_OUTPUT_ROWS
    """Most rows in a batch, of input and of output; a small memory makes them smaller."""
    spill_directory: str | os.PathLike[str] | None = None
    seed: int = 0
    aggregates: Mapping[str, AggregateOf] = field(default_factory=dict)
    """Sums, means and counts over the result, by name."""
    estimator: EstimatorName = "honest"
    """Whose intervals: "honest" ones, or the "paper" 's (PMJ, Theorem 3), which are too narrow under skew."""
    operator: GivenOptions = None
    """The algorithm's own options, such as ``{"fan_in": 4}``."""

    def __post_init__(self) -> None:
        MemoryLimit.parse(self.memory)
        check_aggregates(self.aggregates)
        if self.estimator not in get_args(EstimatorName):
            raise InputError(
                f"unknown estimator {self.estimator!r}; choose one of: {', '.join(get_args(EstimatorName))}"
            )
        check_reading(self.reading)
        if self.algorithm != "auto":
            object.__setattr__(self, "operator", registry.options_of(self.algorithm, self.operator))
        elif self.operator:
            which = "options belong to one algorithm: say which, with"
            raise InputError(f"{which} algorithm=NAME", command=f"{which} --algorithm NAME")
        if self.driving not in get_args(Driving):
            raise InputError(f"unknown driving {self.driving!r}; choose one of: {', '.join(get_args(Driving))}")
        if not self.wait_ms >= 0:
            raise InputError(f"wait_ms must be 0 or more, got {self.wait_ms!r}")
        if self.batch_rows < 1:
            raise InputError(f"batch_rows must be 1 or more, got {self.batch_rows!r}")
        if len(self.suffixes) != 2 or self.suffixes[0] == self.suffixes[1]:
            raise InputError(f"suffixes must be two different texts, got {self.suffixes!r}")
