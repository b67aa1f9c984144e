"""``q.estimate`` of sort-based joins: from the first rows on, through spills, to the exact end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.local.query import LocalQuery

ROWS = 2_000


def inputs(seed: int, *, skew: bool = False, nulls: float = 0.0) -> tuple[pa.Table, pa.Table, int]:
    random = np.random.default_rng(seed)
    keys = []
    for _ in range(2):
        drawn = random.integers(0, 200, ROWS)
        if skew:
            ends = np.cumsum(1 / np.arange(1, 201))
            drawn = np.searchsorted(ends / ends[-1], random.random(ROWS))
        keys.append(drawn)
    missing = [random.random(ROWS) < nulls for _ in keys]
    counts = [np.bincount(key[~gone], minlength=200) for key, gone in zip(keys, missing, strict=True)]
    left, right = (
        pa.table({"k": pa.array(key, mask=gone), "n": np.arange(ROWS)}) for key, gone in zip(keys, missing, strict=True)
    )
    return left, right, int(np.dot(*counts))


def watched(query: LocalQuery, every_rows: int = 250) -> list[dict[str, Any]]:
    """The estimates until all rows are read, asked each time that so many more were."""
    found, at, taken = [], 0, query._execution.rows_taken
    for _ in query:
        read = sum(taken)
        if read >= at:
            at = read + every_rows
            if (estimate := query.estimate) is not None:
                found.append(estimate)
        if read == 2 * ROWS:
            break
    return found


@pytest.mark.parametrize("memory", ["600rows", "4MB", None])
@pytest.mark.parametrize("skew", [False, True])
def test_estimates_cover_all_the_way(memory: str | None, skew: bool) -> None:
    asked = covered = 0
    for seed in range(2):
        left, right, truth = inputs(seed, skew=skew)
        query = ej.join(left, right, on="k", algorithm="pmj", memory=memory, batch_rows=100)
        found = watched(query)
        query.close()
        asked += len(found)
        covered += sum(one["low"] <= truth <= one["high"] for one in found)
        assert all(one["low"] <= one["rows"] <= one["high"] for one in found)
    assert asked >= 8
    assert covered >= 0.85 * asked


def test_there_is_one_before_the_first_run_is_full_and_after_spills() -> None:
    left, right, truth = inputs(5)
    query = ej.join(left, right, on="k", algorithm="pmj", memory="2000rows", batch_rows=100)
    assert "not arrived" in str(query.estimate_reason)
    widths = {}
    for _ in query:
        spilled = query._execution.counters.flushes > 0
        estimate = query.estimate
        if estimate is not None and spilled not in widths:
            assert estimate["low"] <= truth <= estimate["high"]
            widths[spilled] = estimate["high"] - estimate["low"]
        if len(widths) == 2:
            break
    assert widths[True] < widths[False]
    query.close()


def test_rows_without_a_key_are_rows() -> None:
    left, right, truth = inputs(6, nulls=0.4)
    query = ej.join(left, right, on="k", algorithm="pmj", memory="1500rows", batch_rows=200)
    found = watched(query)
    assert len(found) > 3
    query.close()
    assert 0.85 * truth < found[-1]["rows"] < 1.15 * truth


@pytest.mark.parametrize("algorithm", ["smj", "smj-semi"])
def test_nothing_before_the_last_merge(algorithm: str) -> None:
    left, right, truth = inputs(1)
    query = ej.join(left, right, on="k", algorithm=algorithm, memory="4MB")
    reason = str(query.estimate_reason)
    assert algorithm in reason
    assert "before its last merge" in reason
    assert "pmj" in reason
    assert query.estimate is None
    assert query.to_arrow().num_rows == truth
    assert query.estimate == {"rows": truth, "low": truth, "high": truth, "confidence": 1.0}


@pytest.mark.parametrize("order", ["sorted", "same"])
def test_not_random_gives_a_reason(order: str) -> None:
    random = np.random.default_rng(3)
    values = np.arange(ROWS) if order == "sorted" else random.permutation(ROWS)
    table = pa.table({"k": values})
    query = ej.join(table, table, on="k", algorithm="pmj", memory="2000rows", batch_rows=250)
    while sum(query._execution.rows_taken) < ROWS:
        next(iter(query))
    assert query.estimate is None
    assert ("not in random order" if order == "sorted" else "depend on each other") in str(query.estimate_reason)
    query.close()


def test_pause_and_resume(tmp_path: Path) -> None:
    left, right, truth = inputs(8)
    query = ej.join(left, right, on="k", algorithm="pmj", memory="600rows", batch_rows=100)
    while sum(query._execution.rows_taken) < ROWS:
        next(iter(query))
    before = query.estimate
    assert before is not None
    query.pause(tmp_path / "paused")
    again = ej.resume(tmp_path / "paused", left=left, right=right)
    assert again.estimate == before
    found = watched(again)
    again.close()
    assert found
    assert 0.9 * truth < found[-1]["rows"] < 1.1 * truth
    assert found[-1]["high"] - found[-1]["low"] < before["high"] - before["low"]


def test_the_papers_interval_is_narrower_under_skew() -> None:
    left, right, _ = inputs(2, skew=True)
    widths = {}
    for estimator in ("honest", "paper"):
        query = ej.join(left, right, on="k", algorithm="pmj", memory="600rows", batch_rows=250, estimator=estimator)  # type: ignore[arg-type]
        while sum(query._execution.rows_taken) < ROWS:
            next(iter(query))
        estimate = query.estimate
        assert estimate is not None
        widths[estimator] = (estimate["high"] - estimate["low"]) / estimate["rows"]
        query.close()
    assert widths["paper"] < 0.5 * widths["honest"]
