"""The streams of RPJ section 6: which rows come, on which side, and when."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from earlyjoin.local.sources.arrivals import Arrivals, Reliable, Zipf
from earlyjoin.local.timed_inputs import Schedule

PARTITIONS = 20
ROWS = 2_000_000
VALUES = 10_000
"""The join attribute is one of 1 … 10,000; value modulo 20 is its partition."""
SILENCE_S = 0.025
"""A transmission counts as suspended when nothing has come for so long."""

NETWORKS: dict[str, Arrivals] = {"reliable": Reliable(1e-3), "unreliable": Zipf(1e-3, 0.03, exponent=1.0, steps=50)}
"""PAPER UNCLEAR: exponent and steps of the Zipf distribution are not given. With these the mean gap is 7 ms, so that
the transmission ends after about 14,000 s as in figure 10."""

Pattern = Literal["harmony", "reverse"]


class Setting(NamedTuple):
    """One of the four diagrams that each figure has."""

    pattern: Pattern
    speed: int
    """How many times as fast the first stream is."""

    @property
    def title(self) -> str:
        """As in the paper."""
        return f"{self.pattern.capitalize()} ({'same speed' if self.speed == 1 else 'different speeds'})"


SETTINGS = tuple(Setting(pattern, speed) for speed in (1, 5) for pattern in ("harmony", "reverse"))


def streams(setting: Setting, network: str, scale: float, seed: int) -> tuple[list[pa.RecordBatch], Schedule]:
    """Rows of both sides in the order of their arrival, and the schedule of all of them.

    A smaller scale has fewer rows of as many values: rows with one value fill as many pages, but match fewer rows.
    """
    rng = np.random.default_rng([seed, setting.speed])
    rows = max(1000, round(ROWS * scale))
    each = VALUES // PARTITIONS
    sides = (rng.random(rows) >= setting.speed / (setting.speed + 1)).astype(np.int64)
    first = np.linspace(0.01, 0.09, PARTITIONS)
    # PAPER UNCLEAR: "reverse" is printed as P(20 − j); partition 20 would have no counterpart, so it must be 21 − j.
    shares = (first, first if setting.pattern == "harmony" else first[::-1])
    tables = []
    for side in range(2):
        count = int((sides == side).sum())
        partition = rng.choice(PARTITIONS, count, p=shares[side] / shares[side].sum())
        value = partition + 1 + PARTITIONS * rng.integers(0, each, count)
        tables.append(pa.record_batch({"a": value, "id": np.arange(count)}))
    times_s = np.cumsum(NETWORKS[network].gaps_s(np.random.default_rng([seed, 6]), rows))
    return tables, Schedule(times_s - times_s[0], sides)
