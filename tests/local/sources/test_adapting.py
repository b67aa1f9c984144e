"""CSV files with a header and no rows join with anything."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import earlyjoin as ej
from earlyjoin.local.sources import open_source
from earlyjoin.local.sources.adapting import adapted
from earlyjoin.local.sources.text.csv import CsvSource

OTHER = pa.table(
    {
        "k": pa.array([1, 2, None], pa.int64()),
        "t": pa.array([datetime.datetime(2024, 1, 1)] * 3, pa.timestamp("us")),
        "x": pa.array([0.5, 1.5, 2.5]),
        "y": pa.array([1.5, 2.5, 3.5]),
        "s": pa.array(["a", "b", "c"]),
    }
)
CONDITIONS = {
    "equality": ej.equal("k"),
    "several": ej.equal(["k", "s", "t"]),
    "band": ej.band("t", eps="5 minutes"),
    "order": ej.less("x"),
    "unequal": ej.not_equal("s"),
    "overlap": ej.overlaps(("x", "y"), ("x", "y")),
    "rectangles": ej.intersects(("x", "y", "x", "y"), ("x", "y", "x", "y")),
    "near": ej.near(["x", "y"], ["x", "y"], eps=1.0),
    "and": ej.equal("k") & ej.band("x", eps=1.0) & ej.where(pc.field("y") > 2.0),
}
HOW = ["inner", "left", "right", "full", "semi", "anti"]


@pytest.fixture(params=["k,t,x,y,s", "k,t,x,y,s\n"], ids=["bare", "line"])
def header(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A CSV file without rows."""
    path = tmp_path / "header.csv"
    path.write_text(request.param)
    return path


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("condition", list(CONDITIONS))
def test_no_rows_join_with_any_type(header: Path, condition: str, how: str) -> None:
    on = CONDITIONS[condition]
    kept = {"left": (0, 3), "right": (3, 0), "full": (3, 3), "anti": (0, 3)}.get(how, (0, 0))
    assert ej.join(header, OTHER, on=on, how=how).to_arrow().num_rows == kept[0]  # type: ignore[arg-type]
    assert ej.join(OTHER, header, on=on, how=how).to_arrow().num_rows == kept[1]  # type: ignore[arg-type]
    assert ej.join(header, header, on=on, how=how).to_arrow().num_rows == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("how", HOW)
def test_joined_columns_have_the_type_of_the_other_side(header: Path, how: str) -> None:
    on = ["k", ("t", "t")]
    for sides in ((header, OTHER), (OTHER, header)):
        schema = ej.join(*sides, on=on, how=how).schema  # type: ignore[arg-type]
        assert schema.field("k").type == pa.int64()
        assert schema.field("t").type == pa.timestamp("us")
    swapped = ej.join(header, OTHER, on=[("k", "s")], how=how).schema  # type: ignore[arg-type]
    assert swapped.field("k").type == pa.string()


def test_many_inputs(header: Path) -> None:
    query = ej.multi_join({"a": header, "b": OTHER, "c": header}, on=["a.k = b.k", "b.k = c.k"])
    assert query.schema.field("k_c").type == pa.int64()
    assert query.to_arrow().num_rows == 0


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow", ".jsonl"])
def test_the_result_can_be_written(header: Path, tmp_path: Path, suffix: str) -> None:
    assert ej.join(OTHER, header, on="k", how="left").write(tmp_path / f"out{suffix}") == 3
    assert ej.join(header, header, on="k").write(tmp_path / f"none{suffix}") == 0


def test_types_that_were_given_stay(header: Path) -> None:
    source = open_source(header, name="left", types={"k": "int32", "s": "string"})
    assert source.schema.field("k").type == pa.int32()
    schema = ej.join(source, OTHER, on=[("k", "k")]).schema
    assert (schema.field("k").type, schema.field("s").type) == (pa.int32(), pa.string())


@pytest.mark.parametrize("how", ["inner", "right", "left", "full"])
def test_sums_over_no_rows(header: Path, how: str) -> None:
    other = OTHER.rename_columns(["k", "t2", "x2", "y2", "s2"])
    sums = {"sum": ej.sum("x"), "more": ej.sum(pc.field("x") * 2), "mean": ej.avg("x"), "count": ej.count("x")}
    query = ej.join(header, other, on="k", how=how, aggregates=sums)  # type: ignore[arg-type]
    query.to_arrow()
    found = {name: value and value["value"] for name, value in query.estimates.items()}
    assert found == {"sum": 0, "more": 0, "mean": None, "count": 0}


def test_empty_values_are_rows(tmp_path: Path) -> None:
    path = tmp_path / "nulls.csv"
    path.write_text("k,t\n,\n,\n")
    assert open_source(path, name="left").schema == pa.schema([("k", pa.string()), ("t", pa.string())])


def test_paused_and_resumed(header: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("k\n1\n2\n")
    query = ej.join(header, other, on="k", how="full")
    query.pause(tmp_path / "saved")
    assert ej.resume(tmp_path / "saved").to_arrow()["k"].to_pylist() == [1, 2]


def test_a_source_of_other_types_tells_what_its_input_tells(header: Path) -> None:
    class Shuffled(CsvSource):
        def shuffled_blocks(self) -> tuple[list[int], int]:
            return [], 7

    empty = Shuffled([str(header)], name="left")
    changed, _ = adapted((empty, open_source(OTHER, name="right")), ej.equal("k"))
    assert changed.schema.field("k").type == pa.int64()
    assert changed.shuffled_blocks() == ([], 7)
    assert (changed.rows_hint, changed.files) == (0, empty.files)
