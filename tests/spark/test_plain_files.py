"""Files that the driver reads by itself: the rows that Spark would give, and only where that is certain."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import earlyjoin as ej
from earlyjoin.errors import BudgetExceeded, EarlyJoinError
from earlyjoin.spark.bulk.driver_join import DriverJoin
from earlyjoin.spark.columns.types import arrow_schema
from earlyjoin.spark.inspecting.plain_files import files_here, has_one_meaning, read_files, read_ranges
from earlyjoin.spark.inspecting.scans import Planned, look
from earlyjoin.spark.jobs import Jobs
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.query import SparkQuery
from earlyjoin.state.budget import Account, Budget, MemoryLimit
from spark.tables import in_files, multiset

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

ROWS = pa.table(
    {
        "flag": pa.array([True, None, False, True]),
        "tiny": pa.array([1, -128, None, 127], pa.int8()),
        "small": pa.array([None, 2, -(2**15), 5], pa.int16()),
        "int": pa.array([1, 2, 3, None], pa.int32()),
        "id": pa.array([2**62, None, -1, 0]),
        "single": pa.array([0.1, math.nan, -0.0, None], pa.float32()),
        "x": pa.array([1.5, math.nan, math.inf, None]),
        "text": pa.array(["a", "", None, "é\u0000ü"]),
        "bytes": pa.array([b"\xff", None, b"", b"ab"]),
    }
)


def account(limit: int = 2**24) -> Account:
    return Budget(MemoryLimit(bytes=limit)).account("test")


def read(frame: Any, **limit: int) -> pa.Table | None:
    """As a join does it."""
    schema, paths = arrow_schema(frame, 0), files_here(frame)
    if not is_plain(frame) or not has_one_meaning(schema) or paths is None:
        return None
    return read_files(paths, schema, account(**limit), 2)


def is_plain(frame: Any) -> bool:
    planned = look(frame)
    return isinstance(planned, Planned) and planned.plain


def test_every_type_with_one_meaning(spark: Any, tmp_path: Path) -> None:
    frame = spark.read.parquet(in_files(ROWS, tmp_path / "a b%20c+ü", 2))
    assert is_plain(frame)
    here, there = read(frame), frame.toArrow()
    assert here is not None
    assert here.schema.types == there.schema.types
    assert multiset(here) == multiset(there)


@pytest.mark.parametrize("names", [["int", "x"], ["x", "int"]])
def test_some_columns(spark: Any, tmp_path: Path, names: list[str]) -> None:
    frame = spark.read.parquet(in_files(ROWS, tmp_path / "t", 2)).select(*names)
    assert is_plain(frame)
    here, there = read(frame), frame.toArrow()
    assert here is not None
    assert here.column_names == names
    assert multiset(here) == multiset(there)


def test_a_filter_is_told(spark: Any, tmp_path: Path) -> None:
    rows = spark.read.parquet(in_files(ROWS, tmp_path / "t", 2))
    for frame in (rows.where("int > 1"), rows.where("int > 1").select("x")):
        planned = look(frame)
        assert isinstance(planned, Planned)
        assert planned.filtered
    query = ej.join(rows.where("int > 1"), rows, on=ej.band("int", eps=0))
    assert "read from their files" not in query.explain()
    assert query.to_arrow().num_rows == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.withColumnRenamed("x", "y"),
        lambda frame: frame.selectExpr("int + 1 AS int"),
        lambda frame: frame.selectExpr("int", "int AS x"),
        lambda frame: frame.limit(3),
        lambda frame: frame.distinct(),
        lambda frame: frame.union(frame),
        lambda frame: frame.sort("int"),
        lambda frame: frame.repartition(2),
        lambda frame: frame.selectExpr("*", "_metadata.file_path AS path"),
    ],
)
def test_anything_but_a_scan_is_spark_s(spark: Any, tmp_path: Path, change: Callable[[Any], Any]) -> None:
    assert not is_plain(change(spark.read.parquet(in_files(ROWS, tmp_path / "t", 2))))


def test_other_formats_and_tables_are_spark_s(spark: Any, tmp_path: Path) -> None:
    frame = spark.read.parquet(in_files(ROWS.select(["int", "x"]), tmp_path / "t", 2))
    frame.write.csv(str(tmp_path / "csv"))
    frame.write.orc(str(tmp_path / "orc"))
    frame.write.saveAsTable("plain_files_t", path=str(tmp_path / "table"))
    try:
        others = [spark.read.csv(str(tmp_path / "csv")), spark.read.orc(str(tmp_path / "orc"))]
        others += [spark.table("plain_files_t"), spark.createDataFrame(ROWS.select(["int"])), spark.range(5)]
        assert not any(map(is_plain, others))
    finally:
        spark.sql("DROP TABLE plain_files_t")
    cached = frame.cache()
    try:
        assert not is_plain(cached)
    finally:
        cached.unpersist()


def test_partitions_told_by_directories_are_spark_s(spark: Any, tmp_path: Path) -> None:
    for part in range(2):
        in_files(ROWS.select(["int"]), tmp_path / "t" / f"p={part}", 1)
    frame = spark.read.parquet(str(tmp_path / "t"))
    assert read(frame) is None
    assert not is_plain(frame.where("p = 1").select("int"))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([dt.date(1582, 10, 15), None, dt.date(9999, 12, 31)]),
        pa.array([dt.datetime(2021, 3, 14, 2, 30), None]),  # not an hour of New York
        pa.array([dt.datetime(1900, 1, 1), None, dt.datetime(2021, 3, 14, 6, 30)], pa.timestamp("us", "UTC")),
        pa.array([dt.datetime(2021, 3, 14, 6, 30, 0, 5000)], pa.timestamp("ms", "Asia/Tokyo")),
        *(pa.array([Decimal("1.50"), Decimal("-9.99"), None], pa.decimal128(digits, 2)) for digits in (3, 10, 38)),
    ],
)
def test_days_times_and_decimals(spark: Any, tmp_path: Path, column: pa.Array) -> None:
    frame = spark.read.parquet(in_files(pa.table({"c": column}), tmp_path / "t", 1))
    here, there = read(frame), frame.toArrow()
    assert here is not None
    assert here.schema.types == there.schema.types
    assert multiset(here) == multiset(there)


def test_old_int96_times_are_spark_s(spark: Any, tmp_path: Path) -> None:
    rows = pa.table({"c": pa.array([dt.datetime(2021, 3, 14, 6, 30)])})
    (tmp_path / "t").mkdir()
    pq.write_table(rows, tmp_path / "t" / "a.parquet", use_deprecated_int96_timestamps=True)
    assert read(spark.read.parquet(str(tmp_path / "t"))) is None


@pytest.mark.parametrize("group", [3, 100])
@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 1), (0, 4), (2, 7), (5, 100), (9, 10), (10, 20)])
def test_some_rows_of_a_file(tmp_path: Path, group: int, first: int, last: int) -> None:
    rows = pa.table({"x": range(10)})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=group)
    found = read_ranges([(tmp_path / "a.parquet", first, last)], rows.schema, None)
    assert found is not None
    assert found["x"].to_pylist() == list(range(10))[first:last]


def test_rows_that_are_too_large_are_left_to_spark(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": range(1000)}), tmp_path / "a.parquet")
    assert read_ranges([(tmp_path / "a.parquet", 0, 1000)], pa.schema({"x": pa.int64()}), 7999) is None


@pytest.mark.parametrize(
    "column",
    [
        pa.array([dt.date(2021, 3, 14), dt.date(1500, 1, 1)]),
        pa.array([dt.datetime(1850, 3, 14, 6, 30)]),
        pa.array([dt.datetime(1850, 3, 14, 6, 30)], pa.timestamp("us", "UTC")),
        pa.array([1], pa.uint32()),
        pa.array([[1, 2]]),
        pa.array([{"a": 1}]),
    ],
)
def test_types_with_several_meanings_are_spark_s(spark: Any, tmp_path: Path, column: pa.Array) -> None:
    assert read(spark.read.parquet(in_files(pa.table({"c": column}), tmp_path / "t", 1))) is None


def test_a_nested_column_that_nobody_reads_is_spark_s(spark: Any, tmp_path: Path) -> None:
    rows = pa.table({"a": pa.array([1]), "b": pa.array([{"c": 1}])})
    assert read(spark.read.parquet(in_files(rows, tmp_path / "t", 1)).select("a")) is None


def test_files_with_other_columns_are_spark_s(spark: Any, tmp_path: Path) -> None:
    in_files(pa.table({"a": pa.array([1, 2]), "b": pa.array(["x", "y"])}), tmp_path / "t" / "one", 1)
    in_files(pa.table({"a": pa.array([3], pa.int32())}), tmp_path / "t" / "two", 1)
    paths = [str(tmp_path / "t" / name) for name in ("one", "two")]
    assert read(spark.read.schema("a bigint, b string").parquet(*paths)) is None  # a file lacks a column
    assert read(spark.read.schema("a bigint").parquet(*paths)) is None  # a file has another type
    assert read(spark.read.schema("A bigint").parquet(paths[0])) is None  # Spark does not mind the case
    assert read(spark.read.schema("a bigint").parquet(paths[0])) is not None


def test_a_path_that_is_named_twice_is_spark_s(spark: Any, tmp_path: Path) -> None:
    path = in_files(ROWS, tmp_path / "t", 2)
    frame = spark.read.parquet(path, path)
    assert frame.count() == 8
    assert read(frame) is None


def test_a_column_that_directories_tell_too_is_spark_s(spark: Any, tmp_path: Path) -> None:
    for part in (7, 8):
        in_files(pa.table({"x": [1.0], "k": pa.array([1], pa.int32())}), tmp_path / "t" / f"k={part}", 1)
    frame = spark.read.parquet(str(tmp_path / "t"))
    assert sorted(frame.toArrow()["k"].to_pylist()) == [7, 8]
    assert read(frame) is None


@pytest.mark.parametrize("name", ["_metadata_old.parquet", "_common_metadata.parquet"])
def test_files_that_a_scan_passes_over(spark: Any, tmp_path: Path, name: str) -> None:
    path = Path(in_files(ROWS, tmp_path / "t", 2))
    (path / "part-000.parquet").rename(path / name)
    frame = spark.read.parquet(str(path))
    assert frame.count() == 2
    assert read(frame) is None


def test_names_that_differ_in_case_are_spark_s(spark: Any, tmp_path: Path) -> None:
    path = in_files(pa.table({"k": [1], "K": [2]}), tmp_path / "t", 1)
    assert read(spark.read.schema("k bigint").parquet(path)) is None


def test_columns_told_by_number_are_spark_s(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    path = in_files(pa.table({"a": [1], "b": [2]}), tmp_path / "t", 1)
    numbered = StructType([StructField("a", LongType(), True, {"parquet.field.id": 2})])
    assert read(spark.read.schema(numbered).parquet(path)) is None


def test_a_name_that_is_no_text_is_spark_s(tmp_path: Path) -> None:
    path = Path(in_files(pa.table({"x": [1], "unreadable": [2]}), tmp_path / "t", 1)) / "part-000.parquet"
    path.write_bytes(path.read_bytes().replace(b"unreadable", b"\xff" * len("unreadable")))
    assert read_files([path], pa.schema({"x": pa.int64()}), account(), 2) is None


def test_a_damaged_page_is_spark_s(spark: Any, tmp_path: Path) -> None:
    rows = pa.table({"x": range(1000)})
    spark.createDataFrame(rows).coalesce(1).write.option("compression", "none").parquet(str(tmp_path / "t"))
    frame = spark.read.parquet(str(tmp_path / "t"))
    (path,) = (tmp_path / "t").glob("*.parquet")
    there = path.read_bytes()
    value = (500).to_bytes(8, "little")
    assert there.count(value) == 1
    assert read(frame) == rows
    path.write_bytes(there.replace(value, (508).to_bytes(8, "little")))
    assert read(frame) is None


def test_a_column_with_a_dot_in_its_name(spark: Any, tmp_path: Path) -> None:
    frame = spark.read.parquet(in_files(pa.table({"a": [1], "a.b": [2.0]}), tmp_path / "t", 1))
    here = read(frame)
    assert here is not None
    assert here.to_pylist() == [{"a": 1, "a.b": 2.0}]


def test_a_small_file_may_hold_a_large_table(spark: Any, tmp_path: Path) -> None:
    frame = spark.read.parquet(in_files(pa.table({"text": ["the same"] * 500_000}), tmp_path / "t", 1))
    assert sum(path.stat().st_size for path in (tmp_path / "t").iterdir()) < 50_000
    with pytest.raises(BudgetExceeded):
        read(frame, limit=2**20)


def test_long_texts_are_booked_before_they_are_unpacked(tmp_path: Path) -> None:
    rows = pa.table({"text": pa.array(["x" * 12_000] * 20_000).dictionary_encode()})  # 240 MB once unpacked
    path = Path(in_files(rows, tmp_path / "t", 1)) / "part-000.parquet"
    usual = pa.default_memory_pool()
    counting = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counting)
    try:
        with pytest.raises(BudgetExceeded):
            read_files([path], pa.schema({"text": pa.string()}), account(), 2)
    finally:
        pa.set_memory_pool(usual)
    assert 0 < counting.max_memory() < 2**26


def test_no_job_is_started(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def together(*_: object) -> None:
        raise AssertionError("Spark was asked")

    frame = spark.read.parquet(in_files(ROWS, tmp_path / "t", 2))
    monkeypatch.setattr(Jobs, "together", together)
    query = ej.join(frame, frame, on=ej.band("int", eps=1))
    assert "read from their files" in query.explain()
    nested = frame.sparkSession.read.parquet(in_files(pa.table({"d": [1], "list": [[1]]}), tmp_path / "d", 1))
    assert "read from their files" not in ej.join(nested, nested, on=ej.less("d")).explain()
    assert query.to_arrow().num_rows == 7
    assert query.algorithm == DriverJoin.name
    assert query.progress.rows_in == (4, 4)


def test_what_does_not_fit_goes_the_usual_way(spark: Any, tmp_path: Path) -> None:
    rows = pa.table({"x": [number % 7 * 10 for number in range(20_000)], "text": ["the same"] * 20_000})
    wide = spark.read.parquet(in_files(rows, tmp_path / "wide", 2))
    few = spark.read.parquet(in_files(pa.table({"x": [10, 11, 31]}), tmp_path / "few", 2))
    query = SparkQuery(wide, few, ej.band("x", eps=1), SparkOptions(memory="1MB"))
    assert query.to_arrow().num_rows == sum(number % 7 in (1, 3) for number in range(20_000)) + sum(
        number % 7 == 1 for number in range(20_000)
    )
    assert query.algorithm != DriverJoin.name
    assert query.progress.memory_fraction == 0  # what was booked while reading is given back


def test_one_input_that_is_spark_s_makes_both_so(spark: Any, tmp_path: Path) -> None:
    in_files(pa.table({"x": pa.array([1, 2]), "b": ["x", "y"]}), tmp_path / "one", 1)
    in_files(pa.table({"x": pa.array([4])}), tmp_path / "two", 1)
    whole = spark.read.parquet(str(tmp_path / "one"))
    lacking = spark.read.schema("x bigint, b string").parquet(str(tmp_path / "one"), str(tmp_path / "two"))
    query = ej.join(whole, lacking, on=ej.band("x", eps=1), how="full")
    assert query.to_arrow().num_rows == 5
    assert query.algorithm == DriverJoin.name
    assert query.progress.rows_in == (2, 3)
    assert query.progress.memory_fraction == 0


def test_files_elsewhere_are_spark_s(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark.read.parquet(in_files(ROWS, tmp_path / "t", 2))
    uris = frame.inputFiles()
    for prefix in ("hdfs://host/", "s3a://bucket/", "file://host/", "/"):
        elsewhere = [prefix + uri.removeprefix("file:///") for uri in uris]
        monkeypatch.setattr(type(frame), "inputFiles", lambda _, elsewhere=elsewhere: elsewhere)
        assert files_here(frame) is None, prefix


def test_a_file_that_is_cut_short_while_it_is_read(tmp_path: Path) -> None:
    """Were it mapped into memory, this would end the process."""
    rows = pa.table({"x": range(400_000)})
    path = Path(in_files(rows, tmp_path / "t", 1)) / "part-000.parquet"

    class CutsShort(Account):
        def reserve(self, bytes_: int = 0, rows: int = 0) -> None:
            super().reserve(bytes_, rows)
            path.write_bytes(b"")

    here = read_files([path], rows.schema, CutsShort(Budget(MemoryLimit(bytes=2**24)), "test"), 1)
    assert here is None or here == rows


def test_a_file_that_is_gone_is_reported_by_spark(spark: Any, tmp_path: Path) -> None:
    frame = spark.read.parquet(in_files(ROWS, tmp_path / "t", 2))
    next((tmp_path / "t").glob("*.parquet")).unlink()
    assert read(frame) is None
    with pytest.raises(EarlyJoinError, match="Spark failed"):
        ej.join(frame, frame, on=ej.band("int", eps=1)).to_arrow()


def test_a_file_that_is_no_parquet_is_reported_by_spark(spark: Any, tmp_path: Path) -> None:
    frame = spark.read.parquet(in_files(ROWS, tmp_path / "t", 2))
    for path in (tmp_path / "t").glob("*.parquet"):
        path.write_bytes(b"no Parquet, by no means")
    assert read(frame) is None
    with pytest.raises(EarlyJoinError, match="Spark failed"):
        ej.join(frame, frame, on=ej.band("int", eps=1)).to_arrow()


def test_an_error_of_our_own_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise TypeError("a slip of ours")

    in_files(ROWS, tmp_path / "t", 1)
    monkeypatch.setattr("earlyjoin.spark.inspecting.plain_files._unpacked", broken)
    with pytest.raises(TypeError, match="a slip of ours"):
        read_files(list((tmp_path / "t").glob("*.parquet")), ROWS.schema, account(), 2)
