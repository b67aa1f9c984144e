"""What a join leaves alone, and what must not slip in between its rows: caches, rewritten files, directories."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import earlyjoin as ej
from earlyjoin.errors import InputError, SourceError
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.query import SparkQuery
from spark.tables import in_files, multiset, numbered

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark


@pytest.fixture
def paths(tmp_path: Path) -> tuple[str, str]:
    return tuple(  # type: ignore[return-value]
        in_files(numbered(4000, 1000, name, seed), tmp_path / name, 4) for seed, name in enumerate("ab")
    )


def test_cached_inputs_stay_cached(spark: Any, paths: tuple[str, str], tmp_path: Path) -> None:
    left, right = (spark.read.parquet(path) for path in paths)
    left.cache().count()
    right.createOrReplaceTempView("cached_right")
    spark.catalog.cacheTable("cached_right")
    try:
        for use in (
            lambda query: query.explain(),
            lambda query: query.head(5),
            lambda query: query.to_arrow(),
            lambda query: query.write(str(tmp_path / "out"), mode="overwrite"),
        ):
            use(ej.join(left, spark.table("cached_right"), on="k"))
            assert left.storageLevel.useMemory
            assert spark.catalog.isCached("cached_right")
    finally:
        left.unpersist()
        spark.catalog.uncacheTable("cached_right")
        spark.catalog.dropTempView("cached_right")


def test_cached_rows_are_joined_and_not_computed_again(spark: Any, paths: tuple[str, str]) -> None:
    from pyspark.sql import functions as f

    left, right = (spark.read.parquet(path) for path in paths)
    left = left.withColumn("r", f.expr("rand()")).cache()
    left.count()
    try:
        whole = multiset(left.join(right, "k").toArrow())
        query = ej.join(left, right, on="k")
        assert not multiset(query.head(50)) - whole
        assert multiset(query.to_arrow()) == whole
    finally:
        left.unpersist()


@pytest.mark.parametrize("again", ["head", "limited", "iterate"])
def test_files_rewritten_between_two_looks(spark: Any, tmp_path: Path, again: str) -> None:
    def write(version: int) -> None:
        (tmp_path / "a").mkdir(exist_ok=True)
        for part in range(2):
            keys = np.random.default_rng(part).integers(0, 10**6, 60_000)
            table = pa.table({"k": keys, "i": np.arange(60_000), "version": np.full(60_000, version)})
            pq.write_table(table, tmp_path / "a" / f"{part}.parquet")

    write(0)
    right = in_files(numbered(60_000, 10**6, "j", 9), tmp_path / "b", 2)
    with ej.join(spark.read.parquet(str(tmp_path / "a")), spark.read.parquet(right), on="k") as query:
        assert set(query.head(1)["version"].to_pylist()) == {0}
        write(1)
        ways = {"head": lambda: query.head(2000).to_batches(), "limited": lambda: query.limited(2000), "iterate": query}
        seen: Counter[int] = Counter()

        def take() -> None:
            way = ways[again]
            for batch in way() if callable(way) else way:
                seen.update(batch["version"].to_pylist())

        with pytest.raises(SourceError, match="has changed since its first rows were joined"):
            take()
        assert set(seen) <= {0}


@pytest.mark.parametrize("types", [("decimal(38,0)", "decimal(38,18)"), ("decimal(38,0)", "decimal(10,2)")])
@pytest.mark.parametrize("how", ["inner", "full"])
def test_decimals_that_spark_rounds(spark: Any, tmp_path: Path, types: tuple[str, str], how: str) -> None:
    spark.range(50).selectExpr(f"cast(id AS {types[0]}) k", "id i").write.parquet(str(tmp_path / "a"))
    spark.range(200).selectExpr(f"cast(id / 10.0 AS {types[1]}) k2", "id j").write.parquet(str(tmp_path / "b"))
    left, right = (spark.read.parquet(str(tmp_path / name)) for name in "ab")
    whole = multiset(left.join(right, left.k == right.k2, how).toArrow())
    query = ej.join(left, right, on=[("k", "k2")], how=how)
    assert not multiset(query.head(100)) - whole
    assert multiset(query.to_arrow()) == whole


def test_a_relative_path_is_this_process_s(
    spark: Any, paths: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = (spark.read.parquet(path) for path in paths)
    monkeypatch.chdir(tmp_path)
    first = ej.join(left, right, on="k").write("out")
    second = ej.join(left, right, on="k").write("out", mode="append")
    assert first == second
    assert spark.read.parquet(str(tmp_path / "out")).count() == 2 * first
    assert ej.join(left, right, on="k").write("out", mode="overwrite", partition_by="a") == first
    assert spark.read.parquet(str(tmp_path / "out")).count() == first


def soon(holds: Callable[[], bool], seconds: float = 30) -> bool:
    """Threads that were told to stop may still be at it."""
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


def test_limits_that_are_too_large_to_be_fetched_at_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spill").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spill"))
    table = pa.table({"k": np.zeros(2000, np.int64), "a": np.arange(2000)})
    path = in_files(table, tmp_path / "hot", 2)
    with SparkQuery(
        spark.read.parquet(path), spark.read.parquet(path), ej.equal("k"), SparkOptions(early=False, memory="64MB")
    ) as query:
        assert len(query.head(150_000)) == 150_000
        assert sum(batch.num_rows for batch in query.limited(200_000)) == 200_000
    assert soon(lambda: not os.listdir(tmp_path / "spill"))


@pytest.mark.parametrize("rows", [2**31 - 1, 2**31, 2**63 - 1, 2**70])
def test_more_rows_than_there_can_be(spark: Any, paths: tuple[str, str], rows: int) -> None:
    frames = [spark.read.parquet(path) for path in paths]
    whole = multiset(frames[0].join(frames[1], "k").toArrow())
    assert multiset(ej.join(*frames, on="k").head(rows)) == whole
    found = list(ej.join(*frames, on="k").limited(rows))
    assert multiset(pa.Table.from_batches(found)) == whole


@pytest.mark.parametrize("rows", ["5", 1.5, -1, True, None])
def test_no_number_of_rows(spark: Any, paths: tuple[str, str], rows: Any) -> None:
    query = ej.join(*(spark.read.parquet(path) for path in paths), on="k")
    with pytest.raises(InputError, match="head needs a whole number of rows, 0 or more"):
        query.head(rows)
