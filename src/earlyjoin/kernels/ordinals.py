"""Numbers as signed 64-bit words that are equal and ordered exactly as the numbers are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_MAGNITUDE = np.int64(0x7FFF_FFFF_FFFF_FFFF)


def float_ordinals(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Floats as words: -0.0 and 0.0 share one, every NaN shares the largest.

    IEEE 754 floats order like sign and magnitude integers; flipping the magnitude of the negative ones makes that two's
    complement.
    """
    with np.errstate(invalid="ignore"):  # signalling NaN
        canonical = values + 0.0  # also turns -0.0 into 0.0
    canonical[np.isnan(canonical)] = np.nan
    bits = canonical.view(np.int64)
    bits ^= (bits >> 63) & _MAGNITUDE
    return bits


def unsigned_ordinals(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Unsigned words shifted into the signed range, by flipping the top bit."""
    flipped: npt.NDArray[np.int64] = (values ^ np.uint64(1 << 63)).view(np.int64)
    return flipped
