"""Arrays that grow inside a budget."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.errors import BudgetExceeded
from earlyjoin.state.budget import Account, Budget, MemoryLimit
from earlyjoin.state.growable import Growable


def account(bytes_: int = 10**6) -> Account:
    return Budget(MemoryLimit(bytes=bytes_)).account("test")


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["append", "extend", "truncate", "ensure", "clear"]), st.integers(0, 300))
    ),
    width=st.sampled_from([None, 1, 3]),
)
@settings(deadline=None, max_examples=100)
def test_behaves_like_a_list_inside_its_budget(steps: list[tuple[str, int]], width: int | None) -> None:
    booked = account(64 * 1024)
    grown, model = (
        Growable(np.int64, booked, width=width),
        np.empty((0,) if width is None else (0, width), dtype=np.int64),
    )
    for number, (name, count) in enumerate(steps):
        if name == "append":
            new = np.full((count, *model.shape[1:]), number)
            try:
                grown.append(new)
                model = np.concatenate([model, new])
            except BudgetExceeded:
                pass
        elif name == "extend":
            try:
                grown.extend(count)[:] = number
                model = np.concatenate([model, np.full((count, *model.shape[1:]), number)])
            except BudgetExceeded:
                pass
        elif name == "truncate":
            grown.truncate(count)
            model = model[:count]
        elif name == "ensure":
            try:
                grown.ensure(count)
                assert len(grown.whole) >= count
            except BudgetExceeded:
                assert (count - len(grown.whole)) * grown.row_nbytes > 0
        else:
            grown.clear()
            model = model[:0]
            assert booked.bytes == 0
        assert np.array_equal(grown.data, model)
        assert grown.length == len(model)
        assert grown.nbytes == booked.bytes == grown.whole.nbytes


def test_takes_exactly_what_is_needed_when_the_generous_growth_does_not_fit() -> None:
    booked = account(64 * 1024)
    grown = Growable(np.int64, booked)
    grown.append(np.arange(8000))
    grown.append(np.arange(192))
    assert len(grown.whole) == 8192
    assert booked.bytes == 64 * 1024
    with pytest.raises(BudgetExceeded, match="test cannot grow to 8,193 entries of 8 bytes"):
        grown.append([1])
    assert grown.length == 8192
    assert np.array_equal(grown.data[-192:], np.arange(192))


def test_growth_is_geometric() -> None:
    grown, capacities = Growable(np.int32, account()), set()
    for value in range(10_000):
        grown.append([value])
        capacities.add(len(grown.whole))
    assert len(capacities) < 25
    assert np.array_equal(grown.data, np.arange(10_000))


def test_large_blocks_grow_in_mappings_that_keep_what_views_show() -> None:
    grown = Growable(np.int64, account(10**8))
    grown.wide = True
    grown.append(np.arange(100_000))
    view = grown.data
    grown.append(np.arange(500_000))
    assert np.array_equal(view, np.arange(100_000))  # it keeps the old block
    del view
    grown.append(np.arange(2_000_000))
    assert np.array_equal(grown.data, np.concatenate([np.arange(n) for n in (100_000, 500_000, 2_000_000)]))
    assert grown._mapping is not None
    grown.clear()
    grown.append([1, 2])
    assert grown._mapping is None
    assert grown.data.tolist() == [1, 2]


def test_growing_does_without_mappings_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError("no more mappings")

    monkeypatch.setattr("earlyjoin.state.growable.mmap.mmap", refused)
    grown = Growable(np.int64, account(10**8))
    grown.wide = True
    for start in range(0, 300_000, 50_000):
        grown.append(np.arange(start, start + 50_000))
    assert np.array_equal(grown.data, np.arange(300_000))


def test_wide_entries_begin_with_no_more_room_than_they_need() -> None:
    wide, narrow = Growable(np.dtype((np.void, 1640)), account()), Growable(np.int64, account())
    wide.extend(1)
    narrow.extend(1)
    assert (len(wide.whole), len(narrow.whole)) == (1, 16)
