"""The hash index against a dictionary of lists."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.encoding.keys import Keys
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.hash_index import Cursor, HashIndex
from earlyjoin.state.key_store import KeyStore
from state.keys_by_hand import Key, account, keys_of, plain


class Indexed:
    """A key store and its index, grown together."""

    def __init__(self) -> None:
        self.store, self.index = KeyStore(account()), HashIndex(account())

    def insert(self, keys: Keys) -> None:
        first = len(self.store)
        self.index.reserve(first + len(keys))
        self.store.append(keys)
        stored = self.store.keys()
        assert stored is not None
        before = self.index.buckets
        self.index.insert(stored, first)
        assert self.index.buckets - before <= len(keys), "a call does work for its own rows only"
        assert self.index.buckets == max(16, len(self.store)), "buckets follow the rows"
        assert self.index.nbytes == self.index._heads._account.bytes

    def probe(
        self, probing: Keys, *, room: int = 1000, once: bool = False, skip: np.ndarray | None = None
    ) -> tuple[list[tuple[int, int]], int]:
        """All pairs, resuming whenever the output is full, and the comparisons."""
        cursor, pairs, comparisons = Cursor(), [], 0
        stored = self.store.keys()
        assert stored is not None
        out = np.empty((2, room), dtype=np.int64)
        while cursor.row < len(probing):
            before = (cursor.row, cursor.node)
            found, compared = self.index.probe(stored, probing, cursor, out[0], out[1], once=once, skip=skip)
            pairs += zip(out[0, :found].tolist(), out[1, :found].tolist(), strict=True)
            comparisons += compared
            assert found or cursor.row == len(probing)
            assert before != (cursor.row, cursor.node)
        return pairs, comparisons

    def chains(self) -> list[list[int]]:
        nexts, found = self.index._nexts.data, []
        for head in self.index._heads.data.tolist():
            chain = []
            while head >= 0:
                chain.append(head)
                head = int(nexts[head])
            found.append(chain)
        return found


@st.composite
def cuts(draw: st.DrawFn, length: int) -> list[int]:
    inner = draw(st.sets(st.integers(0, length), max_size=6))
    return sorted(inner | {0, length})


@given(data=st.data(), width=st.integers(1, 3), heap=st.booleans())
@settings(deadline=None, max_examples=80)
def test_finds_what_a_dictionary_finds_newest_first(data: st.DataObject, width: int, heap: bool) -> None:
    # Few words: the bytes must decide between keys of the same hash.
    key = st.tuples(
        st.tuples(*[st.sampled_from([0, 1, -1, 2**62])] * width),
        st.sampled_from([b"", b"a", b"b", b"ab"]) if heap else st.none(),
    )
    stored: list[Key] = data.draw(st.lists(key, min_size=1, max_size=60), label="stored")
    probing: list[Key] = data.draw(st.lists(key, min_size=1, max_size=20), label="probing")
    flags = [
        data.draw(st.lists(st.integers(0, 4).map(bool), min_size=len(k), max_size=len(k))) for k in (stored, probing)
    ]
    keys = keys_of(stored, valid=flags[0], width=width)
    probe = keys_of(probing, valid=flags[1], width=width)

    model: dict[Key, list[int]] = defaultdict(list)
    for row, (value, valid) in enumerate(zip(stored, flags[0], strict=True)):
        if valid:
            model[value].insert(0, row)
    expected = [(i, row) for i, value in enumerate(probing) if flags[1][i] for row in model.get(value, [])]

    indexed = Indexed()
    for start, stop in pairwise(data.draw(cuts(len(stored)))):
        indexed.insert(keys.slice(start, stop))
    for room in (1, 3, 1000):
        assert indexed.probe(probe, room=room)[0] == expected
    firsts = [(i, rows[0]) for i, value in enumerate(probing) if flags[1][i] and (rows := model.get(value))]
    for room in (1, 1000):
        assert indexed.probe(probe, room=room, once=True)[0] == firsts

    whole = Indexed()
    whole.insert(keys)
    assert whole.chains() == indexed.chains(), "chains do not depend on how the inserts were cut"
    assert all(chain == sorted(chain, reverse=True) for chain in whole.chains())


# Few buckets and keys from many blocks: different keys share a chain.
spread = st.integers(0, 25).map(lambda number: number * 4096)


@given(data=st.data())
@settings(deadline=None, max_examples=80)
def test_skipped_rows_are_passed_over_and_unlinked(data: st.DataObject) -> None:
    stored = data.draw(st.lists(spread, min_size=1, max_size=60))
    probing = data.draw(st.lists(spread, min_size=1, max_size=10))
    skip = np.array(data.draw(st.lists(st.booleans(), min_size=len(stored), max_size=len(stored))))
    indexed = Indexed()
    indexed.insert(plain(stored))
    before = indexed.chains()
    visited = {b for b, chain in enumerate(before) if any(stored[row] in probing for row in chain)}
    rows = [row for row in reversed(range(len(stored))) if not skip[row]]
    pairs, comparisons = indexed.probe(plain(probing), skip=skip)
    assert pairs == [(i, row) for i, key in enumerate(probing) for row in rows if stored[row] == key]
    for number, (chain, was) in enumerate(zip(indexed.chains(), before, strict=True)):
        kept = [row for row in was if not skip[row]]
        if number in visited:
            assert chain == kept, "visited chains lose the skipped rows and keep the order of the others"
        else:
            assert chain in (was, kept)
    assert indexed.probe(plain(probing), skip=skip) == (pairs, comparisons), "skipped rows cost no comparison"
    # Rows inserted later are found as ever, also when buckets split.
    for _ in range(5):
        indexed.insert(plain(probing))
    more = np.append(skip, np.zeros(5 * len(probing), dtype=np.bool_))
    again = {(i, row) for i, row in indexed.probe(plain(probing), skip=more)[0] if row < len(stored)}
    assert again == set(pairs)


@given(data=st.data(), room=st.sampled_from([1, 2, 5, 100]))
@settings(deadline=None, max_examples=80)
def test_what_is_flagged_between_two_calls_is_not_found_again(data: st.DataObject, room: int) -> None:
    """As a semi join does it: every stored row is found at most once a call, and never after it was flagged."""
    stored = data.draw(st.lists(spread, min_size=1, max_size=50))
    probing = data.draw(st.lists(spread, min_size=1, max_size=30))
    indexed = Indexed()
    indexed.insert(plain(stored))
    skip = np.array(data.draw(st.lists(st.booleans(), min_size=len(stored), max_size=len(stored))))
    left = {row for row in range(len(stored)) if not skip[row] and stored[row] in probing}
    keys, probe, out, cursor = indexed.store.keys(), plain(probing), np.empty((2, room), dtype=np.int64), Cursor()
    assert keys is not None
    seen: set[int] = set()
    while cursor.row < len(probe):
        found, _ = indexed.index.probe(keys, probe, cursor, out[0], out[1], skip=skip)
        rows = out[1, :found].tolist()
        assert not seen & set(rows)
        assert all(probing[i] == stored[j] for i, j in out[:, :found].T.tolist())
        skip[rows] = True
        seen |= set(rows)
    assert seen == left
    linked = {row for chain in indexed.chains() for row in chain}
    assert linked >= {row for row in range(len(stored)) if not skip[row]}


def test_flags_may_change_while_a_probe_waits_for_room() -> None:
    indexed = Indexed()
    indexed.insert(plain([7] * 10))
    skip, cursor, out = np.zeros(10, dtype=np.bool_), Cursor(), np.empty((2, 3), dtype=np.int64)
    keys = indexed.store.keys()
    assert keys is not None
    found, _ = indexed.index.probe(keys, plain([7, 7]), cursor, out[0], out[1], skip=skip)
    assert out[1, :found].tolist() == [9, 8, 7]
    skip[[9, 8, 7, 6, 4]] = True  # 6 is where the probe stands
    rows = []
    while cursor.row < 2:
        found, _ = indexed.index.probe(keys, plain([7, 7]), cursor, out[0], out[1], skip=skip)
        rows += out[:, :found].T.tolist()
    assert rows == [[0, 5], [0, 3], [0, 2], [0, 1], [0, 0], [1, 5], [1, 3], [1, 2], [1, 1], [1, 0]]


def test_an_empty_index_finds_nothing() -> None:
    index, cursor, out = HashIndex(account()), Cursor(), np.empty(3, dtype=np.int64)
    assert index.probe(plain([]), plain([1, 2]), cursor, out, out) == (0, 0)
    assert cursor.row == 2


def test_clear_gives_back_and_starts_again() -> None:
    indexed = Indexed()
    indexed.insert(plain(np.arange(1000)))
    indexed.index.clear()
    indexed.store.clear()
    assert (indexed.index.nbytes, indexed.index._heads._account.bytes, indexed.index.buckets) == (0, 0, 16)
    indexed.insert(plain([5, 6, 5]))
    assert indexed.probe(plain([5]))[0] == [(0, 2), (0, 0)]


def test_refused_room_changes_nothing() -> None:
    budget = Budget(MemoryLimit(bytes=64 * 1024))
    index, store = HashIndex(budget.account("index")), KeyStore(account())
    store.append(plain(np.arange(5000)))
    index.reserve(5000)
    keys = store.keys()
    assert keys is not None
    index.insert(keys, 0)
    with pytest.raises(BudgetExceeded, match="index cannot grow"):
        index.reserve(10_000)
    assert budget.peak_bytes <= 64 * 1024
    out, cursor = np.empty((2, 5000), dtype=np.int64), Cursor()
    assert index.probe(keys, keys, cursor, out[0], out[1])[0] == 5000
    assert np.array_equal(out[0], out[1])


ROWS = 50_000
_number = np.arange(ROWS, dtype=np.int64)
PATTERNS = {
    "consecutive": _number,
    "negative": -_number,
    "from 2^62": _number + 2**62,
    "multiples of 2": _number * 2,
    "multiples of 1000": _number * 1000,
    "multiples of 4095": _number * 4095,
    "multiples of 4096": _number * 4096,
    "multiples of 4097": _number * 4097,
    "multiples of 65536": _number * 65536,
    "multiples of 2^32": _number * 2**32,
    "multiples of 2^32 + 1": _number * (2**32 + 1),
    "equal low 40 bits": (_number << 40) + 12345,
    "high bits only": _number << 47,
    "every sixteenth block": (_number // 4096) * 16 * 4096 + _number % 4096,
    "sixteen a block": (_number // 16) * 4096 + _number % 16,
    "whole floats": _number.astype(np.float64).view(np.int64),
    "fractions": (_number / 1024).view(np.int64),
    "tenths": (_number / 10).view(np.int64),
    "negative floats": (-_number.astype(np.float64)).view(np.int64) ^ np.int64(2**63 - 1),
    "float32 in float64": (_number / np.float32(3)).astype(np.float32).astype(np.float64).view(np.int64),
    "timestamps a day apart": _number * 86_400_000_000,
    "random": np.random.default_rng(3).integers(-(2**63), 2**63 - 1, ROWS),
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("columns", ["one", "constant first", "constant last", "both"])
def test_patterns_do_not_make_long_chains(name: str, columns: str) -> None:
    words = PATTERNS[name]
    assert len(np.unique(words)) == ROWS
    constant = np.full(ROWS, 42)
    both = {
        "one": [words],
        "constant first": [constant, words],
        "constant last": [words, constant],
        "both": [words, words],
    }
    keys = Keys(np.ascontiguousarray(np.stack(both[columns], axis=1)))
    indexed = Indexed()
    for start in range(0, ROWS, 10_000):
        indexed.insert(keys.slice(start, start + 10_000))
    pairs, comparisons = indexed.probe(keys, room=ROWS)
    assert pairs == list(zip(range(ROWS), range(ROWS), strict=True))
    assert comparisons / ROWS < 4, f"{comparisons / ROWS:.1f} comparisons a probe"
    # What matches nothing must not walk far either.
    _, missing = indexed.probe(Keys(keys.words ^ np.int64(2**61)), room=10)
    assert missing / ROWS < 4


def test_hot_and_distinct_keys_together() -> None:
    """Duplicates make their own chain long, and that of no other key."""
    rng = np.random.default_rng(8)
    words = np.where(rng.random(20_000) < 0.5, 7, np.arange(20_000) * 4096)
    indexed = Indexed()
    indexed.insert(plain(words))
    distinct = words[words != 7]
    _, comparisons = indexed.probe(plain(distinct), room=20_000)
    unlucky = 40 * int((words == 7).sum())  # some keys share the bucket of the hot one
    assert comparisons < 4 * len(distinct) + unlucky
