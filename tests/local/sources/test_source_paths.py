"""Which files a path means, and what is said when it means none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from earlyjoin.errors import InputError
from earlyjoin.local.sources.paths import find_files, format_of


def touch(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).parent.mkdir(exist_ok=True, parents=True)
        (directory / name).touch()


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.parquet", "parquet"), ("a.pq", "parquet"), ("a.CSV", "csv"), ("a.tsv.gz", "csv"), ("a.csv.zst", "csv"),
        ("a.csv.bz2", "csv"), ("a.jsonl", "json"), ("a.ndjson.gz", "json"), ("a.json", "json"), ("a.arrow", "arrow"),
        ("a.ipc", "arrow"), ("a.feather", "arrow"), ("a.parquet.gz", None), ("a.arrow.zst", None), ("a.txt", None),
        ("a", None), ("a.gz", None),
    ],
)  # fmt: skip
def test_format_by_name(name: str, format: str | None) -> None:
    assert format_of(name) == format


def test_directory_is_sorted_without_hidden_files(tmp_path: Path) -> None:
    touch(
        tmp_path, "b.parquet", "a.parquet", "_SUCCESS", ".a.parquet.crc", "_tmp.parquet", "notes.txt", "sub/c.parquet"
    )
    found = find_files(tmp_path)
    assert found.format == "parquet"
    assert [os.path.basename(file) for file in found.files] == ["a.parquet", "b.parquet"]


def test_glob_and_lists(tmp_path: Path) -> None:
    touch(tmp_path, "x/b.csv", "x/a.csv", "y/c.csv.gz", "y/_d.csv")
    names = [os.path.relpath(file, tmp_path) for file in find_files(str(tmp_path / "**" / "*.csv*")).files]
    assert names == ["x/a.csv", "x/b.csv", "y/c.csv.gz"]
    names = [os.path.relpath(file, tmp_path) for file in find_files([tmp_path / "y", tmp_path / "x/b.csv"]).files]
    assert names == ["y/c.csv.gz", "x/b.csv"]


def test_file_url_and_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "a.csv")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_files(f"file://{tmp_path}/a.csv").files == (f"{tmp_path}/a.csv",)
    assert find_files("~/a.csv").files == (f"{tmp_path}/a.csv",)


def test_mixed_formats(tmp_path: Path) -> None:
    touch(tmp_path, "a.csv", "b.parquet")
    with pytest.raises(InputError, match=r"files of several formats: csv \(.*a.csv\), parquet \(.*b.parquet\)"):
        find_files(tmp_path)
    assert find_files(tmp_path, "csv").files == (str(tmp_path / "a.csv"),)


def test_format_given_for_names_without_suffix(tmp_path: Path) -> None:
    touch(tmp_path, "part-0", "part-1")
    assert len(find_files(tmp_path, "parquet").files) == 2
    assert find_files(tmp_path / "part-1", "csv").format == "csv"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("order.parquet", r"order.parquet: no such file; did you mean .*/orders.parquet\?$"),
        ("zzz", r"zzz: no such file$"),
        ("no/where/a.csv", r"no such file; the directory .*/no/where does not exist either"),
        ("*.csv", r"\*.csv: no file matches this pattern"),
        ("empty", r"empty: no data file in this directory; known are parquet \(.parquet, .parq, .pq\), csv"),
        ("nested", r"nested: no data file in this directory; sub-directories are not entered, a pattern such as"),
        ("notes.txt", r"notes.txt: its name does not tell the format; known are parquet .*Or pass format="),
        ("s3://bucket/a.parquet", r"only local files are read here; for s3:// use engine='spark'"),
    ],
)
def test_messages(tmp_path: Path, path: str, message: str) -> None:
    touch(tmp_path, "orders.parquet", "notes.txt", "nested/x/a.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=message):
        find_files(path if "://" in path else str(tmp_path / path))


def test_more_messages(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown format 'xml': choose one of parquet, csv, arrow, json"):
        find_files(tmp_path, "xml")
    with pytest.raises(InputError, match="an empty list of paths"):
        find_files([])
    touch(tmp_path, "a.csv")
    with pytest.raises(InputError, match="no parquet file in this directory"):
        find_files(tmp_path, "parquet")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="is neither a file nor a directory; a pipe must be an input of its own"):
        find_files(tmp_path / "pipe.csv")
