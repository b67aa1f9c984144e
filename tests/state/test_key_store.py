"""Encoded keys in memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.encoding.keys import Keys
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.key_store import KeyStore
from state.keys_by_hand import Key, account, keys_of, plain


def listed(keys: Keys | None) -> list[tuple[tuple[int, ...], bytes | None, bool]]:
    if keys is None:
        return []
    heap, valid = keys.heap, keys.valid
    return [
        (
            tuple(keys.words[row].tolist()),
            None if heap is None else heap.data[heap.offsets[row] : heap.offsets[row + 1]].tobytes(),
            True if valid is None else bool(valid[row]),
        )
        for row in range(len(keys))
    ]


@given(data=st.data(), width=st.integers(1, 3), heap=st.booleans())
@settings(deadline=None, max_examples=60)
def test_keeps_keys_and_is_as_it_was_after_a_refusal(data: st.DataObject, width: int, heap: bool) -> None:
    budget = Budget(MemoryLimit(bytes=64 * 1024))
    store, squeeze, model = KeyStore(budget.account("keys")), budget.account("others"), []
    key = st.tuples(st.tuples(*[st.integers(-9, 9)] * width), st.binary(max_size=30) if heap else st.none())
    for _ in range(data.draw(st.integers(1, 12))):
        squeeze.clear()
        squeeze.reserve(max(0, 64 * 1024 - budget.used_bytes - data.draw(st.integers(0, 1500))))
        if data.draw(st.integers(0, 5)) == 0:
            length = data.draw(st.integers(0, 20))
            store.truncate(length)
            model = model[:length]
        drawn: list[Key] = data.draw(st.lists(key, min_size=1, max_size=25))
        flags = data.draw(st.none() | st.lists(st.booleans(), min_size=len(drawn), max_size=len(drawn)))
        keys = keys_of(drawn, valid=flags, width=width)
        start = data.draw(st.integers(0, len(drawn)))
        part = keys.slice(start, len(drawn))  # a slice shares the bytes before it
        try:
            store.append(part)
            model += listed(part)
        except BudgetExceeded:
            pass
        assert len(store) == len(model)
        assert listed(store.keys()) == model
        assert store.nbytes == store._account.bytes
    store.clear()
    assert (len(store), store.keys(), store.nbytes, store._account.bytes) == (0, None, 0, 0)


def test_a_refused_first_null_does_not_shift_the_flags_that_follow() -> None:
    """Regression: see the row store's test of the same name."""
    budget = Budget(MemoryLimit(bytes=64 * 1024))
    store, squeeze = KeyStore(budget.account("keys")), budget.account("others")
    store.append(plain([1, 2]))
    squeeze.reserve(64 * 1024 - budget.used_bytes)
    with pytest.raises(BudgetExceeded):
        store.append(keys_of([((3,), None)], valid=[False]))
    squeeze.clear()
    store.append(keys_of([((4,), None), ((5,), None)], valid=[True, False]))
    keys = store.keys()
    assert keys is not None
    assert keys.valid is not None
    assert keys.valid.tolist() == [True, True, True, False]


def test_takes_the_shape_of_the_first_keys_again_after_clear() -> None:
    store = KeyStore(account())
    store.append(keys_of([((1, 2), b"x")], width=2))
    store.clear()
    store.append(plain([7]))
    assert listed(store.keys()) == [((7,), None, True)]
    store.append(plain([]))
    assert len(store) == 1


def test_float_words() -> None:
    store = KeyStore(account())
    store.append(Keys(np.array([[0.5], [1.5]])))
    keys = store.keys()
    assert keys is not None
    assert keys.words.dtype == np.float64
    assert keys.words.tolist() == [[0.5], [1.5]]
