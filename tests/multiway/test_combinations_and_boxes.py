"""The kernel that writes cross products in pieces, and the rule that says which combinations are new."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.kernels.combinations import combinations
from earlyjoin.state.joined import same_run, unjoined_boxes

groups = st.integers(2, 4).flatmap(
    lambda sides: st.lists(
        st.tuples(*[st.integers(1, 4).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))] * sides), max_size=5
    )
)


def arrays(drawn: list[tuple[tuple[int, int], ...]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts, counts and old counts of some groups that lie one behind the other on each side."""
    sides = len(drawn[0]) if drawn else 3
    counts = np.array([[n for n, _ in group] for group in drawn], dtype=np.int64).reshape(len(drawn), sides)
    old = np.array([[o for _, o in group] for group in drawn], dtype=np.int64).reshape(len(drawn), sides)
    return np.cumsum(counts, axis=0) - counts, counts, old


def written(starts: np.ndarray, counts: np.ndarray, room: int) -> list[tuple[int, ...]]:
    sides = starts.shape[1]
    cursor, out, found = np.zeros(1 + sides, dtype=np.int64), np.empty((sides, room), dtype=np.int64), []
    while cursor[0] < len(starts):
        count = combinations(starts, counts, cursor, out)
        assert count > 0
        found += [tuple(one) for one in out[:, :count].T.tolist()]
    return found


@given(groups, st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_combinations_are_cross_products_whatever_the_pieces(
    drawn: list[tuple[tuple[int, int], ...]], room: int
) -> None:
    starts, counts, _ = arrays(drawn)
    expected = [
        one
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True)
        for one in itertools.product(*(range(s, s + n) for s, n in zip(start, count, strict=True)))
    ]
    assert written(starts, counts, room) == expected


@given(groups)
@settings(max_examples=40, deadline=None)
def test_unjoined_boxes_are_all_combinations_with_a_new_row(drawn: list[tuple[tuple[int, int], ...]]) -> None:
    starts, counts, old = arrays(drawn)
    expected = [
        one
        for start, count, before in zip(starts.tolist(), counts.tolist(), old.tolist(), strict=True)
        for one in itertools.product(*(range(s, s + n) for s, n in zip(start, count, strict=True)))
        if any(row >= s + o for row, s, o in zip(one, start, before, strict=True))
    ]
    boxes, sizes = unjoined_boxes(starts, counts, old)
    assert (sizes > 0).all()
    assert sorted(written(boxes, sizes, 7)) == sorted(expected)


def test_same_run_of_many() -> None:
    runs = np.array([[1, 1, 2], [1, 2, 2], [1, 1, 2]])
    assert same_run(*runs).tolist() == [True, False, True]
    assert same_run(runs[0], runs[1]).tolist() == [True, False, True]
