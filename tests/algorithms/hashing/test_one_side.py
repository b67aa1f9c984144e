"""A declared 1:N join: a repeated key of the one-side is bad input, wherever and whenever the two rows meet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import earlyjoin as ej
from algorithms.harness import Join
from algorithms.hashing.driving import SCHEMA, Run, interleaved, naive, random_keys
from earlyjoin.algorithms.hash_join.one_side import repeated_row
from earlyjoin.errors import InputError
from earlyjoin.predicates.encoding.keys import Keys

ALGORITHMS = ["xjoin", "hmj", "rpj", "rpj-md", "rpj-dd", "dhj", "ehj", "dphj"]
REPEATED = "occurs more than once"
ENDINGS = [
    pytest.param(how, memory, marks=[] if memory == "40rows" or how == "inner" else [pytest.mark.slow])
    for how in ("inner", "left", "full", "semi", "anti")
    for memory in ("40rows", "2000rows")
]
"""With rows on disk, and without."""


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("memory", ["16rows", "60rows", "4MB"])
@pytest.mark.parametrize("repeated", [3, 90])
def test_a_repeated_key_on_the_one_side_is_bad_input(
    algorithm: str, memory: str, repeated: int, tmp_path: Path
) -> None:
    keys = np.random.default_rng(13).permutation(120).tolist()
    keys = [*keys[:repeated], keys[0], *keys[repeated:]]
    arrivals = interleaved(keys, random_keys(150, 120, seed=14), 5, 5)
    with pytest.raises(InputError, match=rf"declared to have every key once, but k = {keys[0]} occurs more than once"):
        Run(algorithm, tmp_path, arrivals, memory=memory, options={"one_side": "left"}, how="left")


def test_the_one_side_must_be_kept_in_memory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one-side is kept in memory"):
        Join("ehj", SCHEMA, SCHEMA, tmp_path, options={"one_side": "left", "build_side": "right"})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("how", "memory"), ENDINGS)
def test_a_repeated_key_after_the_other_input_has_ended(algorithm: str, how: str, memory: str, tmp_path: Path) -> None:
    """The first of the two rows took the matches away, so the second would silently find none."""
    options = {"partitions": 2, "one_side": "left"}
    right, left = [(1, key) for key in random_keys(100, 120, seed=1)], list(range(120))
    given: dict[str, Any] = {"memory": memory, "how": how, "options": options}
    Run(algorithm, tmp_path, [*right, *((0, key) for key in left)], **given)
    for at in (0, 60, 119):
        again = [(0, key) for key in [*left, left[at]]]
        with pytest.raises(InputError, match=REPEATED):
            Run(algorithm, tmp_path, [*right, *again], **given)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("one_side", ["left", "right"])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
def test_a_repeated_key_anywhere(algorithm: str, one_side: str, seed: int, tmp_path: Path) -> None:
    """Rows of the one key may meet in memory, on disk, in a merge, or as one hot word of it."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(40, 120))
    once, many = rng.permutation(2 * count)[:count].tolist(), random_keys(int(rng.integers(0, 120)), 2 * count, seed)
    first, second = rng.choice(count, 2, replace=False)
    many += [once[first]] * int(rng.choice([0, 80]))
    options = {"partitions": int(rng.choice([1, 2, 5])), "one_side": one_side}
    given: dict[str, Any] = {"memory": str(rng.choice(["30rows", "60rows"])), "options": options}
    given |= {"react": int(rng.choice([0, 3])), "batch_rows": int(rng.choice([1, 20]))}
    ratio = [int(rng.choice([1, 3, 1000])) for _ in range(2)]
    arrivals = interleaved(*_sides(one_side, once, many), *ratio)
    assert Run(algorithm, tmp_path, arrivals, **given).pairs == naive(arrivals)
    once[second] = once[first]
    with pytest.raises(InputError, match=REPEATED):
        Run(algorithm, tmp_path, interleaved(*_sides(one_side, once, many), *ratio), **given)


def _sides(one_side: str, once: list[int], many: list[int]) -> tuple[list[int], list[int]]:
    return (once, many) if one_side == "left" else (many, once)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("how", ["left", "full", "anti"])
def test_unmatched_rows_of_the_one_side_do_not_wait_for_its_end(algorithm: str, how: str, tmp_path: Path) -> None:
    """They are kept for the check of their keys, but they have met all that they could meet; and they go out once."""
    arrivals = [*((1, key) for key in range(10)), *((0, key) for key in range(300))]
    run = Run(algorithm, tmp_path, arrivals, memory="60rows", how=how, options={"partitions": 2, "one_side": "left"})
    alone = [row["id"] for row in run.rows if how == "anti" or row["id_right"] is None]
    assert sorted(alone) == list(range(10, 300))
    if (
        not run.operator.policy.traits.freezes
    ):  # else partitions of the other side go to disk, to keep the order of freezing
        assert len([row for row in run.before_cleanup if row["id"] >= 10]) == 290


@pytest.mark.parametrize("one_side", ["left", "right"])
def test_a_repeated_key_in_a_merge_that_was_paused(one_side: str, tmp_path: Path) -> None:
    """Wherever the clean-up stands when it is saved, the one that goes on from there finds it."""
    once, many = [*range(0, 40, 2), 20, *range(41, 80, 2)], [20] * 60
    given: dict[str, Any] = {"memory": "20rows", "options": {"partitions": 1, "one_side": one_side}, "output_rows": 5}
    pauses = 0
    for wait in range(0, 100_000, 5):
        spill = tmp_path / str(wait)
        spill.mkdir()
        join = Join("hmj", SCHEMA, SCHEMA, spill, **given)
        for side, keys in enumerate(_sides(one_side, once, many)):
            for at in range(0, len(keys), 5):
                part = keys[at : at + 5]
                join.arrive(side, pa.RecordBatch.from_arrays([pa.array(part), pa.array(part)], schema=SCHEMA))
            join.end(side)
        paused = _paused(join, wait)
        if paused is None:
            break
        pauses += 1
        again = Join("hmj", SCHEMA, SCHEMA, spill, **given)
        again.operator.restore(paused)
        with pytest.raises(InputError, match=REPEATED):
            again.take(again.operator.resume())
        again.close()
        join.close()
    assert pauses > 5


def _paused(join: Join, steps: int) -> Any:
    """The state after so many steps of the clean-up; None if the repeated key is found before."""
    work = join.operator.finish()
    try:
        for _ in range(steps):
            next(work)
    except InputError:
        return None
    saved = join.operator.snapshot()
    saved.values = json.loads(json.dumps(saved.values))
    return saved


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), max_size=30))
def test_equal_keys_among_equal_words(rows: list[tuple[int, int]]) -> None:
    """Words may be equal where keys are not."""
    key = ej.equal("k").bind(SCHEMA, SCHEMA)
    words = np.array([word for word, _ in rows], dtype=np.int64)
    keys = Keys(np.array([[key] for _, key in rows], dtype=np.int64).reshape(-1, 1))
    order = np.argsort(words, kind="stable")
    found = repeated_row(key, keys, order, words[order])
    assert (found is None) == (len(set(rows)) == len(rows))
    assert found is None or rows.count(rows[found]) > 1
