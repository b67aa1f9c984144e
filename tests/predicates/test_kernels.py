"""The kernels below the predicates: hashes, byte strings, wide integers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.kernels.byte_strings import chain, prefixes
from earlyjoin.kernels.hashing import hash_bytes, hash_words, mix64
from earlyjoin.kernels.wide_integers import scaled_words
from earlyjoin.predicates import Bytes, Keys

Heap = tuple[np.ndarray, np.ndarray]


def heap(strings: list[bytes]) -> Heap:
    offsets = np.zeros(len(strings) + 1, dtype=np.int64)
    np.cumsum([len(s) for s in strings], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(strings), dtype=np.uint8).copy()


def rows(offsets: np.ndarray, data: np.ndarray) -> list[bytes]:
    return [data[a:b].tobytes() for a, b in pairwise(offsets)]


def changed_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.bitwise_count(a ^ b)


def test_every_input_bit_changes_half_of_the_hash() -> None:
    rng = np.random.default_rng(1)
    for length in (1, 7, 8, 9, 16, 31):
        strings = [rng.bytes(length) for _ in range(200)]
        before = hash_bytes(*heap(strings)).view(np.uint64)
        for bit in range(8 * length):
            flipped = [(int.from_bytes(s, "little") ^ (1 << bit)).to_bytes(length, "little") for s in strings]
            after = hash_bytes(*heap(flipped)).view(np.uint64)
            assert 28 < changed_bits(before, after).mean() < 36
            assert (before != after).all()


def test_hash_of_words_spreads_small_integers() -> None:
    words = np.arange(100_000, dtype=np.int64).reshape(-1, 1)
    for buckets in (hash_words(words) % np.uint64(64), hash_words(words) >> np.uint64(58)):
        counts = np.bincount(buckets.astype(np.int64), minlength=64)
        assert counts.min() > 0.85 * counts.mean()
        assert counts.max() < 1.15 * counts.mean()
    pairs = np.stack([words[:, 0] // 300, words[:, 0] % 300], axis=1)
    assert len(np.unique(hash_words(pairs))) == len(pairs)
    assert hash_words(np.array([[1, 2]])) != hash_words(np.array([[2, 1]]))


def test_hashes_are_fixed_for_ever() -> None:
    # Spilled partitions and Spark tasks of different processes must agree.
    assert hash_bytes(*heap([b"", b"a", b"abcdefghi"])).tolist() == [
        -7160610219483255062,
        -6993562140346217163,
        5009080843874690484,
    ]
    assert int(mix64(np.int64(-1))) == 7256831767414464289


@settings(deadline=None)
@given(st.lists(st.binary(max_size=20), max_size=6))
def test_equal_strings_hash_alike_wherever_they_lie(strings: list[bytes]) -> None:
    offsets, data = heap([b"xyz", *strings])
    assert hash_bytes(offsets[1:], data).tolist() == hash_bytes(*heap(strings)).tolist()


@settings(deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=4), st.binary(max_size=4)), max_size=8))
def test_chain_is_one_to_one(pairs: list[tuple[bytes, bytes]]) -> None:
    first, second = heap([a for a, _ in pairs]), heap([b for _, b in pairs])
    chained = rows(*chain(*first, *second))
    assert chained == [len(a).to_bytes(8, "little") + a + b for a, b in pairs]


@settings(deadline=None)
@given(st.lists(st.binary(max_size=12), max_size=8))
def test_prefixes_never_contradict_the_order(strings: list[bytes]) -> None:
    words = prefixes(*heap(strings)).tolist()
    for a, u in zip(strings, words, strict=True):
        for b, v in zip(strings, words, strict=True):
            assert not (a < b and u > v)


@settings(deadline=None)
@given(st.lists(st.integers(-(2**127), 2**127 - 1), min_size=1, max_size=6), st.integers(0, 76))
def test_scaled_words(values: list[int], power: int) -> None:
    limbs = np.frombuffer(b"".join(v.to_bytes(16, "little", signed=True) for v in values), dtype=np.uint64).reshape(
        -1, 2
    )
    width = 7
    words = scaled_words(limbs, power, width)
    for value, row in zip(values, words.tolist(), strict=True):
        number = row[0]
        for word in row[1:]:
            number = (number << 64) + word + 2**63
        assert number == value * 10**power


@settings(deadline=None)
@given(st.lists(st.binary(max_size=5), min_size=1, max_size=8), st.data())
def test_keys_slice_and_take(strings: list[bytes], data: st.DataObject) -> None:
    keys = Keys(
        np.arange(len(strings), dtype=np.int64).reshape(-1, 1), Bytes(*heap(strings)), np.ones(len(strings), np.bool_)
    )
    start = data.draw(st.integers(0, len(strings)))
    part = keys.slice(start, len(strings))
    index = np.array(data.draw(st.lists(st.integers(0, len(part) - 1))) if len(part) else [], dtype=np.int64)
    taken = part.take(index)
    assert taken.heap is not None
    assert rows(taken.heap.offsets, taken.heap.data) == [strings[start + k] for k in index]
    assert taken.words[:, 0].tolist() == [start + k for k in index]
    assert part.heap is not None
    assert part.heap.nbytes == part.heap.offsets.nbytes + sum(map(len, strings[start:]))
