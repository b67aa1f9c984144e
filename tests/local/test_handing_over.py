"""A query that other libraries take as it is, and what it says about itself."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.local.query import State

LEFT = pa.table({"k": [1, 2, 3, None, 2], "a": ["one", "two", "three", "none", "zwei"]})
RIGHT = pa.table({"k": [2, 2, 4, None], "b": [0.5, 1.5, 4.0, 9.0]})
MANY = pa.table({"k": [n % 50 for n in range(5000)], "n": range(5000)})


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def joined() -> ej.Query:
    return ej.join(LEFT, RIGHT, on="k", batch_rows=1)


TAKERS: dict[str, Callable[[Any], pa.Table]] = {
    "pyarrow table": pa.table,
    "pyarrow reader": lambda query: pa.RecordBatchReader.from_stream(query).read_all(),
    "polars frame": lambda query: pl.DataFrame(query).to_arrow().cast(joined().schema),
    "duckdb relation": lambda query: duckdb.from_arrow(query).to_arrow_table(),
    "duckdb names it": lambda query: duckdb.sql("SELECT * FROM query WHERE b > 0").to_arrow_table(),
    "to_pandas": lambda query: pa.Table.from_pandas(query.to_pandas(), preserve_index=False).cast(joined().schema),
    "to_polars": lambda query: query.to_polars().to_arrow().cast(joined().schema),
    "another join": lambda query: ej.join(query, pa.table({"k": [1, 2]}), on="k").to_arrow(),
}


@pytest.mark.parametrize("taker", TAKERS)
def test_others_take_a_query_as_it_is(taker: str) -> None:
    query = joined()
    assert rows(TAKERS[taker](query)) == rows(joined().to_arrow())
    assert query.state is State.FINISHED
    with pytest.raises(Exception, match="given out already"):
        TAKERS[taker](query)


def test_frames_are_those_of_the_libraries() -> None:
    assert isinstance(joined().to_pandas(), pd.DataFrame)
    assert isinstance(joined().to_polars(), pl.DataFrame)
    assert joined().to_pandas(types_mapper=pd.ArrowDtype)["k"].dtype == pd.ArrowDtype(pa.int64())
    empty = ej.join(LEFT.slice(0, 0), RIGHT, on="k").to_polars()
    assert (empty.shape, empty.columns) == ((0, 3), ["k", "a", "b"])


def test_rows_are_joined_when_they_are_asked_for() -> None:
    given: list[int] = []

    def batches() -> Iterator[pa.Table]:
        for number in range(1000):
            given.append(number)
            yield pa.table({"k": [1] * 1000, "pad": ["x" * 100] * 1000})

    query = ej.join(batches(), pa.table({"k": [1]}), on="k", memory="2MB", algorithm="nested")
    with pa.RecordBatchReader.from_stream(query) as reader:
        assert reader.read_next_batch().num_rows > 0
        time.sleep(0.2)
        assert len(given) < 100
    query.close()


@pytest.mark.parametrize("taker", [name for name in TAKERS if name != "duckdb names it"])
def test_an_error_on_the_way_is_an_error_for_who_reads(taker: str, tmp_path: Path) -> None:
    def broken() -> Iterator[pa.Table]:
        yield LEFT
        raise OSError("the wire was cut")

    query = ej.join(broken(), RIGHT, on="k", spill_directory=tmp_path)
    with pytest.raises(Exception, match="the wire was cut"):
        TAKERS[taker](query)
    assert query.state is State.FAILED
    assert list(tmp_path.iterdir()) == []


def test_a_stream_that_is_dropped_ends_the_query(tmp_path: Path) -> None:
    def readers() -> int:
        return sum(thread.name.startswith("earlyjoin-read") for thread in threading.enumerate())

    before = readers()
    query = ej.join(
        MANY,
        MANY,
        on="k",
        memory="200rows",
        algorithm="nested",
        spill_directory=tmp_path,
        batch_rows=50,
        driving="push",
    )
    reader = pa.RecordBatchReader.from_stream(query)
    for _ in range(100):
        reader.read_next_batch()
    assert list(tmp_path.iterdir()) != []
    assert query.state is State.RUNNING
    del reader
    gc.collect()
    assert query.state is State.STOPPED
    assert list(tmp_path.iterdir()) == []
    deadline = time.monotonic() + 20
    while readers() > before:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    limited = ej.join(MANY, MANY, on="k", batch_rows=50)
    assert len(duckdb.from_arrow(limited).limit(10).fetchall()) == 10
    gc.collect()
    assert limited.state is State.STOPPED


def test_a_stream_that_nobody_reads_takes_nothing() -> None:
    query = joined()
    del_me = query.__arrow_c_stream__()
    del del_me
    gc.collect()
    assert query.state is State.NEW
    assert len(query.to_arrow()) == 4


def test_a_requested_schema_is_kept_to_or_refused() -> None:
    wanted = pa.schema([("k", pa.int32()), ("a", pa.large_string()), ("b", pa.float32())])
    found = pa.table(joined(), schema=wanted)
    assert found.schema == wanted
    assert rows(found) == rows(joined().to_arrow())
    for other in (wanted.remove(0), pa.schema([("x", pa.int32()), *list(wanted)[1:]])):
        query = joined()
        with pytest.raises(
            ej.InputError, match=r"cannot be given as the requested schema.*they have k int64, a string"
        ):
            pa.table(query, schema=other)
        assert len(query.to_arrow()) == 4
    with pytest.raises(pa.ArrowInvalid):  # 'one' is no number
        pa.table(joined(), schema=pa.schema([("k", pa.int64()), ("a", pa.int64()), ("b", pa.float64())]))


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = joined()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ej.InputError, match=rf"to_{package}\(\) needs {package}.*pip install {package}.*to_arrow"):
        getattr(query, f"to_{package}")()
    assert len(query.to_arrow()) == 4


def test_one_query_is_not_both_inputs() -> None:
    query = joined()
    with pytest.raises(ej.InputError, match="the same query, which can be read only once"):
        ej.join(query, query, on="k")
    assert len(query.to_arrow()) == 4


def test_limited_and_streams_of_a_query_that_has_ended() -> None:
    query = joined()
    query.to_arrow()
    asked: list[Callable[[], Any]] = [
        query.__arrow_c_stream__,
        query.to_pandas,
        query.to_polars,
        lambda: query.head(0),
        lambda: list(query.limited(1)),
        lambda: list(query.limited(None)),
        lambda: list(query),
    ]
    for ask in asked:
        with pytest.raises(ej.InputError, match="given out already"):
            ask()


class _Cells(HTMLParser):
    """The tags of a page, and what stands in its cells."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_repr_tells_condition_algorithm_and_state_and_reads_nothing() -> None:
    taken: list[int] = []

    def batches() -> Iterator[pa.Table]:
        for number in range(3):
            taken.append(number)
            yield LEFT

    query = ej.join(batches(), RIGHT, on="k", how="left")
    assert repr(query) == "<earlyjoin.Query left join on left.k = right.k; local: ehj; new, nothing was read yet>"
    assert "left.k = right.k" in query._repr_html_()
    assert taken == [0]  # the first item tells the columns
    next(iter(query))
    assert "running, " in repr(query)
    query.stop()
    assert "stopped after " in repr(query)
    finished = joined()
    finished.to_arrow()
    assert repr(finished).endswith("finished, 4 rows>")
    assert repr(ej.join(LEFT, RIGHT, how="cross")).startswith(
        "<earlyjoin.Query cross join, every pair of rows; local: "
    )
    three = ej.multi_join({"a": LEFT, "b": RIGHT, "c": RIGHT}, on="k")
    assert "a.k = b.k = c.k" in repr(three)


def test_html_is_escaped_and_small() -> None:
    evil = "<script>alert('&')</script>"
    query = ej.join(LEFT.rename_columns([evil, "a"]), RIGHT.rename_columns([evil, "b"]), on=evil)
    html = query._repr_html_()
    cells = _Cells()
    cells.feed(html)
    assert cells.tags == {"table", "caption", "tbody", "tr", "th", "td"}
    assert f"inner join on left.{evil} = right.{evil}" in cells.text
    wide = pa.table({f"c{n}": [1] for n in range(300)})
    for text in (ej.join(wide, wide, on=list(wide.column_names))._repr_html_(), repr(ej.join(wide, wide, on="c0"))):
        assert len(text) < 5000
    assert "and 288 more" in ej.join(wide, wide, on=list(wide.column_names))._repr_html_()


OTHERS: dict[str, Callable[[ej.Query], Any]] = {
    "stream": lambda query: pa.RecordBatchReader.from_stream(query).read_all(),
    "iteration": lambda query: list(query),
    "limited": lambda query: list(query.limited(1)),
    "to_arrow": lambda query: query.to_arrow(),
    "begun before": lambda query: None,
}


@pytest.mark.parametrize("other", OTHERS)
def test_two_takers_do_not_share_the_rows(other: str, tmp_path: Path) -> None:
    query = ej.join(MANY, MANY, on="k", batch_rows=50)
    begun = iter(query)
    some = next(begun).num_rows
    first, second = (pa.RecordBatchReader.from_stream(query) for _ in range(2))
    taken = first.read_next_batch().num_rows
    with pytest.raises((ej.InputError, pa.ArrowInvalid), match="rows of this query were taken already, by an Arrow"):
        next(begun) if other == "begun before" else OTHERS[other](query)
    with pytest.raises(ej.InputError, match="taken already"):
        query.write(tmp_path / "out.csv")
    assert query.head(5).num_rows == 5
    assert some + taken + len(first.read_all()) == 5000 * 100
    with pytest.raises(pa.ArrowInvalid, match="given out already"):
        second.read_all()
    assert list(tmp_path.iterdir()) == []


def test_a_self_join_of_one_query_is_right_or_an_error() -> None:
    query = ej.join(MANY, MANY.select(["k"]).slice(0, 50), on="k", batch_rows=50)
    assert query.state is State.NEW
    found = None
    with contextlib.suppress(duckdb.Error):
        found = duckdb.sql("SELECT count(*), sum(b.n) FROM query a JOIN query b USING (k) WHERE a.n < 10").fetchall()
    assert found in (None, [(1000, sum(n for n in range(5000) if n % 50 < 10))])
