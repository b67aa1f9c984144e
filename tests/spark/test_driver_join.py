"""Small inputs joined in the driver: the same rows as everywhere, in memory that was booked, and stopped when asked."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import earlyjoin as ej
from earlyjoin.query.life import State
from earlyjoin.spark.bulk.driver_join import DriverJoin
from earlyjoin.spark.jobs import Jobs
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.query import SparkQuery
from spark.bulk_cases import CASES, expected, table
from spark.join_cases import HOWS
from spark.tables import in_files

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

ROWS = (70, 50)


@pytest.fixture(scope="module")
def tables() -> list[pa.Table]:
    return [table(seed, rows) for seed, rows in zip((1, 2), ROWS, strict=True)]


@pytest.fixture(scope="module")
def files(spark: Any, tables: list[pa.Table], tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Inputs that the driver reads by itself."""
    directory = tmp_path_factory.mktemp("small")
    return [spark.read.parquet(in_files(t, directory / str(side), 2)) for side, t in enumerate(tables)]


@pytest.fixture(scope="module")
def frames(files: list[Any]) -> list[Any]:
    """Inputs that are fetched: what is not just a scan is Spark's."""
    return [frame.where("id >= 0") for frame in files]


def pairs(result: pa.Table, how: str) -> Counter[Any]:
    """The numbers of the rows that met."""
    if how in ("semi", "anti"):
        return Counter((row["id"], None) for row in result.to_pylist())
    return Counter((row["id"], row["id_right"]) for row in result.to_pylist())


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("inputs", ["files", "frames"])
def test_every_predicate_and_join_type(
    tables: list[pa.Table],
    inputs: str,
    name: str,
    how: Any,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetched: list[Any] = []
    together = Jobs.together
    monkeypatch.setattr(Jobs, "together", lambda jobs, works: fetched.append(jobs) or together(jobs, works))
    query = ej.join(*request.getfixturevalue(inputs), on=CASES[name].condition, how=how)
    result = query.to_arrow()
    assert pairs(result, how) == expected(CASES[name], how, *(t.to_pylist() for t in tables))
    assert query.summary()["algorithm"] == DriverJoin.name
    assert bool(fetched) == (inputs == "frames")
    assert query.progress.rows_in == ROWS
    assert query.summary()["memory"]["peak_bytes"] > 0
    local = ej.join(*tables, on=CASES[name].condition, how=how)
    assert result.schema.names == local.schema.names


def test_head_then_the_rest_then_a_file(frames: list[Any], tables: list[pa.Table], tmp_path: Path) -> None:
    query = ej.join(*frames, on=CASES["less"].condition)
    assert len(query.head(10)) == 10
    wanted = expected(CASES["less"], "inner", *(t.to_pylist() for t in tables))
    target = tmp_path / "out.parquet"
    assert query.write(target) == wanted.total()
    assert pairs(pq.read_table(target), "inner") == wanted
    assert query.state is State.FINISHED


def test_to_df_is_lazy_and_spark_s(frames: list[Any], tables: list[pa.Table]) -> None:
    frame = ej.join(*frames, on=CASES["band"].condition, how="full").to_df()
    wanted = expected(CASES["band"], "full", *(t.to_pylist() for t in tables))
    assert pairs(frame.toArrow(), "full") == wanted
    assert frame.where("id < 5").count() == sum(n for (a, _), n in wanted.items() if a is not None and a < 5)


def test_explain_says_where_it_is_joined(frames: list[Any]) -> None:
    assert "both inputs are small" in ej.join(*frames, on=CASES["near"].condition).explain()
    assert "both inputs are small" not in ej.join(*frames, on="k").explain()  # an equality is Spark's business


@pytest.mark.parametrize("options", [{"driver_nbytes": 0}, {"memory": "64rows"}, {"memory": "64KiB"}])
def test_what_is_too_large_goes_the_usual_way(
    frames: list[Any], tables: list[pa.Table], options: dict[str, Any]
) -> None:
    query = SparkQuery(*frames, CASES["band"].condition, SparkOptions(how="left", **options))
    assert pairs(query.to_arrow(), "left") == expected(CASES["band"], "left", *(t.to_pylist() for t in tables))
    assert query.summary()["algorithm"] != DriverJoin.name


def test_many_pairs_come_in_pieces_and_can_be_stopped(spark: Any, tmp_path: Path) -> None:
    rows = pa.table({"x": range(6000)})
    frame = spark.read.parquet(in_files(rows, tmp_path / "x", 2))
    query = SparkQuery(frame, frame, ej.not_equal("x"), SparkOptions(memory="64MB"))
    batches = iter(query)
    assert 0 < next(batches).num_rows < 6000 * 5999
    query.stop()
    assert next(batches, None) is None
    assert query.state is State.STOPPED


def test_a_query_that_was_stopped_before_it_began_can_be_told_about(frames: list[Any]) -> None:
    query = ej.join(*frames, on=CASES["band"].condition)
    query.stop()
    assert query.summary()["rows"] == 0


def test_what_was_spilled_is_removed_when_it_is_stopped(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spill").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spill"))
    rows = pa.table({"x": [number // 1000 for number in range(40_000)]})  # a small file, and not so small in memory
    frame = spark.read.parquet(in_files(rows, tmp_path / "x", 2))
    query = SparkQuery(frame, frame, ej.less("x"), SparkOptions(memory="4MB"))
    batches = iter(query)
    while not list((tmp_path / "spill").iterdir()):
        assert next(batches).num_rows > 0
    assert query.algorithm == DriverJoin.name
    query.stop()
    assert not list((tmp_path / "spill").iterdir())


def test_stopping_cancels_the_fetch(spark: Any, frames: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    query = ej.join(*frames, on=CASES["band"].condition)
    together = Jobs.together

    def stopped_meanwhile(jobs: Jobs, works: Any) -> Any:
        query.stop()
        return together(jobs, works)

    monkeypatch.setattr(Jobs, "together", stopped_meanwhile)
    assert query.to_arrow().num_rows == 0
    assert query.state is State.STOPPED
