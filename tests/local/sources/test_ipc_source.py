"""Arrow IPC: both formats, and clear about what is neither."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pytest

from earlyjoin.errors import InputError
from earlyjoin.local.sources import BatchSizes, open_source

TABLE = pa.table({"a": range(1000), "b": ["x"] * 1000})


def write(path: Path, table: pa.Table = TABLE, new: Callable[..., object] = pa.ipc.new_file) -> Path:
    with new(path, table.schema) as sink:  # type: ignore[attr-defined]
        sink.write_table(table, max_chunksize=100)
    return path


def values(path: object, start_row: int = 0) -> list[int]:
    source = open_source(path, name="left")
    return [value for batch in source.batches(BatchSizes(), start_row) for value in batch["a"].to_pylist()]


def test_formats_are_told_by_content(tmp_path: Path) -> None:
    write(tmp_path / "0.arrow")
    write(tmp_path / "1.arrow", new=pa.ipc.new_stream)
    feather.write_feather(TABLE, tmp_path / "2.feather", compression="zstd")
    assert values(tmp_path) == [*range(1000)] * 3
    assert values(tmp_path, 2500) == [*range(500, 1000)]
    assert open_source(tmp_path, name="left").bytes_hint > 30_000


def test_dictionaries(tmp_path: Path) -> None:
    table = pa.table({"a": range(6), "d": pa.array(["x", "y", "x", None, "z", "x"]).dictionary_encode()})
    source = open_source(write(tmp_path / "a.arrow", table), name="left", columns=["d"])
    assert pa.Table.from_batches(source.batches(BatchSizes(), 2))["d"].to_pylist() == ["x", None, "z", "x"]


def test_not_arrow(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    whole = write(path).read_bytes()
    for content in (b"", b"a,b\n1,2\n", b"PAR1" * 10):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"a.arrow: is not a valid Arrow IPC file: it does not begin like one"):
            values(path)
    path.write_bytes(whole[:-30])
    with pytest.raises(InputError, match=r"a.arrow: is not a valid Arrow IPC file: "):
        values(path)
    path.write_bytes(b"FEA1" + bytes(100))
    with pytest.raises(InputError, match=r"a.arrow: is Feather version 1; write it again as version 2"):
        values(path)


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_breaks_in_the_middle(tmp_path: Path, new: Callable[..., object]) -> None:
    path = write(tmp_path / "a.arrow", new=new)
    content = path.read_bytes()
    if new is pa.ipc.new_stream:
        path.write_bytes(content[: len(content) // 2])
    else:  # the footer stays, what it points to does not
        middle = len(content) // 2
        path.write_bytes(content[:middle] + b"\xff" * 2000 + content[middle + 2000 :])
    source = open_source(path, name="left")
    with pytest.raises(InputError, match=r"a.arrow: the Arrow IPC content is broken: "):
        list(source.batches(BatchSizes()))


def test_files_must_agree(tmp_path: Path) -> None:
    write(tmp_path / "0.arrow")
    write(tmp_path / "1.arrow", pa.table({"a": ["x"], "b": ["x"]}))
    with pytest.raises(InputError, match=r"1.arrow: column 'a' is string, not int64, compared with .*0.arrow"):
        values(tmp_path)
