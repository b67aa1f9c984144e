"""``write`` on Spark: Spark's own words, no early phase, nothing good lost, small results written where they are."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import earlyjoin as ej
from earlyjoin.errors import EarlyJoinError, InputError, SinkError
from earlyjoin.predicates import band, equal
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.query import SparkQuery
from earlyjoin.spark.writing import parquet_directory, sinks
from earlyjoin.spark.writing import whole as writing
from spark.tables import in_files, multiset, numbered

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    directory = tmp_path_factory.mktemp("writing")
    return tuple(  # type: ignore[return-value]
        in_files(numbered(400, 100, name, seed), directory / name, 2) for seed, name in enumerate("ab")
    )


@pytest.fixture
def frames(spark: Any, paths: tuple[str, str]) -> list[Any]:
    return [spark.read.parquet(path) for path in paths]


def expected(frames: list[Any]) -> int:
    return int(frames[0].join(frames[1], "k").count())


def names(directory: Path) -> list[str]:
    """What is in a directory, hidden things too."""
    return sorted(path.name for path in directory.iterdir())


def test_formats_and_extensions(spark: Any, frames: list[Any], tmp_path: Path) -> None:
    count = expected(frames)
    for name, format_, read in (
        ("plain", None, "parquet"),
        ("rows.orc", None, "orc"),
        ("rows.jsonl", None, "json"),
        ("odd.name", "csv", "csv"),
        ("told.csv", "parquet", "parquet"),
    ):
        assert ej.join(*frames, on="k").write(tmp_path / name, format_) == count
        assert spark.read.format(read).option("header", "true").load(str(tmp_path / name)).count() == count
    assert ej.join(*frames, on="k").write(tmp_path / "bare.csv", header=False, sep="|") == count
    lines = [line for file in (tmp_path / "bare.csv").glob("*.csv") for line in file.read_text().splitlines()]
    assert len(lines) == count
    assert all(line.count("|") == 2 for line in lines)


def test_modes(spark: Any, frames: list[Any], tmp_path: Path) -> None:
    target, count = tmp_path / "out", expected(frames)
    assert ej.join(*frames, on="k").write(target, mode="ErrorIfExists") == count
    for mode in ("error", "errorifexists"):
        query = ej.join(*frames, on="k")
        with pytest.raises(InputError, match=r"exists; .*mode='overwrite', 'append' or 'ignore'") as caught:
            query.write(target, mode=mode)
        assert "--overwrite" not in str(caught.value)
        assert query.state == "new"
    assert ej.join(*frames, on="k").write(target, mode="ignore") == 0
    assert ej.join(*frames, on="k").write(target, mode="append") == count
    assert spark.read.parquet(str(target)).count() == 2 * count
    assert ej.join(*frames, on="k").write(target, mode="overwrite") == count
    assert ej.join(*frames, on="k").write(target, overwrite=True) == count
    assert spark.read.parquet(str(target)).count() == count
    assert names(tmp_path) == ["out"]
    with pytest.raises(InputError, match=r"unknown mode 'upsert'; choose one of: error \(errorifexists\), overwrite"):
        ej.join(*frames, on="k").write(target, mode="upsert")
    with pytest.raises(InputError, match="contradict"):
        ej.join(*frames, on="k").write(target, mode="append", overwrite=True)


def test_modes_where_only_spark_can_see(
    spark: Any, frames: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "is_here", lambda *_: False)
    target, count = tmp_path / "out", expected(frames)
    assert ej.join(*frames, on="k").write(target) == count
    with pytest.raises(InputError, match="exists; "):
        ej.join(*frames, on="k").write(target)
    assert ej.join(*frames, on="k").write(target, mode="ignore") == 0
    assert ej.join(*frames, on="k").write(target, mode="overwrite") == count
    assert spark.read.parquet(str(target)).count() == count


def test_partitions(spark: Any, frames: list[Any], tmp_path: Path) -> None:
    few = frames[0].selectExpr("k", "a", "a % 3 AS part")
    count = expected(frames)
    assert ej.join(few, frames[1], on="k").write(tmp_path / "out", partition_by="PART") == count
    assert {path.name for path in (tmp_path / "out").glob("*=*")} == {"part=0", "part=1", "part=2"}
    with pytest.raises(InputError, match="partition_by: column 'x' is not in the result; columns there: k, a, part, b"):
        ej.join(few, frames[1], on="k").write(tmp_path / "other", partition_by=["part", "x"])
    # Partitions that get no new rows stay, where Spark was told so.
    first = ej.join(few.where("part = 0"), frames[1], on="k")
    first.write(tmp_path / "out", mode="overwrite", partition_by="part", partitionOverwriteMode="dynamic")
    assert spark.read.parquet(str(tmp_path / "out")).count() == count


def test_a_new_query_joins_nothing_early(frames: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = SparkQuery(*frames, equal("k"), SparkOptions())
    monkeypatch.setattr(type(query._execution), "early_rows", lambda *_: pytest.fail("joined early"))
    assert query.write(tmp_path / "out.parquet") == expected(frames)
    assert query.summary()["phases"]["cleanup"] == expected(frames)


@pytest.mark.parametrize("on", [equal("k"), band("k", eps=2)], ids=["large", "small"])
def test_after_head_everything_is_written(spark: Any, frames: list[Any], tmp_path: Path, on: Any) -> None:
    count = SparkQuery(*frames, on).to_df().count()
    for rows in (10, 10**6):
        query = SparkQuery(*frames, on)
        query.head(rows)
        assert query.write(tmp_path / f"{rows}") == count
        assert spark.read.parquet(str(tmp_path / f"{rows}")).count() == count
        assert query.state == "finished"
        assert query.summary()["rows"] == count


@pytest.mark.parametrize("on", [equal("k"), band("k", eps=2)], ids=["large", "small"])
def test_the_rest_is_written_after_a_batch_was_taken(spark: Any, frames: list[Any], tmp_path: Path, on: Any) -> None:
    query = SparkQuery(*frames, on)
    count = query.to_df().count()
    batch = next(iter(query))
    if query._execution.bulk_started:
        with pytest.raises(InputError, match="rows of the bulk were taken"):
            query.write(tmp_path / "rest")
        return
    assert query.write(tmp_path / "rest") == count - batch.num_rows
    assert spark.read.parquet(str(tmp_path / "rest")).count() == count - batch.num_rows


@pytest.mark.parametrize("end", ["iterated", "stopped", "written"])
def test_a_query_that_is_over_replaces_nothing(frames: list[Any], tmp_path: Path, end: str) -> None:
    target = tmp_path / "good.parquet"
    query = ej.join(*frames, on="k")
    query.write(target)
    before = names(target)
    if end != "written":
        query = ej.join(*frames, on="k")
        query.to_arrow() if end == "iterated" else query.stop()
    with pytest.raises(InputError, match="make"):
        query.write(target, overwrite=True)
    assert names(target) == before


@pytest.mark.parametrize("on", [equal("k"), band("k", eps=2)], ids=["large", "small"])
def test_a_failure_replaces_nothing(spark: Any, frames: list[Any], tmp_path: Path, on: Any) -> None:
    target = tmp_path / "good"
    SparkQuery(*frames, on).write(target)
    before = names(target)
    failing = frames[0].selectExpr("k", "if(a = 399, raise_error('broken row'), a) AS a")
    query = SparkQuery(failing, frames[1], on, SparkOptions(early=False))
    with pytest.raises(EarlyJoinError, match="broken row"):
        query.write(target, mode="overwrite")
    assert query.state == "failed"
    assert names(target) == before
    assert names(tmp_path) == ["good"]
    with pytest.raises(EarlyJoinError, match="broken row"):
        SparkQuery(failing, frames[1], on, SparkOptions(early=False)).write(tmp_path / "new")
    assert names(tmp_path) == ["good"]


def test_own_inputs_are_not_overwritten(spark: Any, tmp_path: Path) -> None:
    left = in_files(numbered(40, 10, "a", 1), tmp_path / "in" / "left", 2)
    right = in_files(numbered(40, 10, "b", 2), tmp_path / "right", 2)
    (tmp_path / "in" / "left" / "deep").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "in")
    before = names(Path(left))
    for target in ("in/left", "in", "in/left/deep", "right", "link/left", "in/left/../left"):
        query = ej.join(left, spark.read.parquet(right), on="k", engine="spark")
        with pytest.raises(InputError, match="input is read from"):
            query.write(tmp_path / target, mode="overwrite")
        assert query.state == "new"
        with pytest.raises(InputError, match="input is read from"):
            ej.join(left, right, on="k", engine="spark").write(f"file:{tmp_path}/{target}", overwrite=True)
    assert names(Path(left)) == before
    (tmp_path / "in" / "beside").mkdir()
    assert ej.join(left, right, on="k", engine="spark").write(tmp_path / "in" / "beside", overwrite=True) > 0


PLAIN = (
    "k",
    "true AS t",
    "cast(k AS tinyint) AS i8",
    "cast(k AS smallint) AS i16",
    "cast(k AS int) AS i32",
    "cast(k AS float) AS f",
    "1.5D AS d",
    "if(k % 2 = 0, null, string(k)) AS `s p`",
    "cast(string(k) AS binary) AS y",
)


def test_small_results_are_written_where_they_are(
    spark: Any, frames: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = frames[0].selectExpr(*PLAIN)
    query = SparkQuery(left, frames[1], band("k", eps=2))
    table, frame = query.to_df().toArrow(), query.to_df()
    with monkeypatch.context() as patch:
        patch.setattr(sinks, "write", lambda *_: pytest.fail("sent to Spark"))
        assert query.write(tmp_path / "out") == len(table)
    back = spark.read.parquet(str(tmp_path / "out"))
    assert [(one.name, one.dataType) for one in back.schema] == [(one.name, one.dataType) for one in frame.schema]
    assert multiset(back.toArrow()) == multiset(table)
    written = names(tmp_path / "out")
    assert "_SUCCESS" in written
    assert len(written) == 2
    assert written[1].startswith("part-00000-")
    assert written[1].endswith("-c000.snappy.parquet")
    assert SparkQuery(left, frames[1], band("k", eps=2)).write(tmp_path / "out", mode="overwrite") == len(table)
    assert multiset(spark.read.parquet(str(tmp_path / "out")).toArrow()) == multiset(table)
    empty = SparkQuery(left.where("k < 0"), frames[1], band("k", eps=2))
    assert empty.write(tmp_path / "empty") == 0
    assert spark.read.parquet(str(tmp_path / "empty")).schema.names == frame.schema.names
    assert names(tmp_path) == ["empty", "out"]


def test_many_rows_make_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    types = pytest.importorskip("pyspark.sql.types")
    monkeypatch.setattr(parquet_directory, "FILE_NBYTES", 20_000)
    table = numbered(10_000, 100, "a", 1)
    fields = types.StructType([types.StructField(name, types.LongType()) for name in table.column_names])
    batches = iter(table.to_batches(max_chunksize=1000))
    assert (
        parquet_directory.write_batches(batches, table.schema, tmp_path / "o", spark_fields=fields, codec="zstd")
        == 10_000
    )
    parts = sorted((tmp_path / "o").glob("part-*.zstd.parquet"))
    assert [path.name[:10] for path in parts] == [f"part-{number:05}" for number in range(5)]
    assert multiset(pa.concat_tables([pq.read_table(path) for path in parts])) == multiset(table)


def test_small_results_are_sent_to_spark_otherwise(
    spark: Any, frames: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dated = frames[0].selectExpr("k", "DATE'2020-01-01' + cast(k AS int) AS day", "cast(k AS decimal(10, 2)) AS price")
    for number, (left, most) in enumerate(
        [(frames[0], 0), (dated, writing.SENT_NBYTES), (frames[0], writing.SENT_NBYTES)]
    ):
        monkeypatch.setattr(writing, "SENT_NBYTES", most)
        query = SparkQuery(left, frames[1], band("k", eps=2))
        table, frame = query.to_df().toArrow(), query.to_df()
        format_ = "parquet" if left is dated else "orc"
        assert query.write(tmp_path / f"{number}", format=format_) == len(table)
        assert query.summary()["rows"] == len(table)
        back = spark.read.format(format_).load(str(tmp_path / f"{number}"))
        assert [(one.name, one.dataType) for one in back.schema] == [(one.name, one.dataType) for one in frame.schema]
        assert multiset(back.toArrow()) == multiset(table)
        assert len(list((tmp_path / f"{number}").glob("part-*"))) <= 4


def test_a_failing_disk_leaves_nothing(frames: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
    query = SparkQuery(*frames, band("k", eps=2))
    with pytest.raises(SinkError, match="No space left"):
        query.write(tmp_path / "deep" / "out")
    assert names(tmp_path) == []


def test_stopping_leaves_nothing(frames: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = SparkQuery(*frames, band("k", eps=2))
    wrote = pq.ParquetWriter.write_batch

    def stopping(self: Any, batch: pa.RecordBatch, *more: Any) -> None:
        wrote(self, batch, *more)
        query.stop()

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", stopping)
    with pytest.raises(EarlyJoinError, match="stopped"):
        query.write(tmp_path / "out")
    assert query.state == "stopped"
    assert names(tmp_path) == []


def test_nobody_iterates_while_it_is_written(
    frames: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = SparkQuery(*frames, equal("k"))
    inside, go_on, found = threading.Event(), threading.Event(), []
    write = sinks.write

    def waiting(*arguments: Any) -> int:
        inside.set()
        assert go_on.wait(60)
        return write(*arguments)

    def iterate() -> None:
        try:
            found.append(sum(batch.num_rows for batch in query))
        except InputError as error:
            found.append(error)

    monkeypatch.setattr(sinks, "write", waiting)
    writer = threading.Thread(target=lambda: found.append(query.write(tmp_path / "out")))
    writer.start()
    assert inside.wait(60)
    reader = threading.Thread(target=iterate)
    reader.start()
    reader.join(1)
    assert reader.is_alive()
    go_on.set()
    writer.join(60)
    reader.join(60)
    assert found[0] == expected(frames)
    assert isinstance(found[1], InputError) or found[1] == 0
