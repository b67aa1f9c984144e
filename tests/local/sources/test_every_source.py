"""One contract for every kind of source: any batch size from any row on gives the same rows, inside the limits."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.errors import InputError
from earlyjoin.local.sources import BatchSizes, Bursty, SimulatedSource, Source, generated, open_source

ROWS = 1000
TABLE = pa.table(
    {
        "k": pa.array([None if i % 7 == 0 else i % 13 for i in range(ROWS)], pa.int64()),
        "text": [f"row {i}" for i in range(ROWS)],
        "x": [i / 4 + 0.125 for i in range(ROWS)],
    }
)


class Instant:
    """A clock on which waiting takes no time."""

    def __init__(self) -> None:
        self.time_s = 0.0

    def now(self) -> float:
        return self.time_s

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.time_s += seconds


def write(directory: Path) -> None:
    cuts = [TABLE.slice(0, 300), TABLE.slice(300, 1), TABLE.slice(301)]
    pq.write_table(TABLE, directory / "one.parquet", row_group_size=130)
    (directory / "several").mkdir()
    (directory / "csv").mkdir()
    (directory / "jsonl").mkdir()
    (directory / "arrow").mkdir()
    for i, cut in enumerate(cuts):
        pq.write_table(cut, directory / "several" / f"{i}.parquet", row_group_size=97)
        pacsv.write_csv(cut, directory / "csv" / f"{i}.csv")
        lines = pl.from_arrow(cut).write_ndjson().encode()
        (directory / "jsonl" / f"{i}.jsonl.gz").write_bytes(gzip.compress(lines))
        with pa.ipc.new_file(directory / "arrow" / f"{i}.arrow", cut.schema) as sink:
            sink.write_table(cut, max_chunksize=111)
    with pa.ipc.new_stream(directory / "stream.arrows", TABLE.schema) as sink:
        sink.write_table(TABLE, max_chunksize=111)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data")
    write(directory)
    return directory


def make(kind: str, data: Path) -> Source:
    batches = TABLE.to_batches(max_chunksize=77)
    return {
        "parquet": lambda: open_source(data / "one.parquet", name="left"),
        "parquet, several files": lambda: open_source(data / "several", name="left"),
        "parquet, projected": lambda: open_source(data / "several", name="left", columns=["x", "k"]),
        "parquet, shuffled": lambda: open_source(data / "several", name="left", order="shuffled", seed=5),
        "csv": lambda: open_source(data / "csv", name="left"),
        "csv, projected": lambda: open_source(data / "csv", name="left", columns=["x", "k"]),
        "json lines": lambda: open_source(data / "jsonl" / "*.gz", name="left"),
        "json lines, projected": lambda: open_source(data / "jsonl", name="left", columns=["x", "k"]),
        "arrow file": lambda: open_source(data / "arrow", name="left"),
        "arrow file, projected": lambda: open_source(data / "arrow", name="left", columns=["x", "k"]),
        "arrow stream": lambda: open_source(data / "stream.arrows", name="left"),
        "arrow stream, projected": lambda: open_source(data / "stream.arrows", name="left", columns=["x", "k"]),
        "table": lambda: open_source(TABLE, name="left"),
        "batches": lambda: open_source(batches, name="left"),
        "pandas": lambda: open_source(TABLE.to_pandas(), name="left"),
        "polars": lambda: open_source(pl.from_arrow(TABLE), name="left"),
        "lazy polars": lambda: open_source(pl.from_arrow(TABLE).lazy(), name="left"),
        "reader": lambda: open_source(TABLE.to_reader(max_chunksize=77), name="left"),
        "generator": lambda: open_source((batch for batch in batches), name="left"),
        "generator, projected": lambda: open_source(iter(batches), name="left", columns=["x", "k"]),
        "generated": lambda: generated(ROWS, 50, skew=0.8, seed=3, null_fraction=0.1),
        "simulated": lambda: SimulatedSource(
            open_source(TABLE, name="left"), Bursty(0.001, 5, 0.2), rows_per_packet=37, seed=1, clock=Instant()
        ),
    }[kind]()


KINDS = [
    "parquet", "parquet, several files", "parquet, projected", "parquet, shuffled", "csv", "csv, projected",
    "json lines", "json lines, projected", "arrow file", "arrow file, projected", "arrow stream",
    "arrow stream, projected", "table", "batches", "pandas", "polars", "lazy polars", "reader", "generator",
    "generator, projected", "generated", "simulated",
]  # fmt: skip
SIZES = st.integers(1, 400).flatmap(lambda first: st.tuples(st.just(first), st.integers(first, 1500)))


@pytest.mark.parametrize("kind", KINDS)
def test_same_rows_at_any_size_and_start(kind: str, data: Path) -> None:
    whole = make(kind, data)
    everything = pa.Table.from_batches(whole.batches(BatchSizes()), whole.schema)
    assert everything.num_rows == ROWS

    @settings(max_examples=12, deadline=None)
    @given(size=SIZES, start_row=st.integers(0, ROWS + 10))
    def check(size: tuple[int, int], start_row: int) -> None:
        limits = BatchSizes(first=size[0], most=size[1])
        source = make(kind, data)
        batches = list(source.batches(limits, start_row))
        assert all(0 < batch.num_rows <= limits.most for batch in batches)
        assert all(batch.schema.equals(source.schema, check_metadata=True) for batch in batches)
        if batches:
            assert batches[0].num_rows <= limits.first
        assert pa.Table.from_batches(batches, source.schema).equals(everything.slice(start_row))

    check()


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("generated", "parquet, shuffled")])
def test_the_rows_are_those_written(kind: str, data: Path) -> None:
    source = make(kind, data)
    expected = TABLE.select(source.schema.names)
    result = pa.Table.from_batches(source.batches(BatchSizes(first=64, most=256)), source.schema)
    if kind == "pandas":  # a column with nulls is a float column there
        assert pd.isna(result["k"].to_pandas()).sum() == TABLE["k"].null_count
        return
    assert result.cast(expected.schema).equals(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_hints_and_kinds(kind: str, data: Path) -> None:
    source = make(kind, data)
    assert source.rows_hint in (None, ROWS)
    assert source.bytes_hint is None or 1000 < source.bytes_hint < 200_000
    once = kind.startswith(("reader", "generator"))
    assert source.replayable is not once
    assert source.live is (once or kind == "simulated")


@pytest.mark.parametrize("kind", KINDS)
def test_a_negative_start_is_refused(kind: str, data: Path) -> None:
    with pytest.raises(InputError, match="start_row must not be negative, got -1"):
        list(make(kind, data).batches(BatchSizes(), -1))


@pytest.mark.parametrize("kind", KINDS)
def test_can_be_left_in_the_middle(kind: str, data: Path) -> None:
    batches = make(kind, data).batches(BatchSizes(first=10, most=20))
    next(batches)
    batches.close()  # type: ignore[attr-defined]
