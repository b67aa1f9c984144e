"""Standard input, process substitution and standard output."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.commands import command, environment, run

OTHER = "id,x\n1,a\n3,b\n"


def shell(line: str, directory: Path, **more: object) -> subprocess.CompletedProcess[bytes]:
    """A line of bash in which ``ej`` is the command."""
    own = " ".join(f"'{word}'" for word in command())
    return subprocess.run(
        ["bash", "-c", f'ej() {{ {own} "$@"; }}; {line}'],
        cwd=directory, env=environment(), capture_output=True, timeout=120, **more,  # type: ignore[call-overload]
    )  # fmt: skip


@pytest.fixture
def here(people: Path, items: Path, tmp_path: Path) -> Path:
    (tmp_path / "other.csv").write_text(OTHER)
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "cat other.csv | ej join - items.csv --on id -q",
        "cat other.csv | ej join /dev/stdin items.csv --on id -q",
        "ej join - items.csv --on id -q < other.csv",
        "gzip -c other.csv | ej join - items.csv --on id -q",
        "ej join <(cat other.csv) <(cat items.csv) --on id -q",
        "ej join other.csv items.csv --on id -q -o - --output-format arrow | ej join - other.csv --on id,x -q",
    ],
)
def test_rows_through_pipes(here: Path, line: str) -> None:
    done = shell(line, here)
    assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(row.split(b",")[2] for row in done.stdout.splitlines()[1:]) == [b'"cap"', b'"ink"', b'"pen"']


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cat other.csv | ej join - - --on id", "standard input: is read as another input already"),
        ("ej join - items.csv --on id <&-", "standard input: is closed"),
        ("ej join - items.csv --on id </dev/null", "standard input: is empty"),
        ("cat p.parquet | ej join - items.csv --on id", "Parquet is read from its end, which a pipe cannot do"),
        ("cat other.csv | ej join - items.csv --on id --engine spark", "standard input and pipes are for the local"),
        ("ej join other.csv items.csv --on id -o - --json", "--json and rows on standard output exclude each other"),
        ("ej join - items.csv --on id -o other.csv --overwrite < other.csv", "which it would destroy"),
        ("cat other.csv | ej join - items.csv --on id --format-left arrow", "is not valid Arrow IPC"),
    ],
)
def test_what_is_refused(here: Path, line: str, words: str) -> None:
    pq.write_table(pa.table({"id": [1]}), here / "p.parquet")
    done = shell(line, here)
    assert done.returncode == 2
    assert words in done.stderr.decode()
    assert done.stdout == b""


def test_a_parquet_file_behind_standard_input_is_read_as_a_file(here: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), here / "p.parquet")
    done = shell("ej join - items.csv --on id -q < p.parquet", here)
    assert done.stdout.splitlines()[1:] == [b'1,"pen",2024-01-01 00:00:03']


def test_a_part_of_a_file_behind_standard_input(here: Path) -> None:
    """What somebody read before is not read again."""
    done = shell("(head -c 5 > /dev/null; ej join - items.csv --left-columns 1 --on 1=id -q) < other.csv", here)
    assert [row[:2] for row in done.stdout.splitlines()[1:]] == [b"3,", b"3,"]


def test_formats_on_standard_output(people: Path, items: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    join = ("join", people, items, "--on", "id", "-q", "-o", "-")
    found = {}
    for format_ in ("csv", "json", "arrow", "parquet"):
        assert run(*join, "--output-format", format_) == 0
        found[format_] = capfdbinary.readouterr().out
    assert found["csv"].startswith(b'"id","name"')
    assert len(found["csv"].splitlines()) == 4
    assert len(found["json"].splitlines()) == 3
    arrow = pa.ipc.open_stream(found["arrow"]).read_all()
    assert pq.read_table(io.BytesIO(found["parquet"])).to_pylist() == arrow.to_pylist()
    assert arrow.num_rows == 3
    assert run(*join) == 0
    assert capfdbinary.readouterr().out == found["csv"]


def test_messages_of_rows_on_standard_output_go_to_standard_error(here: Path) -> None:
    done = shell("ej join other.csv items.csv --on id -o -", here)
    assert len(done.stdout.splitlines()) == 4
    assert done.stderr.startswith(b"3 rows found in ")


def test_delimiters_of_both_sides(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "tabs.txt").write_text("id\tx\n1\ta\n")
    (here / "bars.csv").write_text("id|y\n1|b\n")
    files = (here / "tabs.txt", here / "bars.csv", "--format-left", "csv")
    delimiters = ("--delimiter-left", "tab", "--delimiter-right", "|")
    assert run("join", *files, *delimiters, "--on", "id", "-q") == 0
    assert capsys.readouterr().out.splitlines()[1] == '1,"a","b"'
    assert run("join", *files, "--delimiter", "|", "--delimiter-left", "tab", "--on", "id", "-q") == 0
    assert capsys.readouterr().out.splitlines()[1] == '1,"a","b"'
    pq.write_table(pa.table({"id": [1]}), here / "p.parquet")
    assert run("join", here / "p.parquet", here / "bars.csv", "--delimiter-left", "|", "--on", "id") == 2
    assert "--delimiter-left is for CSV; this input is parquet" in capsys.readouterr().err


def test_a_partitioned_directory(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 3):
        (here / "d" / f"id={number}").mkdir(parents=True)
        pq.write_table(pa.table({"v": [number * 10]}), here / "d" / f"id={number}" / "p.parquet")
    assert run("join", here / "d", here / "items.csv", "--on", "id", "-q", "--left-columns", "id,v") == 0
    rows = [row.split(",")[:2] for row in capsys.readouterr().out.splitlines()[1:]]
    assert sorted(rows) == [["1", "10"], ["3", "30"], ["3", "30"]]
