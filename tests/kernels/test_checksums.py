"""Checksums: every change of a block shows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.kernels.checksums import FLAGS_A_BLOCK, blocks_hold, checksum, raise_flags, sums_of

SEED = np.uint64(0)


@pytest.mark.parametrize("size", [1, 7, 8, 63, 64, 65, 200])
def test_every_bit_counts(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size).astype(np.uint8)
    whole = checksum(data, SEED)
    seen = {int(whole)}
    for place in range(size):
        for bit in range(8):
            data[place] ^= 1 << bit
            seen.add(int(checksum(data, SEED)))
            data[place] ^= 1 << bit
    assert len(seen) == 1 + 8 * size
    assert checksum(data, SEED) == whole


@given(st.binary(max_size=300), st.integers(0, 300), st.binary(min_size=1, max_size=16))
@settings(deadline=None)
def test_bytes_that_were_overwritten(data: bytes, place: int, other: bytes) -> None:
    place = min(place, len(data))
    changed = data[:place] + other + data[place + len(other) :]
    one, two = (np.frombuffer(bytearray(text), dtype=np.uint8) for text in (data, changed))
    assert (checksum(one, SEED) == checksum(two, SEED)) == (data == changed)


@pytest.mark.parametrize("step", [8, 16, 64, 128])
def test_the_same_change_twice_does_not_cancel_out(step: int) -> None:
    data = np.zeros(512, dtype=np.uint8)
    whole = checksum(data, SEED)
    for bit in range(64):
        word = data.view(np.uint64)
        word[0] ^= np.uint64(1) << np.uint64(bit)
        word[step // 8] ^= np.uint64(1) << np.uint64(bit)
        assert checksum(data, SEED) != whole
        data[:] = 0


def test_length_and_what_came_before_count() -> None:
    zeros = np.zeros(256, dtype=np.uint8)
    sums = {int(checksum(zeros[:length], np.uint64(seed))) for length in range(257) for seed in range(3)}
    assert len(sums) == 257 * 3


@pytest.mark.parametrize("rows", [1, FLAGS_A_BLOCK, 3 * FLAGS_A_BLOCK + 5])
def test_blocks_of_flags(rows: int) -> None:
    flags = np.zeros(rows, dtype=np.uint8)
    sums = sums_of(flags, 0)
    assert len(sums) == -(-rows // FLAGS_A_BLOCK)
    everything = np.arange(rows, dtype=np.int64)
    chosen = everything[:: max(1, rows // 3)]
    assert blocks_hold(flags, sums, everything)
    raise_flags(flags, sums, chosen)
    assert np.flatnonzero(flags).tolist() == chosen.tolist()
    assert np.array_equal(sums, sums_of(flags, 0))
    assert blocks_hold(flags, sums, everything)
    flags[-1] ^= 1
    assert not blocks_hold(flags, sums, everything[-1:])
    assert blocks_hold(flags, sums, everything[:1]) == (rows > FLAGS_A_BLOCK)
