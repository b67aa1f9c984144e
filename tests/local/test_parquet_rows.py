"""Parquet files are written in row groups of a useful size, whatever the batches are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from earlyjoin.local.outputs import writers
from earlyjoin.local.outputs.sinks import open_sink


def _written(path: Path, batches: list[pa.RecordBatch]) -> pq.FileMetaData:
    sink = open_sink(path, batches[0].schema)
    for batch in batches:
        sink.write(batch)
    sink.commit()
    return pq.read_metadata(path)


def test_short_batches_share_a_row_group(tmp_path: Path) -> None:
    batches = [pa.record_batch({"a": [at, at + 1], "b": ["x", None]}) for at in range(0, 200, 2)]
    metadata = _written(tmp_path / "out.parquet", batches)
    assert metadata.num_row_groups == 1
    assert pq.read_table(tmp_path / "out.parquet") == pa.Table.from_batches(batches)


def test_a_row_group_ends_at_its_bytes(tmp_path: Path) -> None:
    text = "x" * (writers.GROUP_BYTES // 4)
    metadata = _written(tmp_path / "out.parquet", [pa.record_batch({"a": [text]}) for _ in range(8)])
    assert [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)] == [4, 4]
