"""Directories that are partitioned as Hive does it."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import earlyjoin as ej
from earlyjoin.errors import InputError
from earlyjoin.local.sources import BatchSizes, Source, open_source
from earlyjoin.state.budget import MemoryLimit


def write(root: Path, where: str, table: pa.Table, name: str = "part-0.parquet") -> None:
    directory = root / where
    directory.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, directory / name, row_group_size=2)


def table_of(source: Source, start_row: int = 0) -> pa.Table:
    return pa.Table.from_batches(source.batches(BatchSizes(first=2, most=4), start_row), schema=source.schema)


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    root = tmp_path / "sales"
    number = 0
    for year in (2023, 2024):
        for month in ("01", "12"):
            for part in range(2):
                rows = pa.table({"id": range(number, number + 3)})
                write(root, f"year={year}/month={month}", rows, f"part-{part}.parquet")
                number += 3
    (root / "_SUCCESS").touch()
    return root


def test_columns_of_the_directories(sales: Path) -> None:
    source = open_source(str(sales), name="left")
    assert source.schema == pa.schema([("id", pa.int64()), ("year", pa.int64()), ("month", pa.int64())])
    assert source.rows_hint == 24
    ours = table_of(source).sort_by("id")
    theirs = pyarrow.dataset.dataset(str(sales), partitioning="hive").to_table().sort_by("id")
    assert ours.to_pylist() == theirs.select(ours.column_names).to_pylist()
    for start in range(25):
        assert table_of(source, start).equals(table_of(source).slice(start))


def test_a_pattern_has_them_and_a_single_file_has_not(sales: Path) -> None:
    assert table_of(open_source(str(sales / "*" / "*" / "*.parquet"), name="x")).num_columns == 3
    assert table_of(open_source(str(sales / "**" / "*.parquet"), name="x")).num_columns == 3
    assert open_source(str(sales / "year=2023"), name="x").schema.names == ["id", "month"]
    one = open_source(str(sales / "year=2023" / "month=01" / "part-0.parquet"), name="x")
    assert one.schema.names == ["id"]


@pytest.mark.parametrize("columns", [["year"], ["month", "id"], ["id"], ["year", "id", "month"]])
def test_chosen_columns(sales: Path, columns: list[str]) -> None:
    source = open_source(str(sales), name="left", columns=columns)
    assert table_of(source).equals(table_of(open_source(str(sales), name="left")).select(columns))


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        (["1", "02", "-3"], pa.int64(), [1, 2, -3]),
        (["2024-01-31", "2023-12-01"], pa.date32(), [datetime.date(2024, 1, 31), datetime.date(2023, 12, 1)]),
        (["2024-01-31", "2024-02-31"], pa.string(), ["2024-01-31", "2024-02-31"]),
        (["1", "x"], pa.string(), ["1", "x"]),
        (["1", "1.5"], pa.string(), ["1", "1.5"]),
        (["9223372036854775808", "1"], pa.string(), ["9223372036854775808", "1"]),
        (["New%20York", "a%3Db%2Fc"], pa.string(), ["New York", "a=b/c"]),
        (["1", "__HIVE_DEFAULT_PARTITION__"], pa.int64(), [1, None]),
        (["__HIVE_DEFAULT_PARTITION__"], pa.string(), [None]),
        (["", "x=y"], pa.string(), ["", "x=y"]),
    ],
)
def test_types_fit_all_values(tmp_path: Path, values: list[str], type_: pa.DataType, expected: list[object]) -> None:
    for number, value in enumerate(values):
        write(tmp_path / "t", f"p={value}", pa.table({"n": [number]}))
    found = table_of(open_source(str(tmp_path / "t"), name="left")).sort_by("n")
    assert found.schema.field("p").type == type_
    assert found["p"].to_pylist() == expected


def test_the_directory_goes_before_a_column_of_the_file(tmp_path: Path) -> None:
    """As in Spark and DuckDB."""
    write(tmp_path / "t", "k=7", pa.table({"k": [1, 2], "v": ["a", "b"]}))
    source = open_source(str(tmp_path / "t"), name="left")
    assert source.schema.names == ["v", "k"]
    assert table_of(source)["k"].to_pylist() == [7, 7]


@pytest.mark.parametrize("how", ["inner", "left", "full", "anti"])
def test_joined_on_a_partition_and_with_it(sales: Path, how: str) -> None:
    other = pa.table({"y": [2024, 2025], "m": [1, 1], "note": ["a", "b"]})
    on = ej.equal("year", "y") & ej.equal("month", "m")
    ours = ej.join(str(sales), other, on=on, how=how).to_arrow()
    whole = pyarrow.dataset.dataset(str(sales), partitioning="hive").to_table()
    whole = whole.cast(pa.schema([("id", pa.int64()), ("year", pa.int64()), ("month", pa.int64())]))
    theirs = ej.join(whole, other, on=on, how=how).to_arrow()
    assert sorted(map(str, ours.to_pylist())) == sorted(map(str, theirs.to_pylist()))
    assert ours.num_rows > 0


@pytest.mark.parametrize("algorithm", ["shj", "ehj", "pmj"])
def test_paused_and_resumed(sales: Path, tmp_path: Path, algorithm: str) -> None:
    other = pa.table({"year": [2023, 2024] * 40, "n": range(80)})
    expected = ej.join(str(sales), other, on="year").to_arrow()
    memory = MemoryLimit(rows=60) if algorithm != "shj" else None
    query = ej.join(str(sales), other, on="year", algorithm=algorithm, batch_rows=5, memory=memory)
    taken = [next(iter(query))]
    query.pause(tmp_path / "state")
    rest = ej.resume(tmp_path / "state", right=other).to_arrow()
    both = pa.concat_tables([pa.Table.from_batches(taken), rest])
    order = [("id", "ascending"), ("n", "ascending")]
    assert both.sort_by(order).to_pylist() == expected.sort_by(order).to_pylist()


def test_csv_and_json_lines(tmp_path: Path) -> None:
    for day in (1, 2):
        for kind in ("csv", "json"):
            (tmp_path / kind / f"day={day}").mkdir(parents=True)
        (tmp_path / "csv" / f"day={day}" / "a.csv").write_text(f"id,x\n{day},a\n")
        (tmp_path / "json" / f"day={day}" / "a.jsonl").write_text(json.dumps({"id": day, "x": "a"}) + "\n")
    for kind in ("csv", "json"):
        found = table_of(open_source(str(tmp_path / kind), name="left", types={"day": "int32"}))
        assert found.to_pylist() == [{"id": 1, "x": "a", "day": 1}, {"id": 2, "x": "a", "day": 2}]
        assert found.schema.field("day").type == pa.int32()


def test_partitions_without_files_are_passed_over(sales: Path) -> None:
    (sales / "year=2025").mkdir()
    assert open_source(str(sales), name="left").rows_hint == 24


def message(path: Path, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        open_source(str(path), name="left", **options)
    return str(caught.value)


def test_what_is_refused(sales: Path, tmp_path: Path) -> None:
    assert "order='shuffled' is not for partitioned directories" in message(sales, order="shuffled")
    assert "no column 'yaer'; it has id" in message(sales, columns=["yaer"])
    write(tmp_path / "other", "year=2024", pa.table({"id": [1]}))
    write(tmp_path / "other", "year=2025/month=1", pa.table({"id": [1]}))
    assert "all files of one input need the same partition columns" in message(tmp_path / "other")
    write(tmp_path / "twice", "a=1/a=2", pa.table({"id": [1]}))
    assert "two directories that give a value for 'a'" in message(tmp_path / "twice")
    write(sales, ".", pa.table({"id": [1]}))
    assert "has partitions such as year=2023, and beside them part-0.parquet" in message(sales)
    write(tmp_path / "types", "a=1", pa.table({"id": [1]}))
    write(tmp_path / "types", "a=2", pa.table({"id": ["x"]}))
    assert "column 'id' is string, not int64" in message(tmp_path / "types")
    (tmp_path / "none" / "a=1").mkdir(parents=True)
    assert "no data file in any of its partitions" in message(tmp_path / "none")


def write_text(root: Path, files: dict[str, str]) -> str:
    for where, text in files.items():
        (root / where).parent.mkdir(parents=True, exist_ok=True)
        (root / where).write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("first", "second", "values"),
    [
        ("id,v\n1,10\n2,20\n", "id,v\n3,\n", [10, 20, None]),
        ("id,v\n1,1.5\n2,\n", "id,v\n3,7\n", [1.5, None, 7.0]),
        ("id,v\n1,10\n", "v,id\n7,3\n", [10, 7]),
        ("id,v\n,\n,\n", "id,v\n3,7\n", [None, None, 7]),
        ("id,v\n", "id,v\n3,7\n", [7]),
    ],
)
def test_csv_partitions_have_the_types_of_the_first_as_files_of_one_directory(
    tmp_path: Path, first: str, second: str, values: list[object]
) -> None:
    parts = write_text(tmp_path / "parts", {"year=2023/a.csv": first, "year=2024/a.csv": second})
    flat = write_text(tmp_path / "flat", {"2023.csv": first, "2024.csv": second})
    found = table_of(open_source(parts, name="left"))
    assert found["v"].to_pylist() == values
    assert found.drop_columns("year").equals(table_of(open_source(flat, name="left")))
    assert table_of(open_source(parts, name="left", columns=["v"])).equals(found.select(["v"]))


def test_json_partitions_have_the_types_of_the_first(tmp_path: Path) -> None:
    parts = {"year=2023/a.jsonl": '{"id": 1, "v": 1.5}\n', "year=2024/a.jsonl": '{"id": 2}\n{"id": 3, "v": 7}\n'}
    found = table_of(open_source(write_text(tmp_path, parts), name="left"))
    assert found["v"].to_pylist() == [1.5, None, 7.0]
    assert found["id"].to_pylist() == [1, 2, 3]


def test_a_value_that_does_not_fit_the_types_of_the_first_partition_is_told(tmp_path: Path) -> None:
    root = write_text(tmp_path, {"year=2023/a.csv": "id,v\n1,10\n", "year=2024/a.csv": "id,v\n3,abc\n"})
    with pytest.raises(InputError, match=r"2024/a.csv: line 2, column 'v': 'abc' is not a valid int64; .*inferred"):
        table_of(open_source(root, name="left"))
    assert table_of(open_source(root, name="left", types={"v": "string"}))["v"].to_pylist() == ["10", "abc"]


def test_partitions_with_other_columns_are_refused(tmp_path: Path) -> None:
    root = write_text(tmp_path, {"year=2023/a.csv": "id,v\n1,10\n", "year=2024/a.csv": "id,w\n3,4\n"})
    with pytest.raises(InputError, match="column 'v' is missing"):
        open_source(root, name="left")
