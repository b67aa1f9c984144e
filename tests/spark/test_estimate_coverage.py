"""Intervals of true queries on Spark at every moment at which they can be read: do those that are given hold?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earlyjoin.predicates import equal
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.query import SparkQuery

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SEEDS = 24
FILES = 12
ORDERS = 3_000


@pytest.fixture(params=["sorted", "shuffled"])
def laid_out(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, list[str], int]:
    """Orders and their lines in a dozen files each, and the size of their join."""
    rng = np.random.default_rng(11)
    lines = np.repeat(np.arange(ORDERS), rng.integers(1, 8, ORDERS))
    paths = []
    for name, keys in (("orders", np.arange(ORDERS)), ("lines", lines)):
        rows = keys if request.param == "sorted" else rng.permutation(keys)
        (tmp_path / name).mkdir()
        for number, part in enumerate(np.array_split(rows, FILES)):
            table = pa.table({"k": part, name: np.arange(len(part))})
            pq.write_table(table, tmp_path / name / f"part-{number:03}.parquet")
        paths.append(str(tmp_path / name))
    return request.param, paths, len(lines)


def test_intervals_that_are_given_hold(
    spark: Any, laid_out: tuple[str, list[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    from earlyjoin.spark.early import blocks

    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1024)  # small files have several blocks, too
    order, paths, truth = laid_out
    frames = [spark.read.parquet(path) for path in paths]
    held: list[bool] = []
    reasons = set()
    for seed in range(SEEDS):
        # A share of 1: rounds go on until 28 blocks or more were drawn of each side.
        with SparkQuery(*frames, equal("k"), SparkOptions(seed=seed, early_share=1.0)) as query:
            last = None
            for _ in query:
                estimate = query.estimate
                if query.progress.phase in {"cleanup", "bulk"} or query.progress.finished:
                    break
                if estimate is None:
                    reasons.add(str(query.estimate_reason))
                elif estimate != last and estimate["confidence"] < 1:
                    held.append(estimate["low"] <= truth <= estimate["high"])
                last = estimate
    assert np.mean(held) >= 0.93 if held else order == "sorted"
    if order == "shuffled":
        assert len(held) >= SEEDS
    else:
        assert any("hold different keys" in reason for reason in reasons), reasons
