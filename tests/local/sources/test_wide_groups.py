"""Row groups that are too wide to be read side by side: the same rows, in far less memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earlyjoin.errors import DamagedFile
from earlyjoin.local.sources import BatchSizes, open_source
from earlyjoin.local.sources.columnar.wide_groups import OPEN_BYTES, column_parts
from earlyjoin.state.disk.spill import SpillDirectory


def wide(path: Path, rows: int = 9000, columns: int = 120) -> pa.Table:
    rng = np.random.default_rng(0)
    texts = {f"t{at}": rng.integers(10**11, 10**12, rows).astype(str) for at in range(columns)}
    nested = pa.array([[number, number] if number % 7 else None for number in range(rows)])
    table = pa.table(
        {
            "k": np.arange(rows),
            **texts,
            "list": nested,
            "word": pa.array(["a", "b", None] * (rows // 3)).dictionary_encode(),
            "pair": pa.array([{"x": number, "y": str(number)} for number in range(rows)]),
        }
    )
    pq.write_table(table, path, row_group_size=rows // 2)
    return table


@pytest.mark.parametrize("start_row", [0, 100, 4600])
@pytest.mark.parametrize("columns", [None, ["pair", *(f"t{at}" for at in range(110, 0, -1)), "k"]])
def test_rows_are_the_same(tmp_path: Path, start_row: int, columns: list[str] | None) -> None:
    table = wide(tmp_path / "a.parquet")
    source = open_source(tmp_path / "a.parquet", name="left", columns=columns)
    with SpillDirectory(tmp_path) as spill:
        size = BatchSizes(first=300, most=700, spill=spill)
        batches = list(source.batches(size, start_row))
        assert not list(spill.path.glob("*.columns")), "files that were read are removed"
    expected = table.select(columns or table.column_names).slice(start_row)
    found = pa.Table.from_batches(batches)
    assert found.schema.names == expected.schema.names
    for name in found.schema.names:
        plain = pa.string() if name == "word" else expected.schema.field(name).type
        assert found[name].cast(plain).equals(expected[name].cast(plain)), name
    assert max(batch.num_rows for batch in batches) <= 700


def test_a_reader_holds_little(tmp_path: Path) -> None:
    wide(tmp_path / "a.parquet")
    source = open_source(tmp_path / "a.parquet", name="left")
    before = pa.total_allocated_bytes()

    def most_held(spill: SpillDirectory | None) -> int:
        size = BatchSizes(first=100, most=100, spill=spill)
        return max(pa.total_allocated_bytes() - before for _ in source.batches(size))

    with SpillDirectory(tmp_path) as spill:
        assert most_held(None) > OPEN_BYTES
        assert most_held(spill) < OPEN_BYTES // 4


def test_narrow_files_are_read_side_by_side(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).integers(0, 1 << 60, (4, 200_000))
    pq.write_table(pa.table(list(numbers), list("abcd")), tmp_path / "a.parquet")
    footer = pq.read_metadata(tmp_path / "a.parquet")
    assert column_parts(footer.row_group(0), list("abcd")) is None
    wide(tmp_path / "b.parquet")
    names = ["k", *(f"t{at}" for at in range(120))]
    parts = column_parts(pq.read_metadata(tmp_path / "b.parquet").row_group(0), names)
    assert parts is not None
    assert [name for part in parts for name in part] == names


def test_a_damaged_file_is_noticed(tmp_path: Path) -> None:
    wide(tmp_path / "a.parquet")
    source = open_source(tmp_path / "a.parquet", name="left")
    with SpillDirectory(tmp_path) as spill:
        batches = source.batches(BatchSizes(first=100, most=100, spill=spill))
        next(batches)
        next(batches)
        (path,) = spill.path.glob("*.columns")
        path.write_bytes(bytes(path.stat().st_size))
        with pytest.raises(DamagedFile, match="columns' is damaged"):
            list(batches)


@pytest.mark.parametrize("closed_after", [0, 1])
def test_a_reader_that_outlives_the_query_ends_and_leaves_nothing(tmp_path: Path, closed_after: int) -> None:
    wide(tmp_path / "a.parquet")
    (tmp_path / "spill").mkdir()
    spill = SpillDirectory(tmp_path / "spill")
    batches = open_source(tmp_path / "a.parquet", name="left").batches(BatchSizes(first=300, most=700, spill=spill))
    for _ in range(closed_after):
        next(batches)
    spill.close()
    assert sum(1 for _ in batches) <= 2
    assert list((tmp_path / "spill").iterdir()) == []
