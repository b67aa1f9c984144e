"""Integers of more than 64 bits: scale them by powers of ten and turn them into words that keep their order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

_TOP_BIT = np.uint64(1 << 63)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF_BITS = np.uint64(32)
_STEP = 9  # 10**9 is the largest power of ten below 2**32, so a half limb times it plus a carry fits in 64 bits.


@njit(cache=True, nogil=True)
def _scaled_words(limbs, power, out):  # type: ignore[no-untyped-def]
    rows, given = limbs.shape
    width = out.shape[1]
    value = np.empty(width, dtype=np.uint64)
    for row in range(rows):
        # Two's complement: the sign fills the limbs above the given ones; products are right modulo 2**(64 * width).
        fill = uint64(0xFFFFFFFFFFFFFFFF) if limbs[row, given - 1] & _TOP_BIT else uint64(0)
        for w in range(width):
            value[w] = limbs[row, w] if w < given else fill
        left = power
        while left > 0:
            step = min(left, _STEP)
            left -= step
            factor = uint64(1)
            for _ in range(step):
                factor *= uint64(10)
            carry = uint64(0)
            for w in range(width):
                low = (value[w] & _LOW_HALF) * factor + carry
                high = (value[w] >> _HALF_BITS) * factor + (low >> _HALF_BITS)
                value[w] = (high << _HALF_BITS) | (low & _LOW_HALF)
                carry = high >> _HALF_BITS
        # Most significant first. Only the first word carries a sign, so the others are shifted into the signed range.
        for w in range(width):
            limb = value[width - 1 - w]
            out[row, w] = limb if w == 0 else limb ^ _TOP_BIT


def scaled_words(limbs: npt.NDArray[np.uint64], power: int, width: int) -> npt.NDArray[np.int64]:
    """``limbs`` times ``10**power`` as (n, width) signed words whose lexicographic order is the order of the numbers.

    ``limbs`` is (n, given): two's complement, least significant limb first, as Arrow stores decimals. The caller
    chooses ``width`` so that every product fits.
    """
    out = np.empty((len(limbs), width), dtype=np.uint64)
    _scaled_words(np.ascontiguousarray(limbs), power, out)
    return out.view(np.int64)
