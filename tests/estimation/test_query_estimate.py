"""``q.estimate`` of real joins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import earlyjoin as ej
from earlyjoin.local.query import LocalQuery
from earlyjoin.local.sources import open_source

ROWS = 40_000


def keys(seed: int, rows: int = ROWS, domain: int = 2_000, *, skew: bool = False) -> np.ndarray:
    random = np.random.default_rng(seed)
    if skew:
        ends = np.cumsum(1 / np.arange(1, domain + 1))
        return np.searchsorted(ends / ends[-1], random.random(rows))
    return random.integers(0, domain, rows)


def table(values: np.ndarray) -> pa.Table:
    return pa.table({"k": values, "n": np.arange(len(values))})


def estimates(query: LocalQuery, *, every: int = 1) -> list[dict[str, Any]]:
    found = []
    for number, _ in enumerate(query):
        if number % every == 0 and (estimate := query.estimate) is not None:
            found.append(estimate)
    return found


def true_size(left: np.ndarray, right: np.ndarray) -> int:
    size = int(max(left.max(), right.max())) + 1
    return int(np.dot(np.bincount(left, minlength=size), np.bincount(right, minlength=size)))


@pytest.mark.parametrize("skew", [False, True])
def test_shuffled_inputs_are_covered_all_the_way(skew: bool) -> None:
    covered = asked = 0
    for seed in range(5):
        rows = 8_000 if skew else ROWS
        left, right = (keys(2 * seed + side, rows, skew=skew) for side in (0, 1))
        truth = true_size(left, right)
        query = ej.join(table(left), table(right), on="k", algorithm="shj", batch_rows=rows // 20)
        found = estimates(query, every=20)
        assert query.estimate == {"rows": truth, "low": truth, "high": truth, "confidence": 1.0}
        assert query.estimate_reason is None
        asked += len(found)
        covered += sum(one["low"] <= truth <= one["high"] for one in found)
        assert all(one["low"] <= one["rows"] <= one["high"] for one in found)
    assert asked >= 25
    assert covered >= 0.85 * asked


def test_middle_of_a_join() -> None:
    left, right = keys(1), keys(2)
    truth = true_size(left, right)
    query = ej.join(table(left), table(right), on="k", batch_rows=4000)
    assert query.estimate is None
    assert "not arrived" in str(query.estimate_reason)
    while query.progress.rows_in[1] < ROWS // 2:
        next(iter(query))
    estimate = query.estimate
    assert estimate is not None
    assert set(estimate) == {"rows", "low", "high", "confidence"}
    assert estimate["low"] <= truth <= estimate["high"]
    assert estimate["high"] - estimate["low"] < 0.05 * truth
    assert query.progress.estimate == query.summary()["estimate"] == estimate
    assert f"{estimate['rows']:,} rows" in query.explain()
    query.close()


@pytest.mark.parametrize("order", ["sorted", "clustered", "same"])
def test_not_random_gives_a_reason(order: str) -> None:
    shuffled = np.random.default_rng(3).permutation(ROWS)
    left, right = {
        "sorted": (np.sort(keys(1)), keys(2)),
        "clustered": (keys(1), np.repeat(np.random.default_rng(1).permutation(ROWS // 5), 5)),
        "same": (shuffled, shuffled),
    }[order]
    query = ej.join(table(left), table(right), on="k", batch_rows=2000)
    for _ in range(6):
        next(iter(query))
        assert query.estimate is None or order == "same"
    assert query.estimate is None
    reason = str(query.estimate_reason)
    assert ("depend on each other" if order == "same" else "not in random order") in reason
    assert "order='shuffled'" in reason
    assert reason in query.explain()
    query.close()


def test_bands_and_text_keys_too() -> None:
    left, right = keys(1, 6000), keys(2, 6000)
    truth = int((np.abs(left[:, None] - right[None, :]) <= 1).sum())
    query = ej.join(table(left), table(right), on=ej.band("k", eps=1), algorithm="nested", batch_rows=500)
    found = estimates(query, every=4)
    assert found
    assert sum(one["low"] <= truth <= one["high"] for one in found) >= 0.8 * len(found)
    texts = [pa.table({"k": [f"key{value}" for value in side], "n": side}) for side in (left, np.sort(right))]
    query = ej.join(texts[0], texts[1], on="k", batch_rows=500)
    next(iter(query))
    assert "right input" in str(query.estimate_reason)
    query.close()


def test_spilling_keeps_the_estimate_of_the_rows_before() -> None:
    left, right = keys(1, 6000, 300), keys(2, 6000, 300)
    truth = true_size(left, right)
    query = ej.join(table(left), table(right), on="k", algorithm="nested", memory="4000rows", batch_rows=300)
    asked = [query.estimate for _ in query if query.summary()["spill"]["tuples_written"]]
    seen = [one for one in asked if one is not None]
    # The rows before the first spill are all that counts; only ``low`` grows with what is found.
    assert len(seen) > 2
    assert len({one["high"] for one in seen if one["confidence"] < 1}) <= 2
    assert seen[0]["low"] <= truth <= seen[0]["high"]


def test_why_not() -> None:
    left, right = table(keys(1, 500)), table(keys(2, 500))
    reasons = {
        "left joins": ej.join(left, right, on="k", how="left"),
        "unknown": ej.join(iter(left.to_batches(max_chunksize=50)), right, on="k", algorithm="shj"),
        "too small": ej.join(left, right, on="k", memory="64KiB", algorithm="nested"),
    }
    assert "inner joins" in str(reasons["left joins"].estimate_reason)
    assert "left input is unknown" in str(reasons["unknown"].estimate_reason)
    assert "memory is too small" in str(reasons["too small"].estimate_reason)
    for query in reasons.values():
        assert query.estimate is None
        query.close()


def test_pause_and_resume_goes_on(tmp_path: Path) -> None:
    left, right = keys(1), keys(2)
    query = ej.join(table(left), table(right), on="k", batch_rows=2000)
    while query.progress.rows_in[1] < ROWS // 4:
        next(iter(query))
    before = query.estimate
    query.pause(tmp_path / "paused")
    again = ej.resume(tmp_path / "paused", left=table(left), right=table(right))
    assert before is not None
    assert again.estimate == before
    rest = estimates(again, every=10)
    assert rest
    truth = true_size(left, right)
    assert all(one["low"] * 0.99 <= truth <= one["high"] * 1.01 for one in rest)
    assert again.estimate is not None
    assert again.estimate["rows"] == truth


def _clustered_file(path: Path, values: np.ndarray, group_rows: int) -> Path:
    pq.write_table(table(np.sort(values)), path, row_group_size=group_rows)
    return path


def test_block_shuffled_parquet_gives_an_interval_by_blocks(tmp_path: Path) -> None:
    """Sorted inside row groups of 500 rows, read in shuffled order: blocks are what was drawn, and few cover less."""
    covered = asked = 0
    for seed in range(4):
        left, right = keys(2 * seed, 40_000), keys(2 * seed + 1, 40_000)
        truth = true_size(left, right)
        files = [_clustered_file(tmp_path / f"{seed}-{s}.parquet", x, 500) for s, x in enumerate((left, right))]
        sources = [
            open_source(str(file), name="f", order="shuffled", seed=10 * seed + s) for s, file in enumerate(files)
        ]
        query = ej.join(*sources, on="k", batch_rows=800)
        found = estimates(query, every=8)
        asked += len(found)
        covered += sum(one["low"] <= truth <= one["high"] for one in found)
    assert asked >= 8
    assert covered >= 0.85 * asked
    same = [open_source(str(file), name="f", order="shuffled", seed=1) for file in files]
    query = ej.join(*same, on="k", batch_rows=800)
    for _ in range(20):
        next(iter(query))
    assert "different seeds" in str(query.estimate_reason)
    query.close()
