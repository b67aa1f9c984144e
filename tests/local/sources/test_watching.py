"""Inputs that change: while they are read, and between pause and resume."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import earlyjoin as ej
from earlyjoin.errors import EarlyJoinError, SnapshotError, SourceError
from earlyjoin.local.sources import watching
from earlyjoin.local.sources.watching import fingerprint

ROWS = 60_000
FORMATS = ["csv", "jsonl", "arrow", "arrows", "parquet"]
SMALL = pa.table({"k": [0, 1, 2]})


def table(shift: int = 0, rows: int = ROWS) -> pa.Table:
    return pa.table({"k": [n % 1000 for n in range(shift, shift + rows)], "id": range(100_000, 100_000 + rows)})


def write(path: Path, data: pa.Table) -> Path:
    if path.suffix == ".csv":
        pacsv.write_csv(data, path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(f'{{"k": {k}, "id": {i}}}\n' for k, i in zip(*data.to_pydict().values(), strict=True)))
    elif path.suffix == ".arrow":
        feather.write_feather(data, path, compression="uncompressed", chunksize=5000)
    elif path.suffix == ".arrows":
        with pa.ipc.new_stream(path, data.schema) as stream:
            stream.write_table(data, max_chunksize=5000)
    else:
        pq.write_table(data, path, row_group_size=5000)
    return path


def cut_short(path: Path) -> None:
    lines = path.read_bytes()[: path.stat().st_size // 2]
    path.write_bytes(lines[: lines.rfind(b"\n") + 1] if path.suffix in (".csv", ".jsonl") else lines)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"1,2\n" if path.suffix == ".csv" else b'{"k": 1, "id": 2}\n')


def edit(path: Path) -> None:
    """One value in place, near the end."""
    with path.open("r+b") as file:
        file.seek(-3, os.SEEK_END)
        last = file.read(1)
        file.seek(-3, os.SEEK_END)
        file.write(b"7" if last != b"7" else b"8")


def replace(path: Path) -> None:
    other = write(path.with_name("other" + path.suffix), table(shift=1))
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)


@pytest.mark.parametrize("change", [cut_short, grow, edit, replace])
@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_that_changes_while_it_is_read_is_an_error(
    tmp_path: Path, kind: str, change: Callable[[Path], None]
) -> None:
    path = write(tmp_path / f"data.{kind}", table())
    with ej.join(path, SMALL, on="k", how="left", memory="200KB", batch_rows=100, algorithm="shj") as query:
        for _, _batch in zip(range(3), query, strict=False):
            pass
        change(path)
        with pytest.raises(SourceError, match=rf"data\.{kind}: has changed while it was read"):
            query.to_arrow()


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_that_changes_before_it_is_read(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / f"data.{kind}", table())
    query = ej.join(path, SMALL, on="k")
    write(path, table(rows=ROWS // 2))
    with pytest.raises(SourceError, match=rf"data\.{kind}: has changed .* bytes instead of"):
        query.to_arrow()


def test_a_file_that_was_read_is_looked_at_again_at_the_end(tmp_path: Path) -> None:
    small, large = write(tmp_path / "small.csv", SMALL), write(tmp_path / "large.csv", table())
    query = ej.join(small, large, on="k", memory="500KB", batch_rows=10)
    next(iter(query))
    grow(small)
    with pytest.raises(SourceError, match=r"small\.csv: has changed"):
        query.to_arrow()


def test_the_head_of_a_file_that_changes_is_not_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "data.csv", table())
    with ej.join(path, SMALL, on="k", memory="200KB", batch_rows=10) as query:
        assert query.head(1).num_rows == 1
        grow(path)
        assert query.head(2).num_rows == 2
        query.stop()


def test_nothing_is_written_of_a_file_that_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "data.csv", table())
    query = ej.join(path, SMALL, on="k", memory="200KB", batch_rows=10)
    query.head(1)
    cut_short(path)
    with pytest.raises(SourceError):
        query.write(tmp_path / "out.parquet")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data.csv"]


def paused(tmp_path: Path, *inputs: Path) -> tuple[list[pa.RecordBatch], Path]:
    query = ej.join(*inputs, on="k", memory="300KB", batch_rows=200, algorithm="ehj")
    taken = [batch for _, batch in zip(range(3), query, strict=False)]
    query.pause(tmp_path / "saved")
    return taken, tmp_path / "saved"


def rows(data: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in data.to_pylist())


def replace_by_shorter(path: Path) -> None:
    write(path, table(rows=ROWS // 2))


@pytest.mark.parametrize("change", [replace, replace_by_shorter, edit])
@pytest.mark.parametrize("kind", FORMATS)
def test_resuming_on_a_changed_file_is_refused(tmp_path: Path, kind: str, change: Callable[[Path], None]) -> None:
    path = write(tmp_path / f"data.{kind}", table())
    _, saved = paused(tmp_path, path, write(tmp_path / "small.parquet", SMALL))
    before = path.stat()
    change(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(SnapshotError, match=rf"data\.{kind}: has changed since the query was paused"):
        ej.resume(saved)


@pytest.mark.parametrize("kind", FORMATS)
def test_resuming_on_the_same_bytes_goes_on(tmp_path: Path, kind: str) -> None:
    path, small = write(tmp_path / f"data.{kind}", table()), write(tmp_path / "small.parquet", SMALL)
    expected = ej.join(path, small, on="k").to_arrow()
    taken, saved = paused(tmp_path, path, small)
    shutil.copy(path, tmp_path / "copy")
    (tmp_path / "copy").replace(path)
    os.utime(small)
    rest = list(ej.resume(saved))
    assert rows(pa.Table.from_batches(taken + rest)) == rows(expected)


def test_files_that_have_moved_are_given_and_compared(tmp_path: Path) -> None:
    path, small = write(tmp_path / "data.csv", table()), write(tmp_path / "small.csv", SMALL)
    expected = ej.join(path, small, on="k").to_arrow()
    taken, saved = paused(tmp_path, path, small)
    moved = path.rename(tmp_path / "moved.csv")
    with pytest.raises(SnapshotError, match=r"data\.csv: is gone"):
        ej.resume(saved)
    rest = list(ej.resume(saved, left=moved))
    assert rows(pa.Table.from_batches(taken + rest)) == rows(expected)
    edit(moved)
    with pytest.raises(SnapshotError, match=r"moved\.csv: has changed since"):
        ej.resume(saved, left=moved)


@pytest.mark.parametrize("pattern", ["", "*.csv"])
def test_files_added_and_removed(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "in").mkdir()
    parts = [write(tmp_path / "in" / f"part-{n}.csv", table(n, 5000)) for n in range(3)]
    small = write(tmp_path / "small.csv", SMALL)
    expected = ej.join(tmp_path / "in" / pattern, small, on="k").to_arrow()
    taken, saved = paused(tmp_path, tmp_path / "in" / pattern, small)
    added = write(tmp_path / "in" / "part-9.csv", table(0, 10))
    with pytest.raises(SnapshotError, match=r"has other files than when the query was paused: .*part-9\.csv is new"):
        ej.resume(saved)
    added.unlink()
    hidden = parts[1].rename(tmp_path / "hidden.csv")
    with pytest.raises(SnapshotError, match=r"part-1\.csv: is gone"):
        ej.resume(saved)
    hidden.rename(parts[1])
    assert rows(pa.Table.from_batches(taken + list(ej.resume(saved)))) == rows(expected)


def test_a_file_that_has_changed_cannot_be_paused(tmp_path: Path) -> None:
    path = write(tmp_path / "data.csv", table())
    query = ej.join(path, SMALL, on="k", memory="200KB", batch_rows=10)
    query.head(1)
    grow(path)
    with pytest.raises(SourceError, match=r"data\.csv: has changed"):
        query.pause(tmp_path / "saved")
    query.close()


def test_a_table_of_another_length_is_refused(tmp_path: Path) -> None:
    query = ej.join(table(), SMALL, on="k", batch_rows=10)
    query.head(1)
    query.pause(tmp_path / "saved")
    with pytest.raises(SnapshotError, match="input 'left' has 3 rows, and had 60,000 rows when the query was paused"):
        ej.resume(tmp_path / "saved", left=table(rows=3), right=SMALL)


def test_the_fingerprint_of_a_large_file_takes_blocks_of_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(watching, "_HASHED_BYTES", 16 << 10)
    path = tmp_path / "file"
    path.write_bytes(bytes(64 << 10))
    whole = fingerprint(str(path))
    for place in (0, 1023, (64 << 10) - 1, 63 << 10):
        content = bytearray(64 << 10)
        content[place] = 1
        path.write_bytes(content)
        assert fingerprint(str(path)) != whole
    path.write_bytes(bytes((64 << 10) + 1))
    assert fingerprint(str(path)) != whole


def test_rows_in_a_file_that_had_none(tmp_path: Path) -> None:
    for header in ("k,id", "k,id\n"):
        path = tmp_path / "header.csv"
        path.write_text(header)
        query = ej.join(path, SMALL, on="k")
        path.write_text("k,id\n,\n")
        with pytest.raises(EarlyJoinError, match=r"header\.csv: has changed"):
            query.to_arrow()
