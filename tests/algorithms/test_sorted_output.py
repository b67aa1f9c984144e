"""Sorted output: results in the order of the left key, at any depth of the merge tree and for hot keys."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import earlyjoin as ej
from algorithms.harness import Join, batch
from earlyjoin.errors import UnsupportedError

SORTED = {"sorted_output": True}
SCHEMA = batch([]).schema


def random_keys(count: int, top: int) -> list[list[int]]:
    rng = np.random.default_rng(3)
    return [rng.integers(0, top, count).tolist() for _ in range(2)]


def results(join: Join, keys: list[list[int]]) -> list[int]:
    """Left keys of the results, in the order in which they come; nothing may come before the end."""
    for start in range(0, len(keys[0]), 40):
        for side in (0, 1):
            assert join.arrive(side, batch(keys[side][start : start + 40])) == []
    found = [row["k"] for row in join.finish()]
    join.close()
    return found


@pytest.mark.parametrize(
    ("memory", "fan_in"), [("16rows", 2), ("16rows", 10), ("100rows", 2), ("64KiB", 2), ("64KiB", 10), ("1MB", 10)]
)
@pytest.mark.parametrize("eps", [0, 3])
def test_sorted_and_exact(tmp_path: Path, memory: str, fan_in: int, eps: int) -> None:
    count = {"16rows": 100, "64KiB": 1200}.get(memory, 250)
    keys = random_keys(count, count)
    on = ej.band("k", eps=eps) if eps else ej.equal("k")
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory=memory, on=on, options=SORTED | {"fan_in": fan_in})
    found = results(join, keys)
    right = Counter(keys[1])
    expected = Counter({k: sum(right[k + d] for d in range(-eps, eps + 1)) for k in set(keys[0])})
    times = Counter(keys[0])
    assert found == sorted(found)
    assert Counter(found) == Counter({k: n * times[k] for k, n in expected.items() if n})
    if memory == "16rows":
        levels = join.counters.tuples_written / (2 * count)
        assert levels > 4 if fan_in == 2 else levels >= 2


@pytest.mark.parametrize(("memory", "count"), [("16rows", 24), ("64KiB", 90)])
def test_a_hot_key_larger_than_the_memory_meets_its_pages_one_by_one(tmp_path: Path, memory: str, count: int) -> None:
    rows = batch([5] * count + list(range(10)), pad=["x" * 750] * (count + 10))
    join = Join("pmj", rows.schema, rows.schema, tmp_path, memory=memory, options=SORTED, output_rows=4096)
    assert join.arrive(0, rows) + join.arrive(1, rows) == []
    found = [row["k"] for row in join.finish()]
    assert found == [0, 1, 2, 3, 4, *[5] * (count + 1) ** 2, 6, 7, 8, 9]
    assert join.counters.tuples_read > 2 * join.counters.tuples_written, "right pages were read again and again"
    join.close()


def test_words_at_the_ends_of_their_range(tmp_path: Path) -> None:
    top = 2**63 - 1
    keys = [[top, -top - 1, top - 1], [top, -top - 1, 0]]
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, on=ej.band("k", eps=1), options=SORTED)
    assert results(join, keys) == [-top - 1, top - 1, top]


def test_explain_says_what_it_costs() -> None:
    table = pa.table({"k": [1, 2]})
    query = ej.join(table, table, "k", algorithm="pmj", options=SORTED)
    assert "none before every input has ended" in query.explain()
    assert query.to_arrow()["k"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("on", "how", "why"),
    [
        (ej.equal("k"), "left", "sorted-output is for inner joins, not for a left join"),
        (ej.less("k"), "inner", "matches rows of any distance"),
        (ej.equal("s"), "inner", "is sorted by hash"),
    ],
    ids=str,
)
def test_where_no_order_makes_sense_it_is_refused(tmp_path: Path, on: Any, how: str, why: str) -> None:
    schema = pa.schema([("k", pa.int64()), ("s", pa.string())])
    with pytest.raises(UnsupportedError, match=why):
        Join("pmj", schema, schema, tmp_path, on=on, how=how, options=SORTED)
