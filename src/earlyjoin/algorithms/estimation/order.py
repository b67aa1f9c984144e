"""Is an input visibly not in random order? Then no interval of any estimator means anything.

Two tests on the values of a column, in the order of arrival, both on ranks and so for any type and distribution:

- *neighbours*: the correlation of each row with the next one, in slices of consecutive rows. Finds sorted and clustered
  inputs in the first slice (Wald and Wolfowitz 1943).
- *places*: do slices from different places of the input have the same distribution (Kruskal and Wallis 1952)? Finds
  inputs whose neighbours are shuffled but which drift or come in pieces.

Slices are thinly spread, so the work is bounded: one of SLICE rows, then a gap that grows with the rows seen. Limits
are far out, because the question is asked again and again: a false alarm in less than 1 % of runs.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from earlyjoin.algorithms.estimation.quantiles import chi_square_as_normal

Values = npt.NDArray[Any]
"""Numbers (float64) or byte strings (``S``)."""

SLICE = 256
KEPT = 16
"""Values kept of each slice for the second test."""
MOST_SLICES = 32
LEAST_SLICE = 64
_LEAST_GAP = 768
_GAP_SHARE = 1 / 8
_NEIGHBOURS_LIMIT = 5.0
_PLACES_LIMIT = 5.0
_TEXT_BYTES = 32


class OrderCheck:
    """Watches one column of one input.

    >>> check = OrderCheck()
    >>> check.update(np.arange(1000.0))
    >>> check.reason
    'neighbouring rows are alike: it comes sorted or clustered'
    """

    def __init__(self) -> None:
        self.neighbours = 0.0
        """Sum of standardised correlations of the slices."""
        self.slices = 0
        self._slice: list[Values] = []
        self._held = 0
        self._skip = 0
        self._seen = 0
        self._every = 1
        self._kept: list[Values] = []

    def wanted(self, rows: int) -> tuple[int, int]:
        """From where to where a batch of so many rows is wanted."""
        start = min(self._skip, rows)
        return start, min(rows, start + SLICE - self._held)

    def update(self, values: Values) -> None:
        """All values of the next rows, in order."""
        while len(values):
            start, stop = self.wanted(len(values))
            self.take(values[start:stop], stop)
            values = values[stop:]

    def take(self, values: Values, rows: int) -> None:
        """The wanted part of the next ``rows`` rows, which ends with them; nulls are missing, and it may be empty."""
        self._seen += rows
        self._skip = max(0, self._skip - rows)
        if not len(values):
            return
        self._slice.append(values)
        self._held += len(values)
        if self._held >= SLICE:
            self._finish_slice()

    @staticmethod
    def most_bytes(*, text: bool) -> int:
        """Bytes that a check can hold."""
        return (_TEXT_BYTES if text else 8) * (SLICE + KEPT * (MOST_SLICES + 1)) + 4096

    @property
    def reason(self) -> str | None:
        """What is wrong with the order; None when nothing can be seen."""
        total, count = self.neighbours, self.slices
        if count == 0 and self._held >= LEAST_SLICE:  # a short input has no whole slice
            total, count = _neighbours(np.concatenate(self._slice)), 1
        if count and abs(total) / np.sqrt(count) > _NEIGHBOURS_LIMIT:
            return "neighbouring rows are alike: it comes sorted or clustered"
        if len(self._kept) >= 4 and _places(self._kept) > _PLACES_LIMIT:
            return "its values change from place to place: it comes in pieces or drifts"
        return None

    def to_values(self) -> dict[str, Any]:
        """Plain values; the slice in hand is not among them."""
        return {
            "neighbours": self.neighbours,
            "slices": self.slices,
            "seen": self._seen,
            "every": self._every,
            "text": bool(self._kept and self._kept[0].dtype.kind == "S"),
            "kept": [[v.hex() if isinstance(v, bytes) else v for v in kept.tolist()] for kept in self._kept],
        }

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Self:
        """The inverse of ``to_values``."""
        made = cls()
        made.neighbours, made.slices = values["neighbours"], values["slices"]
        made._seen, made._every = values["seen"], values["every"]
        for kept in values["kept"]:
            made._kept.append(as_text([bytes.fromhex(v) for v in kept]) if values["text"] else np.array(kept))
        return made

    def _finish_slice(self) -> None:
        values = np.concatenate(self._slice)
        self._slice, self._held = [], 0
        self._skip = max(_LEAST_GAP, int(self._seen * _GAP_SHARE))
        self.neighbours += _neighbours(values)
        if self.slices % self._every == 0:
            self._kept.append(values[:: SLICE // KEPT][:KEPT].copy())
        self.slices += 1
        if len(self._kept) > MOST_SLICES:
            self._kept = self._kept[::2]
            self._every *= 2


def as_text(values: list[bytes]) -> Values:
    """Byte strings as an array that can be ranked: their first bytes."""
    return np.array(values, dtype=f"S{_TEXT_BYTES}")


def _ranks(values: Values) -> npt.NDArray[np.float64]:
    """Ranks from 0, those of equal values averaged, less their mean."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: npt.NDArray[np.float64] = (ends - (counts - 1) / 2)[place.reshape(-1)]
    centred: npt.NDArray[np.float64] = ranks - ranks.mean()
    return centred


def _neighbours(values: Values) -> float:
    """The correlation of each value with the next one, standardised by its moments under all orders."""
    n = len(values)
    ranks = _ranks(values)
    s2 = float(np.dot(ranks, ranks))
    if s2 == 0:
        return 0.0
    # Wald and Wolfowitz: circular serial product, with exact mean and variance over all permutations.
    product = float(np.dot(ranks, np.roll(ranks, 1)))
    s4 = float(np.sum(ranks**4))
    mean = -s2 / (n - 1)
    variance = (s2**2 - s4) / (n - 1) + (s2**2 - 2 * s4) / ((n - 1) * (n - 2)) - mean**2
    return (product - mean) / np.sqrt(variance) if variance > 0 else 0.0


def _places(kept: list[Values]) -> float:
    """Kruskal and Wallis' statistic over the slices, as a standard normal one."""
    lengths = np.array([len(values) for values in kept])
    ranks = _ranks(np.concatenate(kept))
    n, groups = len(ranks), len(kept)
    variance = float(np.dot(ranks, ranks)) / (n - 1)
    if variance == 0:
        return 0.0
    sums = np.add.reduceat(ranks, np.concatenate(([0], np.cumsum(lengths)[:-1])))
    return chi_square_as_normal(float(np.sum(sums**2 / lengths)) / variance, groups - 1)
