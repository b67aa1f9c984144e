"""A chained hash index over key words that grows by linear hashing.

``heads[b]`` is the newest row of bucket b and ``nexts[r]`` the next older row of the same bucket, -1 at the end.
Buckets are split one by one as rows come (linear hashing), so that growing costs a few steps for each inserted row
instead of a pass over all rows; only the chain of a hot key is walked whole when its bucket is split.
``mask`` is the last full level's size minus one, ``split`` the next bucket to be split.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]
Bool = npt.NDArray[np.bool_]
NOT_STARTED = -2
"""Position of a probe that has not looked into its bucket yet."""


@njit(cache=True, nogil=True, inline="always")
def _mix(word: np.int64) -> np.uint64:
    """Spread a 64-bit word over all bits (the finaliser of MurmurHash3)."""
    h = np.uint64(word)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC4CEB9FE1A85EC53)
    h ^= h >> np.uint64(33)
    return h


@njit(cache=True, nogil=True, inline="always")
def _hash_row(words: Int64, row: int) -> np.uint64:
    """A hash of a row's words that keeps neighbours together.

    Keys are mixed in blocks of 4096 consecutive values, and a block lies in consecutive buckets: inputs that are sorted
    or clustered by key, as real tables often are, walk through memory instead of jumping. Blocks are spread at random.
    """
    word = words[row, 0]
    h = _mix(word >> np.int64(12)) + np.uint64(word & np.int64(4095))
    for column in range(1, words.shape[1]):
        h = _mix(np.int64(h ^ np.uint64(words[row, column]) * np.uint64(0x9E3779B97F4A7C15)))
    return h


@njit(cache=True, nogil=True, inline="always")
def _bucket(h: np.uint64, mask: int, split: int) -> np.int64:
    b = np.int64(h & np.uint64(mask))
    if b < split:
        b = np.int64(h & np.uint64(2 * mask + 1))
    return b


@njit(cache=True, nogil=True)
def hash_rows(words: Int64) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each row's words."""
    out = np.empty(words.shape[0], dtype=np.uint64)
    for row in range(words.shape[0]):
        out[row] = _hash_row(words, row)
    return out


@njit(cache=True, nogil=True)
def insert(
    heads: Int32, nexts: Int32, words: Int64, valid: Bool,
    first: int, stop: int, mask: int, split: int,
) -> None:  # fmt: skip
    """Link rows ``first`` to ``stop`` into their buckets. ``valid`` is empty or tells which rows can match at all."""
    for row in range(first, stop):
        if valid.size and not valid[row]:
            nexts[row] = -1
            continue
        b = _bucket(_hash_row(words, row), mask, split)
        nexts[row] = heads[b]
        heads[b] = row


@njit(cache=True, nogil=True)
def split_buckets(heads: Int32, nexts: Int32, words: Int64, mask: int, split: int, count: int) -> tuple[int, int]:
    """Split ``count`` buckets, for which ``heads`` has room; chains keep their order. Returns ``(mask, split)``."""
    for _ in range(count):
        size = mask + 1
        row = heads[split]
        low = -1
        high = -1
        heads[split] = -1
        heads[split + size] = -1
        while row >= 0:
            follower = nexts[row]
            nexts[row] = -1
            if _hash_row(words, row) & np.uint64(size):
                if high < 0:
                    heads[split + size] = row
                else:
                    nexts[high] = row
                high = row
            else:
                if low < 0:
                    heads[split] = row
                else:
                    nexts[low] = row
                low = row
            row = follower
        split += 1
        if split == size:
            mask = 2 * mask + 1
            split = 0
    return mask, split


@njit(cache=True, nogil=True, inline="always")
def _same_bytes(offsets: Int64, data: UInt8, row: int, other_offsets: Int64, other_data: UInt8, other: int) -> bool:
    start = offsets[row]
    length = offsets[row + 1] - start
    other_start = other_offsets[other]
    if other_offsets[other + 1] - other_start != length:
        return False
    for k in range(length):  # noqa: SIM110 - Numba has no all() over a generator
        if data[start + k] != other_data[other_start + k]:
            return False
    return True


@njit(cache=True, nogil=True)
def probe(
    heads: Int32, nexts: Int32, words: Int64, offsets: Int64, data: UInt8,
    mask: int, split: int, skip: Bool,
    probing: Int64, probing_offsets: Int64, probing_data: UInt8, valid: Bool,
    row: int, node: int, once: bool, most_comparisons: int, out_probing: Int64, out_stored: Int64,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Find the stored rows equal to the probing rows, from (``row``, ``node``) on, until the output is full.

    ``offsets`` is empty for keys without a heap. Stored rows flagged in ``skip`` (empty: none) are unlinked on the
    way. ``once`` stops at the first match of each probing row. Returns ``(found, row, node, comparisons)``; the
    search is over when ``row`` is the number of probing rows.
    """
    found = 0
    comparisons = 0
    rows = probing.shape[0]
    width = probing.shape[1]
    room = out_probing.shape[0]
    has_heap = offsets.size > 0
    while row < rows:
        before = -1
        b = np.int64(-1)
        if node == NOT_STARTED:
            if valid.size and not valid[row]:
                row += 1
                continue
            b = _bucket(_hash_row(probing, row), mask, split)
            node = heads[b]
        while node >= 0:
            follower = nexts[node]
            if skip.size and skip[node]:
                # After a resumed call neither the bucket nor the row before is known: leave it for the next visit.
                if before >= 0:
                    nexts[before] = follower
                elif b >= 0:
                    heads[b] = follower
                node = follower
                continue
            if comparisons == most_comparisons:
                return found, row, node, comparisons
            comparisons += 1
            same = words[node, 0] == probing[row, 0]
            for column in range(1, width):
                same = same and words[node, column] == probing[row, column]
            if same and has_heap:
                same = _same_bytes(offsets, data, node, probing_offsets, probing_data, row)
            if same:
                if found == room:
                    return found, row, node, comparisons - 1
                out_probing[found] = row
                out_stored[found] = node
                found += 1
                if once:
                    break
            before = node
            b = np.int64(-1)
            node = follower
        row += 1
        node = NOT_STARTED
    return found, row, node, comparisons
