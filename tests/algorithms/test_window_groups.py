"""Groups of equal words on several sides: every combination once, in bounded steps, from any step on."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.algorithms.protocol import Context, Step
from earlyjoin.algorithms.window_merge.groups import GroupJoin, Ordered, Workspace
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.disk.spill import SpillDirectory

Words = list[list[int]]


class Groups:
    """A join of sides with such words that keeps what it is given."""

    def __init__(self, words: Words, context: Context, most_words: int) -> None:
        self.context = context
        workspace = Workspace(len(words), context.output_rows)
        workspace.words = most_words
        sides = [np.asarray(side, dtype=np.int64) for side in words]
        orders = [np.argsort(side, kind="stable") for side in sides]
        ordered = [Ordered(order, side[order]) for side, order in zip(sides, orders, strict=True)]
        self.found: list[tuple[int, ...]] = []
        self.join = GroupJoin(ordered, workspace, context, self.take)

    def take(self, index: tuple[Int64, ...]) -> Step:
        assert 0 < len(index[0]) <= self.context.output_rows
        self.found += zip(*(rows.tolist() for rows in index), strict=True)
        return None


def context_of(directory: Path, output_rows: int) -> Context:
    spill = SpillDirectory(directory)
    spill.close()  # nothing is written
    return Context(budget=Budget(MemoryLimit(rows=100)), spill=spill, output_rows=output_rows)


@pytest.mark.parametrize("sides", [2, 3])
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_every_combination_once_wherever_it_is_saved(
    tmp_path_factory: pytest.TempPathFactory, sides: int, data: st.DataObject
) -> None:
    words = data.draw(st.lists(st.lists(st.integers(0, 6), max_size=9), min_size=sides, max_size=sides))
    output_rows, most_words = data.draw(st.sampled_from([1, 3, 100])), data.draw(st.sampled_from([1, 2, 100]))
    context = context_of(tmp_path_factory.mktemp("groups"), output_rows)
    groups = Groups(words, context, most_words)
    found = []
    while not groups.join.done:
        groups.join.step()
        if not groups.join.done:
            again = Groups(words, context, most_words)
            again.join.load(groups.join.save())
            found += groups.found
            groups = again
    found += groups.found
    places = [range(len(side)) for side in words]
    expected = [rows for rows in itertools.product(*places) if len({words[s][row] for s, row in enumerate(rows)}) == 1]
    assert sorted(found) == expected


def test_steps_become_shorter_with_the_memory(tmp_path: Path) -> None:
    groups = Groups([[1] * 20, [1] * 20], context_of(tmp_path, 100), 10)
    groups.join.step()
    groups.context.output_rows = 7
    groups.join.step()
    assert len(groups.found) == 107
