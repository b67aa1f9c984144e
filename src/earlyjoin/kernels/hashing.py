"""64-bit hashes of words and of byte strings.

Both end in the finaliser of MurmurHash3, so every input bit reaches every output bit and any subset of the bits of a
hash can number partitions. The same input has the same hash in every process: spilled partitions and Spark tasks rely
on it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

# The multiplier and shift of MurmurHash64A and the two constants of MurmurHash3's 64-bit finaliser.
_M = np.uint64(0xC6A4A7935BD1E995)
_R = np.uint64(47)
_FINAL_1 = np.uint64(0xFF51AFD7ED558CCD)
_FINAL_2 = np.uint64(0xC4CEB9FE1A85EC53)
_S33 = np.uint64(33)
_EIGHT = np.uint64(8)
_SEED = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def mix64(word):  # type: ignore[no-untyped-def]
    """Scramble one 64-bit word, one to one; call it from other kernels. Takes int64 or uint64, gives uint64."""
    h = uint64(word)
    h ^= h >> _S33
    h *= _FINAL_1
    h ^= h >> _S33
    h *= _FINAL_2
    h ^= h >> _S33
    return h


@njit(cache=True, nogil=True)
def _hash_one(data, start, stop):  # type: ignore[no-untyped-def]
    """MurmurHash64A of ``data[start:stop]``, followed by the stronger finaliser."""
    h = _SEED ^ (uint64(stop - start) * _M)
    at = start
    while at + 8 <= stop:
        k = uint64(0)
        for b in range(7, -1, -1):
            k = (k << _EIGHT) | uint64(data[at + b])
        k *= _M
        k ^= k >> _R
        k *= _M
        h ^= k
        h *= _M
        at += 8
    if at < stop:
        k = uint64(0)
        for p in range(stop - 1, at - 1, -1):
            k = (k << _EIGHT) | uint64(data[p])
        h ^= k
        h *= _M
    return mix64(h)


@njit(cache=True, nogil=True)
def _hash_bytes(offsets, data, out):  # type: ignore[no-untyped-def]
    for row in range(len(out)):
        out[row] = _hash_one(data, offsets[row], offsets[row + 1])


@njit(cache=True, nogil=True)
def _hash_words(words, out):  # type: ignore[no-untyped-def]
    for row in range(words.shape[0]):
        h = _SEED
        for column in range(words.shape[1]):
            h = mix64(h ^ uint64(words[row, column])) * _M
        out[row] = mix64(h)


def hash_bytes(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """The hash of each byte string ``data[offsets[i]:offsets[i + 1]]``, as int64 so that it can serve as a key word."""
    out = np.empty(len(offsets) - 1, dtype=np.uint64)
    _hash_bytes(offsets, data, out)
    return out.view(np.int64)


def hash_words(words: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """The hash of each row of ``words`` (n, width): for partition and bucket numbers, never for deciding equality."""
    out = np.empty(len(words), dtype=np.uint64)
    _hash_words(words, out)
    return out
