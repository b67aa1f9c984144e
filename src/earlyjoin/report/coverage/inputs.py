"""Pairs of inputs whose join has a known size: rows have a key, and left rows a value to be summed over the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LEFT_ROWS, RIGHT_ROWS = 20_000, 30_000


@dataclass(frozen=True, slots=True)
class InputPair:
    """A pair of inputs: how their keys are drawn, and how far apart keys may be to match."""

    name: str
    draw: Callable[[np.random.Generator], tuple[Ints, Ints]]
    domain: int
    eps: int = 0

    def drawn(self, seed: int) -> DrawnInputs:
        """Keys, values and their random order by one seed."""
        random = np.random.default_rng(seed)
        left, right = (random.permutation(side) for side in self.draw(random))
        # Values differ from row to row and grow with the key: so they have to do with the number of matches.
        values = random.lognormal(0, 0.5, len(left)) * (1 + left / self.domain)
        return DrawnInputs(self, (left, right), values)

    def near(self, by_key: Ints | Floats) -> Floats:
        """For each key, the sum over all keys that match it."""
        if self.eps == 0:
            return by_key.astype(np.float64)
        sums = np.concatenate(([0.0], np.cumsum(by_key)))
        at = np.arange(self.domain)
        high, low = np.minimum(at + self.eps + 1, self.domain), np.maximum(at - self.eps, 0)
        near: Floats = sums[high] - sums[low]
        return near


@dataclass(frozen=True, slots=True)
class DrawnInputs:
    """The two inputs of one run, in the order in which they arrive."""

    inputs: InputPair
    keys: tuple[Ints, Ints]
    values: Floats
    """Of the left rows."""

    def truth(self) -> dict[str, float]:
        """COUNT and SUM over the whole result."""
        partners = self.inputs.near(np.bincount(self.keys[1], minlength=self.inputs.domain))[self.keys[0]]
        return {"count": float(partners.sum()), "sum": float(np.sum(partners * self.values))}


def _uniform(random: np.random.Generator) -> tuple[Ints, Ints]:
    return random.integers(0, 2_000, LEFT_ROWS), random.integers(0, 2_000, RIGHT_ROWS)


def _zipf(random: np.random.Generator) -> tuple[Ints, Ints]:
    """Zipf(1) over 2,000 keys, the same keys frequent on both sides."""
    ends = np.cumsum(1 / np.arange(1, 2_001))
    left, right = (np.searchsorted(ends / ends[-1], random.random(rows)) for rows in (LEFT_ROWS, RIGHT_ROWS))
    return left.astype(np.int64), right.astype(np.int64)


def _correlated(random: np.random.Generator) -> tuple[Ints, Ints]:
    """Values in 40 clumps of very different size, the same for both sides: dense rows match dense rows (band join)."""
    shares = random.lognormal(0, 1, 40)
    centers = random.uniform(500, 19_500, 40)
    drawn = []
    for rows in (LEFT_ROWS, RIGHT_ROWS):
        clump = random.choice(40, rows, p=shares / shares.sum())
        drawn.append(np.clip(random.normal(centers[clump], 60), 0, 19_999).astype(np.int64))
    return drawn[0], drawn[1]


def _sparse(random: np.random.Generator) -> tuple[Ints, Ints]:
    """Unique keys on both sides, 10,000 of them in both: few matches for a long time."""
    left = random.permutation(LEFT_ROWS)
    right = LEFT_ROWS // 2 + random.permutation(RIGHT_ROWS)
    return left.astype(np.int64), right.astype(np.int64)


SCENARIOS = (
    InputPair("uniform", _uniform, 2_000),
    InputPair("Zipf(1)", _zipf, 2_000),
    InputPair("correlated", _correlated, 20_000, eps=5),
    InputPair("sparse", _sparse, 40_000),
)
