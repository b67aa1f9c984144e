"""What every estimator has in common: what it estimates, what it returns, how it is merged and saved.

An estimator gets what was joined so far (``update``), and tells the total with an interval (``get``). Estimators of the
same thing add up: ``a + b`` knows what both know. ``to_values`` and ``from_values`` are plain numbers for JSON.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self

from earlyjoin.algorithms.estimation.quantiles import positive_interval

TotalRows = tuple[int | None, int | None]
"""Rows of the two inputs, None where unknown."""
Weights = tuple[float, float]
"""A linear combination of (1, value) of a matching pair."""


class Aggregate(StrEnum):
    """What is asked about the result: its number of rows, or the sum or the mean of an expression over its rows.

    COUNT of an expression counts the matches where it is not null: update with those alone.
    """

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and the interval that contains it with this confidence. ``rows`` is the aggregate when one is asked."""

    rows: float
    low: float
    high: float
    confidence: float

    def to_dict(self) -> dict[str, float]:
        """Plain values."""
        return asdict(self)


class Estimator(ABC):
    """The total over all pairs of rows, estimated from the pairs joined so far."""

    _saved: tuple[str, ...]
    """Names of the attributes that are sums: merging adds them, saving keeps them."""

    def __init__(
        self,
        total_rows: TotalRows = (None, None),
        *,
        aggregate: Aggregate | str = Aggregate.COUNT,
        confidence: float = 0.95,
    ) -> None:
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
        self.total_rows = total_rows
        self.aggregate = Aggregate(aggregate)
        self.confidence = confidence
        self._start()

    @abstractmethod
    def _start(self) -> None:
        """Set every sum to zero."""

    @property
    @abstractmethod
    def reason(self) -> str | None:
        """Why ``get`` returns None; None when it does not."""

    @abstractmethod
    def get(self) -> Estimate | None:
        """The estimate by now, or None; ``reason`` says why."""

    def __add__(self, other: Self) -> Self:
        if (self.aggregate, self.confidence) != (other.aggregate, other.confidence):
            raise ValueError("estimators of different things cannot be merged")
        merged = type(self)(
            _agreed(self.total_rows, other.total_rows), aggregate=self.aggregate, confidence=self.confidence
        )
        for name in self._saved:
            setattr(merged, name, _added(getattr(self, name), getattr(other, name)))
        return merged

    def to_values(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {
            "total_rows": list(self.total_rows),
            "aggregate": self.aggregate.value,
            "confidence": self.confidence,
            **{name: getattr(self, name) for name in self._saved},
        }

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Self:
        """The inverse of ``to_values``."""
        left, right = values["total_rows"]
        made = cls((left, right), aggregate=values["aggregate"], confidence=values["confidence"])
        for name in cls._saved:
            value = values[name]
            setattr(made, name, list(value) if isinstance(value, list) else value)
        return made

    @property
    def total_pairs(self) -> float:
        """Pairs of rows in all, infinite where a number of rows is unknown."""
        left, right = self.total_rows
        return math.inf if left is None or right is None else float(left) * right

    def _unknown_totals(self) -> str | None:
        if self.aggregate is Aggregate.AVG or None not in self.total_rows:
            return None
        side = ("left", "right")[self.total_rows.index(None)]
        return f"the number of rows of the {side} input is unknown, so there is no total to estimate"


def weights(aggregate: Aggregate, mean_count: float, mean_value: float) -> Weights:
    """Which combination of (1, value) has the variance that the aggregate needs; of AVG, a ratio, to first order."""
    if aggregate is Aggregate.COUNT:
        return (1.0, 0.0)
    return (0.0, 1.0) if aggregate is Aggregate.SUM else (-mean_value / mean_count, 1.0)


def quadratic(moments: list[float], of: Weights) -> float:
    """The second moment of a combination, given those of (1·1, 1·value, value·value)."""
    return of[0] ** 2 * moments[0] + 2 * of[0] * of[1] * moments[1] + of[1] ** 2 * moments[2]


def symmetric_interval(center: float, variance: float, quantile: float) -> tuple[float, float]:
    """``center ± quantile * sqrt(variance)``."""
    half = quantile * math.sqrt(max(0.0, variance))
    return center - half, center + half


def scaled_interval(
    aggregate: Aggregate,
    mean_count: float,
    mean_value: float,
    variance: float,
    total_pairs: float,
    quantile: float,
    *,
    positive: bool,
) -> tuple[float, float, float]:
    """(center, low, high) of the aggregate from means a pair and the variance of the mean of its combination.

    ``positive`` says that no value below 0 was seen: then the interval is skewed, and has no part below 0.
    """
    if aggregate is Aggregate.AVG:
        center = mean_value / mean_count
        return center, *symmetric_interval(center, variance / mean_count**2, quantile)
    mean = mean_count if aggregate is Aggregate.COUNT else mean_value
    center, spread = mean * total_pairs, variance * total_pairs**2
    if positive and center > 0:
        return center, *positive_interval(center, spread, quantile)
    return center, *symmetric_interval(center, spread, quantile)


def _agreed(one: TotalRows, other: TotalRows) -> TotalRows:
    if any(None not in pair and pair[0] != pair[1] for pair in zip(one, other, strict=True)):
        raise ValueError(f"estimators of inputs of {one} and of {other} rows cannot be merged")
    left, right = (b if a is None else a for a, b in zip(one, other, strict=True))
    return left, right


def _added(one: Any, other: Any) -> Any:
    return [a + b for a, b in zip(one, other, strict=True)] if isinstance(one, list) else one + other
