"""Which input is read next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlyjoin.algorithms.reading import Ratio, make_reading
from earlyjoin.errors import InputError


def sequence(strategy: Ratio, lengths: list[int], count: int, read: list[int] | None = None) -> str:
    """The inputs of the next rows, one row at a time."""
    rows, sides = read if read is not None else [0] * len(lengths), ""
    for _ in range(count):
        side = strategy.next_side(rows, [rows[s] >= lengths[s] for s in range(len(lengths))])
        if side is None:
            break
        rows[side] += 1
        sides += "abc"[side]
    return sides


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        ("1:1", "abababab"),
        ("5:1", "abaaaaab"),
        ("1:5", "abbbbbab"),
        ("2:1", "abaabaab"),
        ("1:0", "aaaaaaaa"),
        ("0:1", "bbbbbbbb"),
    ],
)
def test_sequences(ratio: str, expected: str) -> None:
    found = sequence(Ratio.parse(ratio), [100, 100], 8)
    a, b = (int(part) for part in ratio.split(":"))
    assert found == expected
    assert str(Ratio.parse(ratio)) == ratio
    cycle = sequence(Ratio.parse(ratio), [1000, 1000], 30 * (a + b))
    assert (cycle.count("a"), cycle.count("b")) == (30 * a, 30 * b)


def test_an_ended_input_leaves_the_others() -> None:
    assert sequence(Ratio((5, 1)), [3, 4], 99) == "abaabbb"
    assert sequence(Ratio((1, 0)), [3, 2], 99) == "aaabb"
    assert sequence(Ratio((0, 1)), [3, 2], 99) == "bbaaa"
    assert Ratio().next_side([5, 5], [True, True]) is None


def test_three_inputs() -> None:
    assert sequence(Ratio((2, 1, 0)), [4, 2, 2], 99) == "abaabacc"


def test_switching_counts_from_the_switch_on() -> None:
    strategy, read = Ratio((1, 1)), [0, 0]
    assert sequence(strategy, [999, 999], 100, read).count("a") == 50
    strategy.switch((5, 1), read)
    assert str(strategy) == "5:1"
    assert sequence(strategy, [999, 999], 12, read) == "abaaaaabaaaa"
    strategy.switch((0, 1), read)
    assert sequence(strategy, [999, 999], 3, read) == "bbb"
    with pytest.raises(InputError):
        strategy.switch((0, 0), read)
    assert str(strategy) == "0:1", "a refused switch changes nothing"


@given(a=st.integers(0, 9), b=st.integers(0, 9), batches=st.lists(st.integers(1, 50), min_size=1, max_size=60))
def test_whole_batches_stay_near_the_ratio(a: int, b: int, batches: list[int]) -> None:
    if a + b == 0:
        return
    strategy, rows = Ratio((a, b)), [0, 0]
    for size in batches:
        side = strategy.next_side(rows, [False, False])
        assert side is not None
        rows[side] += size
    # Never ahead by more than the last batch.
    if a and b:
        assert abs(rows[0] / a - rows[1] / b) <= 50 / min(a, b)
    else:
        assert rows[0 if b == 0 else 1] == sum(batches)


@pytest.mark.parametrize("text", ["", "1", "1:", ":1", "1:2:", "a:b", "-1:1", "1.5:1", "1/1"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is neither auto nor of the form A:B, such as 1:1 or 5:1"):
        Ratio.parse(text)


@pytest.mark.parametrize("weights", [(0, 0), (-1, 1)])
def test_weights_that_read_nothing_are_refused(weights: tuple[int, int]) -> None:
    with pytest.raises(InputError, match=f"reading ratio {weights[0]}:{weights[1]} needs whole numbers"):
        Ratio(weights)


def test_a_ratio_has_a_number_for_each_input() -> None:
    assert make_reading("1:2:3", [None] * 3).weights == (1, 2, 3)
    for rows in ([None] * 2, [None] * 4):
        with pytest.raises(InputError, match=f"'1:2:3' is for 3 inputs, there are {len(rows)}"):
            make_reading("1:2:3", rows)
    assert str(make_reading("auto", [10, 500, 600])) == "auto: 1:1:1, then 8:1:1"
