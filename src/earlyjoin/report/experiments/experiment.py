"""What an experiment is: a figure of a paper, run again, with its curves and its numbers beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Curve:
    """Points to be joined by a line."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True, slots=True)
class Panel:
    """One diagram."""

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    log: tuple[bool, bool] = (False, False)
    band: tuple[Sequence[float], Sequence[float], Sequence[float]] | None = None
    """x, low and high of a shaded region."""
    bars: tuple[str, ...] = ()
    """Names of groups of bars: then each curve gives one bar to each group instead of a line."""
    most_y: float | None = None
    """Where the axis ends, for diagrams that are to be compared."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number beside the paper's."""

    what: str
    paper: str
    measured: float
    ratio: float | None = None
    """Measured over the paper's, where the paper has a number."""


@dataclass(slots=True)
class Findings:
    """What an experiment found."""

    panels: list[Panel] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "panels": [asdict(panel) for panel in self.panels],
            "figures": [asdict(figure) for figure in self.figures],
            "notes": self.notes,
        }


@dataclass(frozen=True, slots=True)
class Experiment:
    """A named experiment; ``scale`` 1 is the size of the paper or of the real data."""

    name: str
    title: str
    paper: str
    run: Callable[[float, int], Findings]
    """Takes the scale and a seed."""
    default_scale: float = 1.0
