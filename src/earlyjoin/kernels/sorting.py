"""Sorting words: the order that a stable sort gives, sooner where the words come in no order.

NumPy's stable sort takes ascending and descending stretches as they are, and has nothing to gain from vector
instructions; its plain sort has, and forgets which of two equal words came first. That can be repaired afterwards: the
rows of equal words are sorted by number, all of them at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Words = npt.NDArray[np.int64] | npt.NDArray[np.float64]

_FEW = 4096
"""Up to so many words the stable sort is as fast."""
_DISORDER = 4
"""Words fall at one place in two if they come at random, and at hardly any if they come in stretches."""


def stable_order(words: Words) -> Int64:
    """Row numbers, ascending by word; of equal words the first comes first, and what is no number last."""
    count = len(words)
    if count <= _FEW or np.count_nonzero(words[1:] < words[:-1]) < count // _DISORDER:
        return np.argsort(words, kind="stable").astype(np.int64, copy=False)
    order = np.argsort(words).astype(np.int64, copy=False)
    ascending = words[order]
    if ascending[-1] != ascending[-1]:
        return np.argsort(words, kind="stable").astype(np.int64, copy=False)
    rises = ascending[1:] != ascending[:-1]
    if rises.all():
        return order
    places = np.zeros(count, dtype=np.int64)
    np.cumsum(rises, out=places[1:])
    places *= count
    places += order
    places.sort()
    places %= count
    return places
