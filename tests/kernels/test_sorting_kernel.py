"""The order of words: that of NumPy's stable sort, whatever the words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlyjoin.kernels import sorting
from earlyjoin.kernels.sorting import stable_order

ROWS = 20_000


def check(words: sorting.Words) -> None:
    order = stable_order(words)
    assert order.dtype == np.int64
    assert np.array_equal(order, np.argsort(words, kind="stable"))


@pytest.mark.parametrize("distinct", [1, 2, 100, ROWS, 2**62])
@pytest.mark.parametrize("type_", [np.int64, np.float64])
def test_many_words(distinct: int, type_: type) -> None:
    words = np.random.default_rng(distinct % 97).integers(-distinct, distinct, ROWS).astype(type_)
    for some in (words, -words, np.sort(words), np.sort(words)[::-1], words[:0], words[:1], np.tile(words[:99], 200)):
        check(some)


def test_zeros_infinities_and_what_is_no_number() -> None:
    words = np.random.default_rng(0).normal(size=ROWS)
    words[::3] = 0.0
    words[1::7] = -0.0
    words[2::11] = np.inf
    words[3::13] = -np.inf
    check(words)
    words[5::100] = np.nan
    check(words)


@given(st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)), st.integers(0, 20))
def test_few_words_as_if_they_were_many(values: list[int], few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "_FEW", few)
        check(np.array(values, dtype=np.int64))
