"""When packets arrive: the networks of the papers (reliable, slow, bursty, stalling) as small processes.

Each gives the seconds between consecutive packets; the first gap is the wait for the first packet. Asking the same
process with an equal generator for more gaps only appends to what it gave for fewer.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from earlyjoin.errors import InputError

Gaps = npt.NDArray[np.float64]


class Arrivals(Protocol):
    """When the packets of a simulated network arrive."""

    def gaps_s(self, rng: np.random.Generator, n: int) -> Gaps:
        """The first ``n`` gaps in seconds."""


def _check(name: str, value: float, low: float = 0.0) -> None:
    if not (math.isfinite(value) and value >= low):
        raise InputError(f"arrivals: {name} must be a number from {low:g} on, got {value}")


@dataclass(frozen=True)
class Reliable:
    """A packet every ``gap_s`` seconds."""

    gap_s: float

    def __post_init__(self) -> None:
        _check("gap_s", self.gap_s)

    def gaps_s(self, rng: np.random.Generator, n: int) -> Gaps:
        """The first ``n`` gaps in seconds."""
        return np.full(n, self.gap_s)


@dataclass(frozen=True)
class Exponential:
    """Independent packets: gaps are exponentially distributed around ``mean_s``."""

    mean_s: float

    def __post_init__(self) -> None:
        _check("mean_s", self.mean_s)

    def gaps_s(self, rng: np.random.Generator, n: int) -> Gaps:
        """The first ``n`` gaps in seconds."""
        return rng.exponential(self.mean_s, n)


@dataclass(frozen=True)
class Zipf:
    """Gaps between ``low_s`` and ``high_s``, many short and few long: Zipf over evenly spaced steps."""

    low_s: float
    high_s: float
    exponent: float = 1.0
    steps: int = 1000

    def __post_init__(self) -> None:
        _check("low_s", self.low_s)
        _check("high_s", self.high_s, self.low_s)
        _check("exponent", self.exponent)
        _check("steps", self.steps, 2)

    @cached_property
    def _distribution(self) -> Gaps:
        return np.cumsum(np.arange(1, self.steps + 1, dtype=np.float64) ** -self.exponent)

    def gaps_s(self, rng: np.random.Generator, n: int) -> Gaps:
        """The first ``n`` gaps in seconds."""
        ends = self._distribution
        rank = np.minimum(np.searchsorted(ends, rng.random(n) * ends[-1], side="right"), self.steps - 1)
        gaps: Gaps = self.low_s + (self.high_s - self.low_s) * rank / (self.steps - 1)
        return gaps


@dataclass(frozen=True)
class Bursty:
    """About ``burst`` packets ``gap_s`` apart, then about ``pause_s`` of silence, again and again.

    Lengths of bursts and pauses are uniform between half and one and a half times their mean.
    """

    gap_s: float
    burst: int
    pause_s: float

    def __post_init__(self) -> None:
        _check("gap_s", self.gap_s)
        _check("burst", self.burst, 1)
        _check("pause_s", self.pause_s)

    def gaps_s(self, rng: np.random.Generator, n: int) -> Gaps:
        """The first ``n`` gaps in seconds."""
        lengths_rng, pauses_rng = rng.spawn(2)  # apart, so that more packets do not change the pauses drawn before
        shortest = max(1, math.ceil(self.burst / 2))
        count = n // shortest + 1
        lengths = lengths_rng.integers(shortest, max(shortest, self.burst * 3 // 2), count, endpoint=True)
        pauses = pauses_rng.uniform(0.5, 1.5, count) * self.pause_s
        gaps = np.full(n, self.gap_s, dtype=np.float64)
        ends = np.cumsum(lengths)
        inside = ends < n
        gaps[ends[inside]] += pauses[inside]
        return gaps


@dataclass(frozen=True)
class Stalling:
    """Another process with one long silence after ``at_packet`` packets have arrived."""

    inner: Arrivals
    at_packet: int
    stall_s: float

    def __post_init__(self) -> None:
        _check("at_packet", self.at_packet)
        _check("stall_s", self.stall_s)

    def gaps_s(self, rng: np.random.Generator, n: int) -> Gaps:
        """The first ``n`` gaps in seconds."""
        gaps = self.inner.gaps_s(rng, n).copy()
        gaps[self.at_packet : self.at_packet + 1] += self.stall_s
        return gaps


GRAMMAR = (
    "reliable:GAP, exponential:MEAN, zipf:LOW:HIGH[:EXPONENT], bursty:GAP:BURST:PAUSE or stall:PROCESS@PACKET:SILENCE, "
    "with times such as 500us, 1ms, 2s or 1min; for example bursty:1ms:50:200ms or stall:reliable:1ms@20:2s"
)
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(us|ms|s|min)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}


def parse_arrivals(text: str) -> Arrivals:
    """The process that a text such as ``bursty:1ms:50:200ms`` describes; see :data:`GRAMMAR`.

    >>> parse_arrivals("stall:zipf:1ms:30ms@20:2s")
    Stalling(inner=Zipf(low_s=0.001, high_s=0.03, exponent=1.0, steps=1000), at_packet=20, stall_s=2.0)
    """
    try:
        return _parse(text.strip().lower())
    except InputError as error:
        raise InputError(f"arrivals {text!r}: {error}; write {GRAMMAR}") from None


def _parse(text: str) -> Arrivals:
    kind, _, rest = text.partition(":")
    if kind == "stall":
        inner, at, when = rest.rpartition("@")
        if not at:
            raise InputError("stall needs @PACKET:SILENCE at its end")
        packet, silence = _parts("stall ... @", when, 2, 2)
        return Stalling(_parse(inner), _whole(packet), _duration_s(silence))
    if kind == "reliable":
        (gap,) = _parts(kind, rest, 1, 1)
        return Reliable(_duration_s(gap))
    if kind == "exponential":
        (mean,) = _parts(kind, rest, 1, 1)
        return Exponential(_duration_s(mean))
    if kind == "zipf":
        low, high, *more = _parts(kind, rest, 2, 3)
        exponent = _number(more[0]) if more else 1.0
        return Zipf(_duration_s(low), _duration_s(high), exponent)
    if kind == "bursty":
        gap, burst, pause = _parts(kind, rest, 3, 3)
        return Bursty(_duration_s(gap), _whole(burst), _duration_s(pause))
    raise InputError(f"unknown process {kind!r}")


def _parts(kind: str, rest: str, least: int, most: int) -> list[str]:
    parts = rest.split(":") if rest else []
    if not least <= len(parts) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise InputError(f"{kind} takes {wanted} value{'s' * (wanted != '1')}, got {len(parts)}")
    return parts


def _duration_s(text: str) -> float:
    if text == "0":
        return 0.0
    found = _DURATION.fullmatch(text)
    if not found:
        raise InputError(f"{text!r} is not a time with its unit")
    return float(found[1]) * _SECONDS[found[2]]


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise InputError(f"{text!r} is not a whole number")
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{text!r} is not a number") from None
