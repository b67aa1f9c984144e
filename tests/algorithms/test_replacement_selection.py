"""Replacement selection: longer runs, each pair once, and what comes in order makes one run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from algorithms.harness import Join, batch
from earlyjoin.state import joined

SELECTION = {"replacement_selection": True}
SCHEMA = batch([]).schema


def feed(join: Join, keys: list[np.ndarray[Any, Any]], piece: int = 50) -> int:
    """Both sides in turns; the number of results."""
    found = 0
    for start in range(0, len(keys[0]), piece):
        for side in (0, 1):
            found += len(join.arrive(side, batch(keys[side][start : start + piece].tolist())))
    return found


def random_keys(count: int, top: int, seed: int = 4) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, top, count) for _ in range(2)]


def runs(join: Join) -> list[list[int]]:
    """Rows of each run of each side."""
    pairs = join.operator._pairs  # type: ignore[attr-defined]
    return [[pair.runs[side].rows for pair in pairs] for side in (0, 1)]


@pytest.mark.parametrize("algorithm", ["pmj", "smj"])
def test_runs_are_about_twice_the_memory(tmp_path: Path, algorithm: str) -> None:
    keys = random_keys(8000, 10**9)
    lengths, counts = {}, {}
    for name, options in (("plain", None), ("selection", SELECTION)):
        join = Join(algorithm, SCHEMA, SCHEMA, tmp_path, memory="640rows", options=options)
        feed(join, keys)
        sides = runs(join)
        lengths[name] = [np.mean(side[1:]) for side in sides]  # the first run begins with an unsorted memory
        counts[name] = len(sides[0])
        join.close()
    assert lengths["plain"] == [320, 320]
    assert min(lengths["selection"]) >= 1.8 * 320
    assert counts["selection"] <= 0.6 * counts["plain"]


@pytest.mark.parametrize("memory", ["64rows", "128KiB"])
def test_every_pair_once_also_in_deep_merge_trees(tmp_path: Path, memory: str) -> None:
    keys = random_keys(3000 if "KiB" in memory else 600, 300)
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory=memory, options=SELECTION | {"fan_in": 2}, output_rows=4096)
    early = feed(join, keys)
    found = early + len(join.finish())
    right = Counter(keys[1].tolist())
    assert found == sum(right[k] for k in keys[0].tolist())
    assert 0 < early < found
    join.close()


def test_rows_that_stayed_in_memory_together_are_joined_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = random_keys(300, 60)
    expected = sum(Counter(keys[1].tolist())[k] for k in keys[0].tolist())
    for rule, exact in ((joined.resided_together, True), (lambda *stays: np.zeros(len(stays[0][0]), bool), False)):
        monkeypatch.setattr(joined, "resided_together", rule)
        join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory="64rows", options=SELECTION, output_rows=4096)
        assert ((feed(join, keys, 10) + len(join.finish())) == expected) is exact
        join.close()


def test_input_in_order_makes_one_run(tmp_path: Path) -> None:
    keys = [np.arange(300), np.arange(300)]
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory="64rows", options=SELECTION)
    found = feed(join, keys, 5)
    assert found + len(join.finish()) == 300
    assert found > 270, "rows of both sides were in memory together"
    assert join.counters.tuples_written < 660, "nothing is merged twice"
    join.close()


def test_strings_and_nested_columns_close_up(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    schema = pa.schema([("k", pa.string()), ("list", pa.list_(pa.int64())), ("flag", pa.bool_())])
    rows = [
        {"k": f"{'x' * int(rng.integers(0, 20))}{k % 40}", "list": [k] * int(k % 3), "flag": None if k % 5 else True}
        for k in range(400)
    ]
    join = Join("pmj", schema, schema, tmp_path, memory="96KiB", options=SELECTION, output_rows=4096)
    found = []
    for start in range(0, 400, 20):
        piece = pa.RecordBatch.from_pylist(rows[start : start + 20], schema=schema)
        for side in (0, 1):
            found += join.arrive(side, piece)
    found += join.finish()
    assert join.counters.pages_written > 0
    expected = Counter((i, j) for i, a in enumerate(rows) for j, b in enumerate(rows) if a["k"] == b["k"])
    assert len(found) == sum(expected.values())
    made = Counter(str((row["list"], row["flag"], row["list_right"], row["flag_right"])) for row in found)
    assert made == Counter(
        str((rows[i]["list"], rows[i]["flag"], rows[j]["list"], rows[j]["flag"])) for i, j in expected
    )
    join.close()
