"""What a query on Spark does when it is stopped, when its sink fails, and how it names what it does."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.errors import SinkError
from earlyjoin.predicates import equal
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.query import SparkQuery
from spark.tables import in_files, numbered

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    directory = tmp_path_factory.mktemp("life")
    return tuple(  # type: ignore[return-value]
        in_files(numbered(4000, 1000, name, seed), directory / name, 4) for seed, name in enumerate("ab")
    )


def running(spark: Any) -> int:
    """Jobs that run now, of whomever."""
    return len(spark.sparkContext.statusTracker().getActiveJobsIds())


def wait_until(holds: Any, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.05)
    return False


def slow(frame: Any) -> Any:
    """The frame behind work that takes minutes, in tasks that can be cancelled."""

    def crawl(batches: Any) -> Any:
        import time

        for batch in batches:
            time.sleep(60)
            yield batch

    return frame.mapInArrow(crawl, frame.schema)


def test_stop_cancels_its_own_jobs_and_no_others(spark: Any, paths: tuple[str, str]) -> None:
    frames = [spark.read.parquet(path) for path in paths]
    others = threading.Thread(target=lambda: _outlive(slow(frames[0])), daemon=True)
    others.start()
    assert wait_until(lambda: running(spark) == 1)
    query = ej.join(slow(frames[0]), frames[1], on="k")
    found: list[int] = []
    reader = threading.Thread(target=lambda: found.append(len(query.to_arrow())))
    reader.start()
    assert wait_until(lambda: running(spark) >= 2)  # adaptive execution makes a job of each stage
    query.stop()
    reader.join(60)
    assert not reader.is_alive()
    assert query.state == "stopped"
    assert wait_until(lambda: running(spark) == 1)
    spark.sparkContext.cancelAllJobs()
    others.join(60)
    assert wait_until(lambda: running(spark) == 0)


def _outlive(frame: Any) -> None:
    try:
        frame.toArrow()
    except Exception:
        return  # cancelled at the end of the test


def test_head_then_stop_leaves_nothing(spark: Any, paths: tuple[str, str]) -> None:
    with ej.join(*paths, on="k", engine="spark") as query:
        assert query.head(50).num_rows == 50
        assert query.progress.rows_out >= 50
    assert query.state == "stopped"
    assert wait_until(lambda: running(spark) == 0)
    with pytest.raises(ej.InputError, match="was stopped"):
        list(query)  # the rows that were shown are not the result


def test_limited(spark: Any, paths: tuple[str, str], tmp_path: Path) -> None:
    query = ej.join(*paths, on="k", engine="spark")
    assert query.write(tmp_path / "some.parquet", limit=70) == 70
    assert spark.read.parquet(str(tmp_path / "some.parquet")).count() == 70


def test_failing_sink_leaves_nothing(spark: Any, paths: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    query = ej.join(*paths, on="k", engine="spark")
    with pytest.raises(SinkError, match="cannot write"):
        query.write(tmp_path / "file" / "out.parquet")
    assert query.state == "failed"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    failing = spark.read.parquet(paths[0]).selectExpr("k", "if(a = 3999, raise_error('broken row'), a) AS a")
    query = SparkQuery(failing, spark.read.parquet(paths[1]), equal("k"), SparkOptions(early=False))
    with pytest.raises(SinkError, match="broken row"):
        query.write(tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert wait_until(lambda: running(spark) == 0)


def test_failing_input_is_told_in_one_line(spark: Any, paths: tuple[str, str]) -> None:
    failing = spark.read.parquet(paths[0]).selectExpr("k", "if(a = 3999, raise_error('broken row'), a) AS a")
    query = SparkQuery(failing, spark.read.parquet(paths[1]), equal("k"), SparkOptions(early=False))
    with pytest.raises(ej.SourceError, match="broken row") as caught:
        query.to_arrow()
    assert "\n" not in str(caught.value)
    assert query.state == "failed"


def test_explain_and_estimate(spark: Any, paths: tuple[str, str]) -> None:
    query = ej.join(*paths, on="k", engine="spark")
    text = query.explain()
    assert "Spark's own join" in text
    assert "4 parquet files" in text
    assert query.estimate is None
    assert query.estimate_reason == "the query has not been started"
    rows = 0
    for batch in query:
        rows += batch.num_rows
        if query.estimate is not None:
            break
    estimate = query.estimate
    assert estimate is not None
    assert estimate["low"] <= estimate["rows"] <= estimate["high"]
    query.stop()
    left = ej.join(*paths, on="k", how="left", engine="spark")
    assert "inner joins" in str(left.estimate_reason)


def test_tables_in_memory(spark: Any) -> None:
    table = pa.table({"k": [1, 2, 2], "x": ["a", "b", "c"]})
    query = ej.join(table, spark.sql("SELECT * FROM VALUES (2, 'z'), (3, 'y') AS t(k, y)"), on="k")
    assert sorted(query.to_arrow().column("x").to_pylist()) == ["b", "c"]


def test_it_is_a_query_and_says_what_this_engine_cannot_do(spark: Any, paths: tuple[str, str], tmp_path: Path) -> None:
    query = ej.join(*(spark.read.parquet(path) for path in paths), on="k")
    assert isinstance(query, ej.Query)
    for ask, named in (
        (lambda: query.pause(tmp_path / "paused"), "pause"),
        (lambda: query.set_memory("1GB"), "set_memory"),
        (lambda: query.switch_reading(1, 2), "switch_reading"),
    ):
        with pytest.raises(ej.InputError, match=rf"a join on the spark engine has no {named}\(\): "):
            ask()
    assert query.memory.bytes is not None
    assert query.estimates == {}
    assert query.head(3).num_rows == 3, "and it goes on"
    query.close()
