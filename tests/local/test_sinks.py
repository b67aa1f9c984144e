"""Files that results are written to: complete or not there, none of the inputs, and swept after a kill."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest

import earlyjoin
from earlyjoin import InputError, SinkError, join
from earlyjoin.local.outputs.sinks import open_sink, sweep

SOURCE = Path(earlyjoin.__file__).parents[1]
TABLE = pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"]})
BATCH = TABLE.to_batches()[0]

WRITER = """
    import sys
    import pyarrow as pa
    from earlyjoin.local.outputs.sinks import open_sink
    batch = pa.record_batch({"k": [1, 2, 3]})
    sink = open_sink(sys.argv[1], batch.schema)
    sink.write(batch)
    print("writing", flush=True)
    sys.stdin.readline()
    sink.commit()
"""


def writer(target: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(target)],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


def test_what_a_killed_process_left_is_swept_and_a_living_one_goes_on(tmp_path: Path) -> None:
    killed, living = writer(tmp_path / "a.parquet"), writer(tmp_path / "b.parquet")
    killed.kill()
    killed.communicate(timeout=20)
    assert len(list(tmp_path.iterdir())) == 2
    join(TABLE, TABLE, on="k").write(tmp_path / "c.csv")
    assert len(list(tmp_path.glob(".*.part"))) == 1, "that of the living process"
    living.communicate("\n", timeout=20)
    assert living.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.parquet", "c.csv"]
    assert pq.read_table(tmp_path / "b.parquet").num_rows == 3


def test_two_sinks_of_one_process_leave_each_other_alone(tmp_path: Path) -> None:
    first = open_sink(tmp_path / "same.csv", BATCH.schema)
    second = open_sink(tmp_path / "same.csv", BATCH.schema)
    assert sweep(tmp_path) == []
    for sink in (first, second):
        sink.write(BATCH)
        sink.commit()
    assert [path.name for path in tmp_path.iterdir()] == ["same.csv"]


def test_other_hidden_files_stay(tmp_path: Path) -> None:
    names = [".out.csv.123.part", ".earlyjoin-1-thesis.part", ".earlyjoin-12-0123456789.part", "x.part"]
    for name in names:
        (tmp_path / name).write_text("mine")
    assert sweep(tmp_path) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


@pytest.mark.parametrize("format_", ["parquet", "csv", "arrow", "json"])
def test_a_format_for_a_name_that_tells_none(tmp_path: Path, format_: str) -> None:
    path = tmp_path / "out"
    assert join(TABLE, TABLE, on="k").write(path, format=format_) == 3
    read = {
        "parquet": pq.read_table,
        "csv": pyarrow.csv.read_csv,
        "arrow": lambda file: pa.ipc.open_file(str(file)).read_all(),
        "json": pyarrow.json.read_json,
    }[format_]
    assert read(path).sort_by("k")["v"].to_pylist() == ["a", "b", "c"]


def test_a_format_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown output format 'xls': choose one of parquet, csv, arrow, json"):
        join(TABLE, TABLE, on="k").write(tmp_path / "out", format="xls")
    with pytest.raises(InputError, match=r"cannot tell the format of .*; end it with one of: .*, or pass format="):
        join(TABLE, TABLE, on="k").write(tmp_path / "out")


def test_a_target_that_exists_is_told_in_the_words_of_the_face(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("")
    with pytest.raises(InputError, match=r"exists; remove it, or replace it with overwrite=True$") as caught:
        join(TABLE, TABLE, on="k").write(path)
    assert caught.value.command is not None
    assert caught.value.command.endswith("with --overwrite")


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("spelling", ["same", "dots", "symlink", "hard link", "relative"])
def test_an_input_is_not_overwritten(
    tmp_path: Path, spelling: str, overwrite: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "in.parquet"
    (tmp_path / "d").mkdir()
    pq.write_table(TABLE, path)
    before = path.read_bytes()
    target = tmp_path / "link.parquet"
    if spelling == "symlink":
        target.symlink_to(path)
    elif spelling == "hard link":
        target.hardlink_to(path)
    elif spelling == "dots":
        target = tmp_path / "d" / ".." / "in.parquet"
    elif spelling == "relative":
        monkeypatch.chdir(tmp_path)
        target = Path("in.parquet")
    else:
        target = path
    with pytest.raises(InputError, match=r"is the input .*in.parquet', which it would destroy; name another output"):
        join(TABLE, str(path), on="k").write(target, overwrite=overwrite)
    assert path.read_bytes() == before
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize(
    ("given", "target"),
    [("data", "data/new.parquet"), ("data/*.parquet", "data/new.parquet"), ("**/p*.parquet", "other/p9.parquet")],
)
def test_a_new_file_does_not_become_a_part_of_an_input(tmp_path: Path, given: str, target: str) -> None:
    for name in ("data", "other"):
        (tmp_path / name).mkdir()
    pq.write_table(TABLE, tmp_path / "data" / "p0.parquet")
    with pytest.raises(InputError, match=r"would become a part of the input .*; write it to another place"):
        join(str(tmp_path / given), TABLE, on="k").write(tmp_path / target)
    assert not (tmp_path / target).exists()
    assert join(str(tmp_path / given), TABLE, on="k").write(tmp_path / "other" / "fine.parquet") == 3


def test_a_target_that_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="is no regular file"):
        join(TABLE, TABLE, on="k").write(tmp_path / "pipe.csv", overwrite=True)
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(InputError, match="is a directory; name a file in it"):
        join(TABLE, TABLE, on="k").write(tmp_path / "d.csv")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow", "jsonl"])
def test_no_room_on_the_device(tmp_path: Path, suffix: str) -> None:
    """Files of at most 64 KiB, for which the system says "File too large"."""
    table = pa.table({"k": range(200_000)})
    target = tmp_path / f"out.{suffix}"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(SinkError, match=rf"^cannot (write|finish) '.*out.{suffix}': File too large$"):
            join(table, table, on="k").write(target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("spelling", ["same", "symlink", "hard link"])
def test_an_interruption_would_not_overwrite_an_input(tmp_path: Path, spelling: str, overwrite: bool) -> None:
    path = tmp_path / "out.partial.parquet" if spelling == "same" else tmp_path / "in.parquet"
    pq.write_table(TABLE, path)
    if spelling == "symlink":
        (tmp_path / "out.partial.parquet").symlink_to(path)
    elif spelling == "hard link":
        (tmp_path / "out.partial.parquet").hardlink_to(path)
    with pytest.raises(InputError, match=r"out.partial.parquet', where an interruption .* is the input .*name another"):
        join(str(path), TABLE, on="k").write(tmp_path / "out.parquet", overwrite=overwrite)
    assert pq.read_table(path).equals(TABLE)


def test_partial_rows_do_not_become_a_part_of_an_input(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "p.partial.parquet")
    with pytest.raises(InputError, match=r"where an interruption .* would become a part of the input"):
        join(str(tmp_path / "*.partial.parquet"), TABLE, on="k").write(tmp_path / "out.parquet")


@pytest.mark.parametrize("overwrite", [True, False])
def test_partial_rows_replace_a_file_only_with_permission(tmp_path: Path, overwrite: bool) -> None:
    taken = tmp_path / "out.partial.csv"
    taken.write_text("mine")
    (tmp_path / "out.partial-2.csv").mkdir()
    sink = open_sink(tmp_path / "out.csv", BATCH.schema, overwrite=overwrite)
    sink.write(BATCH)
    kept = sink.keep_partial()
    assert kept.name == ("out.partial.csv" if overwrite else "out.partial-3.csv")
    assert pyarrow.csv.read_csv(kept).equals(TABLE)
    assert overwrite or taken.read_text() == "mine"
    assert list(tmp_path.glob(".*")) == []


def test_numbers_that_json_does_not_have_are_null_at_any_depth(tmp_path: Path) -> None:
    table = pa.table(
        {
            "k": [1],
            "list": [[1.0, math.nan]],
            "struct": [{"x": math.inf, "y": [-math.inf]}],
            "map": pa.array([[("a", math.nan)]], pa.map_(pa.string(), pa.float64())),
        }
    )
    path = tmp_path / "out.jsonl"
    join(table, pa.table({"k": [1]}), on="k").write(path)
    found = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert found == {"k": 1, "list": [1.0, None], "struct": {"x": None, "y": [None]}, "map": [["a", None]]}
