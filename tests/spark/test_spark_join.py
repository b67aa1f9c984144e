"""Joins of Spark DataFrames give what the oracle, or Spark's own join, gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import earlyjoin as ej
from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates import equal
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.query import SparkQuery
from spark.tables import KEY_TYPES, in_files, keyed, multiset, numbered

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

HOWS = ("inner", "left", "right", "full", "semi", "anti")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, str, pa.Table, str]:
    directory = tmp_path_factory.mktemp("tables")
    left, right = numbered(3000, 2000, "a", 1), numbered(2000, 2500, "b", 2)
    return left, in_files(left, directory / "left", 6), right, in_files(right, directory / "right", 5)


@pytest.mark.parametrize("how", HOWS)
def test_join_types(spark: Any, tables: tuple[pa.Table, str, pa.Table, str], how: Any) -> None:
    left, left_path, right, right_path = tables
    query = ej.join(spark.read.parquet(left_path), spark.read.parquet(right_path), on="k", how=how)
    result = query.to_arrow()
    expected = ej.join(left, right, on="k", how=how, algorithm="nested").to_arrow()
    assert result.schema.names == expected.schema.names
    assert multiset(result) == multiset(expected)
    phases = query.summary()["phases"]
    assert sum(phases.values()) == len(result)
    assert (phases["arriving"] > 0) == (how != "anti")
    assert phases["cleanup"] > 0
    assert query.estimate == {"rows": len(result), "low": len(result), "high": len(result), "confidence": 1.0}


@pytest.mark.parametrize(("kind", "how"), list(zip(KEY_TYPES, HOWS * 2, strict=False)))
def test_key_types(spark: Any, tmp_path: Path, kind: str, how: Any) -> None:
    tables = [keyed(kind, 60, "a", 2), keyed(kind, 40, "b", 3)]
    frames = [spark.read.parquet(in_files(t, tmp_path / str(side), 3)) for side, t in enumerate(tables)]
    result = ej.join(*frames, on=[("k", "k")], how=how).to_arrow()
    expected = ej.join(*tables, on=[("k", "k")], how=how, algorithm="nested").to_arrow()
    numbers = [name for name in ("a", "b") if name in expected.schema.names]
    assert multiset(result.select(numbers)) == multiset(expected.select(numbers))
    if kind != "timestamp":  # Spark has them in the zone of the session
        assert multiset(result) == multiset(expected)


def test_filters_projections_and_computed_columns(spark: Any, tables: tuple[pa.Table, str, pa.Table, str]) -> None:
    left, left_path, right, right_path = tables
    frame = spark.read.parquet(left_path).where("a % 3 = 0").selectExpr("k % 500 AS k", "a * 2 AS double")
    query = ej.join(frame, spark.read.parquet(right_path), on="k")
    assert query.head(10).num_rows == 10
    rows = [{"k": row["k"] % 500, "double": 2 * row["a"]} for row in left.to_pylist() if row["a"] % 3 == 0]
    expected = ej.join(pa.Table.from_pylist(rows), right, on="k").to_arrow()
    assert multiset(query.to_arrow()) == multiset(expected)
    assert query.summary()["phases"]["arriving"] > 0


def test_self_join_with_duplicate_names(spark: Any, tables: tuple[pa.Table, str, pa.Table, str]) -> None:
    right, path = tables[2], tables[3]
    frame = spark.read.parquet(path)
    result = ej.join(frame, frame, on=[("k", "k")], how="left").to_arrow()
    assert result.schema.names == ["k", "b", "k_right", "b_right"]
    assert multiset(result) == multiset(ej.join(right, right, on=[("k", "k")], how="left").to_arrow())


@pytest.mark.parametrize("how", ["inner", "full"])
def test_empty_side_and_no_matching_block(spark: Any, tmp_path: Path, how: Any) -> None:
    some, none = numbered(50, 10, "a", 0), numbered(0, 10, "b", 0)
    frames = [spark.read.parquet(in_files(t, tmp_path / str(side), 2)) for side, t in enumerate((some, none))]
    assert multiset(ej.join(*frames, on="k", how=how).to_arrow()) == multiset(
        ej.join(some, none, on="k", how=how).to_arrow()
    )
    apart = spark.read.parquet(in_files(pa.table({"k": [100, 101], "b": [1, 2]}), tmp_path / "apart", 2))
    query = ej.join(frames[0], apart, on="k", how=how)
    assert len(query.to_arrow()) == (0 if how == "inner" else 52)


def test_everything_early(spark: Any, tables: tuple[pa.Table, str, pa.Table, str]) -> None:
    """Enough rounds draw every block: the estimate is exact before the bulk, which has nothing to add."""
    left, left_path, right, right_path = tables
    frames = [spark.read.parquet(path) for path in (left_path, right_path)]
    query = SparkQuery(*frames, equal("k"), SparkOptions(early_share=float("inf")))
    expected = ej.join(left, right, on="k").to_arrow()
    batches = []
    for batch in query:
        batches.append(batch)
        if sum(one.num_rows for one in batches) == len(expected):
            break
    assert multiset(pa.Table.from_batches(batches)) == multiset(expected)
    assert query.progress.phase == "arriving"
    assert len(query.to_arrow()) == 0
    assert query.estimate == {"rows": len(expected), "low": len(expected), "high": len(expected), "confidence": 1.0}
    assert query.summary()["phases"]["cleanup"] == 0


def test_to_df_is_lazy_and_complete(spark: Any, tables: tuple[pa.Table, str, pa.Table, str]) -> None:
    left, left_path, right, right_path = tables
    query = ej.join(left_path, right_path, on="k", engine="spark")
    frame = query.to_df()
    assert query.state == "new"
    assert frame.columns == ["k", "a", "b"]
    assert frame.where("a < 100").count() == len(ej.join(left.slice(0, 100), right, on="k").to_arrow())


def test_write_and_read_by_table_name(spark: Any, tables: tuple[pa.Table, str, pa.Table, str], tmp_path: Path) -> None:
    left, left_path, right, right_path = tables
    spark.read.parquet(left_path).createOrReplaceTempView("early_left")
    query = ej.join("early_left", right_path, on="k", how="full", engine="spark")
    query.head(5)
    target = tmp_path / "joined.parquet"
    written = query.write(target)
    expected = ej.join(left, right, on="k", how="full").to_arrow()
    assert written == len(expected)
    assert multiset(spark.read.parquet(str(target)).toArrow()) == multiset(expected)
    assert query.state == "finished"
    with pytest.raises(InputError, match="exists"):
        ej.join(left_path, right_path, on="k", engine="spark").write(target)


@pytest.mark.parametrize("how", ["inner", "full", "semi"])
def test_rows_taken_by_iterating_are_not_written(
    spark: Any, tables: tuple[pa.Table, str, pa.Table, str], tmp_path: Path, how: str
) -> None:
    left, left_path, right, right_path = tables
    query = ej.join(left_path, right_path, on="k", how=how, engine="spark")
    taken = next(iter(query))
    assert query.progress.phase == "arriving", "a row of the early phase"
    written = query.write(tmp_path / "rest.parquet")
    rest = spark.read.parquet(str(tmp_path / "rest.parquet")).toArrow()
    expected = ej.join(left, right, on="k", how=how).to_arrow()
    assert 0 < taken.num_rows < len(expected)
    assert written == len(rest) == len(expected) - taken.num_rows
    assert multiset(rest) + multiset(pa.Table.from_batches([taken])) == multiset(expected)


def test_larger_tables_against_sparks_own_join(spark: Any, tmp_path: Path) -> None:
    """Count and a hash of the rows, of what is written and of what is collected."""
    tables = [numbered(60_000, 30_000, "a", 5), numbered(40_000, 30_000, "b", 6)]
    paths = [in_files(table, tmp_path / str(side), 8) for side, table in enumerate(tables)]
    frames = [spark.read.parquet(path) for path in paths]
    query = ej.join(*frames, on="k", how="full")
    query.head(1000)
    query.write(tmp_path / "out.parquet")
    plain = frames[0].join(frames[1], "k", "full")
    assert _fingerprint(spark.read.parquet(str(tmp_path / "out.parquet"))) == _fingerprint(plain)
    collected = spark.createDataFrame(ej.join(*frames, on="k").to_arrow())
    assert _fingerprint(collected) == _fingerprint(frames[0].join(frames[1], "k"))


def _fingerprint(frame: Any) -> tuple[int, int]:
    from pyspark.sql import functions as f

    hashed = f.xxhash64("k", "a", "b").cast("decimal(38,0)")
    count, total = frame.agg(f.count(f.lit(1)), f.sum(hashed)).collect()[0]
    return count, int(total)


def test_estimates_of_true_runs(spark: Any, tables: tuple[pa.Table, str, pa.Table, str]) -> None:
    left, left_path, right, right_path = tables
    truth = len(ej.join(left, right, on="k").to_arrow())
    frames = [spark.read.parquet(path) for path in (left_path, right_path)]
    for seed in range(3):
        with SparkQuery(*frames, equal("k"), SparkOptions(seed=seed)) as query:
            batches = iter(query)
            while query.estimate is None:
                next(batches)
            assert query.estimate["confidence"] == 0.95
            assert query.estimate["low"] <= truth <= query.estimate["high"]


def test_few_files_are_estimated_by_their_keys(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of the only file would cost as much as the table: only keys are read, and no such row goes out."""
    from earlyjoin.spark.early import blocks, drawing

    monkeypatch.setattr(drawing, "SMALL_BYTES", 0)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 256)
    tables = [numbered(6000, 3000, "a", 5), numbered(4000, 3000, "b", 6)]
    frames = [spark.read.parquet(in_files(t, tmp_path / str(side), 1)) for side, t in enumerate(tables)]
    expected = ej.join(*tables, on="k").to_arrow()
    query = SparkQuery(*frames, equal("k"))
    taken = 0
    for batch in query:
        taken += batch.num_rows
        if query.progress.phase == "cleanup":
            break
    assert query.estimate is not None
    assert query.estimate["confidence"] == 0.95
    assert query.estimate["low"] <= len(expected) <= query.estimate["high"]
    assert taken + len(query.to_arrow()) == len(expected)


def test_streamed_delivery(spark: Any, tables: tuple[pa.Table, str, pa.Table, str], monkeypatch: Any) -> None:
    from earlyjoin.spark.bulk import delivery

    monkeypatch.setattr(delivery, "COLLECTED_NBYTES", 0)
    left, left_path, right, right_path = tables
    frames = [spark.read.parquet(path) for path in (left_path, right_path)]
    assert multiset(ej.join(*frames, on="k").to_arrow()) == multiset(ej.join(left, right, on="k").to_arrow())


def test_no_blocks_says_so(spark: Any, tables: tuple[pa.Table, str, pa.Table, str]) -> None:
    left, left_path, right, right_path = tables
    numbered = spark.read.parquet(left_path).selectExpr("k", "row_number() OVER (PARTITION BY k ORDER BY a) AS n")
    query = ej.join(numbered.where("n = 1"), spark.read.parquet(right_path), on="k", how="semi")
    assert "none: the left input has no blocks to choose from: it is behind a window" in query.explain()
    both = set(left.column("k").to_pylist()) & set(right.column("k").to_pylist())
    assert len(query.to_arrow()) == len(both)
    assert query.summary()["phases"]["arriving"] == 0


def test_refusals(spark: Any) -> None:
    frame = spark.range(3)
    with pytest.raises(InputError, match="for the local engine"):
        ej.join(frame, frame, on="id", algorithm="shj")
    with pytest.raises(InputError, match="engine='local'"):
        ej.join(frame, frame, on="id", engine="local")
    with pytest.raises(UnsupportedError, match="Arrow expression"):
        ej.join(frame, frame, on=ej.equal("id") & ej.where(pc.field("id") > 1))
    with pytest.raises(InputError, match="'idd' is not in the left input"):
        ej.join(frame, frame, on="idd")
    with pytest.raises(InputError, match="left input is a int"):
        ej.join(3, frame, on="id")
