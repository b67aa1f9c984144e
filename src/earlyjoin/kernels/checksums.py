"""Checksums of blocks on disk, at the speed of memory: against bits that rot and files that are overwritten.

Eight lanes of words, each with the round of xxHash64, so that a single changed word always changes its lane: about 8
GB/s on pages in the cache, where zlib's CRC-32 does one. It is no protection from someone who wants to deceive.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from earlyjoin.kernels.hashing import mix64

Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]
Sums = npt.NDArray[np.uint64]

FLAGS_A_BLOCK = 4096
"""Flags that share a checksum: a page of memory, as the system reads them."""

_M, _N = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F)
_LEFT, _RIGHT = np.uint64(31), np.uint64(33)


@njit(cache=True, nogil=True, inline="always")
def _turn(lane, word):  # type: ignore[no-untyped-def]
    mixed = lane + word * _N
    return ((mixed << _LEFT) | (mixed >> _RIGHT)) * _M


@njit(cache=True, nogil=True)
def checksum(data, seed):  # type: ignore[no-untyped-def]
    """Of contiguous bytes that begin at a multiple of eight; ``seed`` is the checksum of what came before, or zero."""
    whole = len(data) // 64 * 64
    words = data[:whole].view(np.uint64)
    start = mix64(uint64(seed) ^ uint64(len(data)) * _M)
    a, b, c, d = start, start + uint64(1), start + uint64(2), start + uint64(3)
    e, f, g, h = start + uint64(4), start + uint64(5), start + uint64(6), start + uint64(7)
    for at in range(0, len(words), 8):
        a, b = _turn(a, words[at]), _turn(b, words[at + 1])
        c, d = _turn(c, words[at + 2]), _turn(d, words[at + 3])
        e, f = _turn(e, words[at + 4]), _turn(f, words[at + 5])
        g, h = _turn(g, words[at + 6]), _turn(h, words[at + 7])
    for at in range(whole, len(data)):
        a = _turn(a, uint64(data[at]))
    result = a
    for lane in (b, c, d, e, f, g, h):
        result = mix64(result) ^ lane
    return mix64(result)


@njit(cache=True, nogil=True)
def _block(flags, number):  # type: ignore[no-untyped-def]
    start = number * FLAGS_A_BLOCK
    return checksum(flags[start : min(len(flags), start + FLAGS_A_BLOCK)], uint64(number))


@njit(cache=True, nogil=True)
def sums_of(flags: Bytes, first: int) -> Sums:
    """The checksums of flags that begin with block ``first`` of their file."""
    sums = np.empty(-(-len(flags) // FLAGS_A_BLOCK), dtype=np.uint64)
    for number in range(len(sums)):
        start = number * FLAGS_A_BLOCK
        sums[number] = checksum(flags[start : min(len(flags), start + FLAGS_A_BLOCK)], uint64(first + number))
    return sums


@njit(cache=True, nogil=True)
def blocks_hold(flags: Bytes, sums: Sums, numbers: Int64) -> bool:
    """Are the blocks in which these flags lie as they were written?"""
    seen = np.zeros(len(sums), dtype=np.bool_)
    for number in numbers:
        block = number // FLAGS_A_BLOCK
        if not seen[block]:
            if _block(flags, block) != sums[block]:
                return False
            seen[block] = True
    return True


@njit(cache=True, nogil=True)
def raise_flags(flags: Bytes, sums: Sums, numbers: Int64) -> None:
    """Set these flags, and the checksums of their blocks."""
    touched = np.zeros(len(sums), dtype=np.bool_)
    for number in numbers:
        if flags[number] == 0:
            flags[number] = 1
            touched[number // FLAGS_A_BLOCK] = True
    for block in range(len(sums)):
        if touched[block]:
            sums[block] = _block(flags, block)
