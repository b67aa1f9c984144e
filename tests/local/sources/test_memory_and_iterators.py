"""Tables, frames, readers and generators."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.errors import EarlyJoinError, InputError, SourceError
from earlyjoin.local.sources import BatchSizes, generated, open_source

BATCH = pa.record_batch({"k": [1, 2, 3]})


def table(data: object, **options: object) -> pa.Table:
    source = open_source(data, name="left", **options)
    return pa.Table.from_batches(source.batches(BatchSizes()), source.schema)


def test_accepts_what_people_have() -> None:
    for data in (BATCH, [BATCH], (BATCH, BATCH), pa.table(BATCH), [pa.table(BATCH)], iter([pa.table(BATCH)])):
        assert table(data)["k"].to_pylist()[:3] == [1, 2, 3]
    source = open_source(BATCH, name="left")
    assert open_source(source, name="right") is source


def test_pandas_index_and_mixed_objects() -> None:
    assert table(pd.DataFrame({"a": [1]}, index=[7])).schema.names == ["a"]
    assert set(table(pd.DataFrame({"a": [1]}, index=pd.Index([7], name="id"))).schema.names) == {"a", "id"}
    with pytest.raises(
        InputError, match=r"left: this DataFrame does not convert to Arrow: .*column a with type object"
    ):
        table(pd.DataFrame({"a": [1, "x"]}))


def test_polars_failing_query() -> None:
    assert table(pl.LazyFrame({"a": [1]})).to_pydict() == {"a": [1]}
    with pytest.raises(InputError, match="left: this LazyFrame does not convert to Arrow: "):
        table(pl.LazyFrame({"a": [1]}).select("b"))


def test_series_are_not_tables() -> None:
    for data in (pl.Series([1]), pd.Series([1]), pa.chunked_array([[1]])):
        with pytest.raises(InputError, match="left: "):
            table(data)


class Stream:
    """Nothing but the Arrow stream protocol."""

    def __init__(self, data: pa.Table) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)


class Array:
    """Nothing but the Arrow array protocol."""

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return BATCH.__arrow_c_array__(requested_schema)


def test_protocols() -> None:
    source = open_source(Stream(pa.table(BATCH)), name="left")
    assert not source.replayable
    assert pa.Table.from_batches(source.batches(BatchSizes()))["k"].to_pylist() == [1, 2, 3]
    assert table(Array())["k"].to_pylist() == [1, 2, 3]


def test_first_item_is_taken_when_asked_for_and_kept() -> None:
    taken = []

    def items() -> Iterator[pa.RecordBatch]:
        for i in range(3):
            taken.append(i)
            yield BATCH

    source = open_source(items(), name="left")
    assert taken == []
    assert source.schema.names == ["k"]
    assert taken == [0]
    assert sum(batch.num_rows for batch in source.batches(BatchSizes())) == 9
    assert taken == [0, 1, 2]
    with pytest.raises(SourceError, match="left: an iterator can be read only once"):
        next(source.batches(BatchSizes()))
    taken.clear()
    source = open_source(items(), name="left", schema=BATCH.schema)
    assert source.schema == BATCH.schema
    assert taken == []


def test_items_are_passed_on_as_they_come() -> None:
    given: list[int] = []

    def items() -> Iterator[pa.RecordBatch]:
        for i in range(4):
            given.append(i)
            yield BATCH

    batches = open_source(items(), name="left", schema=BATCH.schema).batches(BatchSizes())
    next(batches)
    assert given == [0]


def test_large_batches_are_sliced() -> None:
    source = open_source(iter([pa.table({"k": range(100)})]), name="left")
    assert [batch.num_rows for batch in source.batches(BatchSizes(first=10, most=40))] == [10, 20, 40, 30]


def test_empty_iterators() -> None:
    with pytest.raises(
        InputError, match="left: the iterator gave nothing, so the columns are unknown; pass a reader that"
    ):
        table(iter([]))
    assert table(iter([]), schema=BATCH.schema).num_rows == 0
    with pytest.raises(InputError, match="left: nothing in it, so its columns are unknown; pass a table without rows"):
        table([])
    assert table([], schema=BATCH.schema).num_rows == 0


def test_schema_changes_midway() -> None:
    odd = pa.record_batch({"k": ["x"]})
    with pytest.raises(InputError, match="left: a batch does not fit the schema: column 'k' is string, not int64"):
        table(iter([BATCH, odd]))
    with pytest.raises(InputError, match="left: part 1: column 'k' is string, not int64, compared with part 0"):
        table([BATCH, odd])
    with pytest.raises(InputError, match="column 'k' is missing"):
        table(iter([BATCH, pa.record_batch({"j": [1]})]))


def test_nullability_may_change_midway() -> None:
    strict = pa.record_batch([pa.array([1])], schema=pa.schema([pa.field("k", pa.int64(), nullable=False)]))
    loose = pa.record_batch({"k": pa.array([None], pa.int64())})
    for data in ([strict, loose], iter([strict, loose])):
        result = table(data)
        assert result["k"].to_pylist() == [1, None]
        assert result.schema.field("k").nullable


def test_iterator_that_breaks_off() -> None:
    def items() -> Iterator[pa.RecordBatch]:
        yield BATCH
        raise ConnectionResetError("peer went away")

    source = open_source(items(), name="left")
    batches = source.batches(BatchSizes())
    assert next(batches).num_rows == 3
    with pytest.raises(SourceError, match="left: broke off with ConnectionResetError: peer went away"):
        next(batches)


def test_two_relations_of_one_connection() -> None:
    connection = duckdb.connect()
    left, right = (connection.sql(f"SELECT range AS k, range AS {name} FROM range(100000)") for name in "ab")
    with pytest.raises(InputError, match=r"^right: this DuckDBPyRelation .*\.to_arrow_table\(\).*cursor\(\)"):
        ej.join(left, right, on="k")
    assert len(ej.join(left, right.to_arrow_table(), on="k").to_arrow()) == 100_000
    other = connection.cursor().sql("SELECT range AS k, range AS b FROM range(100000)")
    assert len(ej.join(left, other, on="k").to_arrow()) == 100_000


def test_a_relation_that_fails_names_the_input() -> None:
    connection = duckdb.connect()
    for rows, kind in ((3, InputError), (100_000, EarlyJoinError)):
        bad = f"SELECT CASE WHEN range >= {rows - 1} THEN error('boom') ELSE 'a' END AS k FROM range({rows})"
        with pytest.raises(kind, match=r"^left: .*boom"):
            ej.join(connection.sql(bad), pa.table({"k": ["a"]}), on="k").to_arrow()


def test_an_iterable_that_cannot_begin() -> None:
    class Broken:
        def __iter__(self) -> Iterator[pa.RecordBatch]:
            raise RuntimeError("no cursor")

    with pytest.raises(InputError, match="left: this Broken cannot be iterated: no cursor"):
        open_source(Broken(), name="left")


def test_iterators_of_something_else() -> None:
    with pytest.raises(InputError, match="left: an iterator must give pyarrow batches or tables, it gave int"):
        table(iter([1]))
    frames = iter([pd.DataFrame({"k": [1]}), pl.DataFrame({"k": [2]}), BATCH])
    assert table(frames)["k"].to_pylist() == [1, 2, 1, 2, 3]


def test_columns_of_data_in_memory() -> None:
    assert table(pa.table({"a": [1], "b": [2]}), columns=["b"]).schema.names == ["b"]
    with pytest.raises(InputError, match="left: no column 'c'; it has a"):
        table(pa.table({"a": [1]}), columns=["c"])


def test_metadata_of_frames_is_dropped() -> None:
    assert open_source(pa.Table.from_pandas(pd.DataFrame({"a": [1]})), name="left").schema.metadata is None


def test_refusals() -> None:
    for data in (7, None, b"bytes", {1, 2}, pa.array([1])):
        with pytest.raises(
            InputError, match=r"left: cannot read a \w+; accepted are a path, directory or glob of Parq"
        ):
            open_source(data, name="left")
    with pytest.raises(InputError, match=r"cannot read a dict.* For a mapping of columns write pyarrow.table"):
        open_source({"a": [1]}, name="left")
    with pytest.raises(InputError, match="left: a list must hold only paths or only batches; it has a str"):
        open_source([BATCH, "a.parquet"], name="left")
    with pytest.raises(InputError):
        table(np.zeros((2, 2)))


def test_spark_frames_are_sent_to_spark() -> None:
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})()
    with pytest.raises(InputError, match="left: a PySpark DataFrame is joined by the Spark engine"):
        open_source(frame, name="left")


def test_options_that_do_not_apply(tmp_path: object) -> None:
    with pytest.raises(InputError, match="left: data in memory does not take the option 'delimiter'; it takes columns"):
        open_source(BATCH, name="left", delimiter=",")
    with pytest.raises(
        InputError, match="right: a source that is already open does not take the option 'columns'; it takes no options"
    ):
        open_source(generated(1, 1), name="right", columns=["k"])
    path = f"{tmp_path}/a.csv"
    with open(path, "w") as file:
        file.write("a\n1\n")
    with pytest.raises(
        InputError, match=r"csv files does not take the option 'order'; it takes columns, delimiter, types"
    ):
        open_source(path, name="left", order="shuffled")
    assert open_source(path, name="left", order=None).name == path


def test_files_tell_how_to_open_them_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("a;b\n1;2\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for path in ("a.csv", "~/a.csv", f"file://{tmp_path}/a.csv", Path("a.csv"), ["a.csv"]):
        source = open_source(path, name="left", delimiter=";", columns=["b"])
        assert source.reopening is not None
        with monkeypatch.context() as elsewhere:
            elsewhere.chdir("/")
            again = open_source(**source.reopening)
            assert [batch.to_pydict() for batch in again.batches(BatchSizes())] == [{"b": [2]}]
    assert open_source(BATCH, name="left").reopening is None


def test_nothing_is_imported_before_it_is_needed() -> None:
    package = next(path for path in sys.modules["earlyjoin"].__path__)
    code = (
        "import sys, types; bare = sys.modules['earlyjoin'] = types.ModuleType('earlyjoin');"  # this layer alone
        f"bare.__path__ = [{package!r}];"
        "import earlyjoin.local.sources as s; next(s.generated(9, 9, null_fraction=0.5).batches(s.BatchSizes()));"
        "heavy = ['pandas', 'polars', 'pyspark', 'pyarrow.parquet', 'pyarrow.csv', 'pyarrow.json', 'pyarrow.dataset'];"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_is_advised_for_inputs_without_rows_works() -> None:
    schema, other = pa.schema([("k", pa.int64())]), pa.table({"k": [1]})
    reader = pa.RecordBatchReader.from_batches(schema, iter([]))
    for given in (reader, schema.empty_table()):
        assert ej.join(given, other, on="k").to_arrow().schema.names == ["k"]
