"""Parquet: lazy, projected, shuffled by row group, and clear about broken files."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earlyjoin.errors import InputError, SourceError
from earlyjoin.local.sources import BatchSizes, open_source


def write(path: Path, rows: int = 1000, start: int = 0, groups: int = 100) -> Path:
    a, b = pa.array(range(start, start + rows), pa.int64()), pa.array(["x" * 50] * rows, pa.string())
    pq.write_table(pa.table({"a": a, "b": b}), path, row_group_size=groups)
    return path


def values(path: object, size: BatchSizes | None = None, start_row: int = 0, **options: object) -> list[int]:
    source = open_source(path, name="left", **options)
    return [value for batch in source.batches(size or BatchSizes(), start_row) for value in batch["a"].to_pylist()]


def test_batches_start_small_and_grow(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "a.parquet", 100_000, groups=40_000), name="left")
    rows = [batch.num_rows for batch in source.batches(BatchSizes(first=1000, most=16_000))]
    assert rows[:5] == [1000, 2000, 4000, 8000, 16_000]
    assert max(rows) == 16_000
    assert len(rows) < 12


def test_tiny_row_groups_are_read_together(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "a.parquet", 1000, groups=10), name="left")
    assert [batch.num_rows for batch in source.batches(BatchSizes(first=100, most=330))] == [10, 330, 330, 330]


def test_start_row_reads_only_what_is_needed(tmp_path: Path) -> None:
    """What lies before the start is never touched: it may even be garbage."""
    path = write(tmp_path / "a.parquet")
    chunk = pq.read_metadata(path).row_group(8).column(0)
    with open(path, "r+b") as file:
        file.seek(4)
        file.write(b"\0" * (chunk.dictionary_page_offset - 4))
    source = open_source(path, name="left")
    assert [batch["a"][0].as_py() for batch in source.batches(BatchSizes(), 850)][:1] == [850]


def test_shuffled_is_a_permutation_of_row_groups(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", 500)
    write(tmp_path / "1.parquet", 500, start=500)
    shuffled = values(tmp_path, order="shuffled", seed=1)
    assert shuffled != sorted(shuffled)
    assert sorted(shuffled) == list(range(1000))
    blocks = [shuffled[i : i + 100] for i in range(0, 1000, 100)]
    assert all(block == list(range(block[0], block[0] + 100)) for block in blocks)
    assert values(tmp_path, order="shuffled", seed=1) == shuffled
    assert values(tmp_path, order="shuffled", seed=2) != shuffled
    assert values(tmp_path, start_row=250, order="shuffled", seed=1) == shuffled[250:]
    with pytest.raises(InputError, match="order must be 'stored' or 'shuffled', got 'random'"):
        values(tmp_path, order="random")


def test_projection(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    whole, narrow = open_source(path, name="left"), open_source(path, name="left", columns=["a"])
    assert narrow.schema.names == ["a"]
    assert narrow.bytes_hint < whole.bytes_hint / 1.5
    with pytest.raises(InputError, match=r"a.parquet: no column 'orderkey'; it has a, b"):
        open_source(path, name="left", columns=["orderkey"])
    with pytest.raises(InputError, match="columns names one column twice: a, a"):
        open_source(path, name="left", columns=["a", "a"])


def test_nested_columns_and_dots(tmp_path: Path) -> None:
    table = pa.table({"s": [{"x": 1, "y": "a"}], "s.x": [7], "l": [[1, 2]]})
    pq.write_table(table, tmp_path / "n.parquet")
    source = open_source(tmp_path / "n.parquet", name="left", columns=["l", "s"])
    assert pa.Table.from_batches(source.batches(BatchSizes())).equals(table.select(["l", "s"]))


def test_files_must_agree(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), tmp_path / "1.parquet")
    with pytest.raises(InputError, match=r"1.parquet: column 'a' is int32, not int64, compared with .*0.parquet"):
        open_source(tmp_path, name="left")
    narrow = open_source(tmp_path, name="left", columns=["b"])
    assert sum(batch.num_rows for batch in narrow.batches(BatchSizes())) == 1001
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    with pytest.raises(InputError, match=r"1.parquet: column 'b' is missing, compared with .*0.parquet"):
        open_source(tmp_path, name="left")
    pq.write_table(pa.table({"a": [1], "b": ["x"], "c": [1]}), tmp_path / "1.parquet")
    with pytest.raises(InputError, match=r"1.parquet: column 'c' is new"):
        open_source(tmp_path, name="left")
    pq.write_table(pa.table({"b": ["x"], "a": [1]}), tmp_path / "1.parquet")
    with pytest.raises(InputError, match=r"1.parquet: column 1 is 'b', not 'a'"):
        open_source(tmp_path, name="left")


def test_nullability_and_metadata_may_differ(tmp_path: Path) -> None:
    strict = pa.schema([pa.field("a", pa.int64(), nullable=False)], metadata={"who": "one"})
    pq.write_table(pa.table({"a": [1]}, schema=strict), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": [None, 3]}, schema=pa.schema([("a", pa.int64())])), tmp_path / "1.parquet")
    source = open_source(tmp_path, name="left")
    assert source.schema.field("a").nullable
    assert values(tmp_path) == [1, None, 3]


def test_without_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", 0)
    assert values(path) == []
    assert values(path, start_row=5) == []
    assert open_source(path, name="left").bytes_hint == 0
    assert values([path, write(tmp_path / "b.parquet", 3)]) == [0, 1, 2]


def test_not_parquet(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    whole = path.read_bytes()
    for content in (b"", b"a,b\n1,2\n", whole[:-30], whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"a.parquet: is not a valid Parquet file: .*"):
            open_source(path, name="left")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_not_readable(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    path.chmod(0)
    with pytest.raises(InputError, match=r"a.parquet: cannot be opened: Permission denied"):
        open_source(path, name="left")


def test_breaks_in_the_middle(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    content = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(5).column(0)
    content[chunk.dictionary_page_offset : chunk.dictionary_page_offset + 60] = b"\xff" * 60
    path.write_bytes(content)
    source = open_source(path, name="left")
    rows: list[int] = []
    with pytest.raises(InputError, match=r"a.parquet: the Parquet content is broken: "):
        rows.extend(batch.num_rows for batch in source.batches(BatchSizes(first=50, most=100)))
    assert sum(rows) >= 400
    path.write_bytes(content[:300])
    with pytest.raises(SourceError, match=r"a.parquet: has changed while it was read"):
        list(source.batches(BatchSizes()))


def test_disappears_in_the_middle(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet")
    gone = write(tmp_path / "1.parquet")
    source = open_source(tmp_path, name="left")
    gone.unlink()
    with pytest.raises(SourceError, match=r"1.parquet: could not be read on: No such file or directory"):
        list(source.batches(BatchSizes()))
