"""Bad input: exit code 2, and one line that names what is wrong."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.commands import run
from earlyjoin.cli import main as cli_main
from earlyjoin.errors import SourceError
from earlyjoin.local.sources.text import csv as csv_source
from earlyjoin.local.sources.text import jsonl as jsonl_source


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run("join", *arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("earlyjoin: ")
    assert "Traceback" not in shown.err
    assert len(shown.err.splitlines()) <= 2
    return shown.err


def test_missing_file(capsys: pytest.CaptureFixture[str], items: Path, tmp_path: Path) -> None:
    assert "nowhere.csv" in refused(capsys, tmp_path / "nowhere.csv", items, "--on", "id")


def test_missing_column(capsys: pytest.CaptureFixture[str], people: Path, items: Path) -> None:
    text = refused(capsys, people, items, "--on", "nme")
    assert "'nme' is not in the left input" in text
    assert "did you mean 'name'?" in text
    assert "'prize' is not in the right input" in refused(capsys, people, items, "--on", "id=prize")


def test_ambiguous_column(capsys: pytest.CaptureFixture[str], items: Path, tmp_path: Path) -> None:
    twice = pa.table([[1], [2]], names=["id", "id"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    (tmp_path / "twice.csv").write_text("id,id\n1,2\n")
    for name in ("twice.parquet", "twice.csv"):
        text = refused(capsys, tmp_path / name, items, "--on", "id")
        assert "'id'" in text
        assert "ambiguous" in text or "twice" in text


def test_unsupported_types(capsys: pytest.CaptureFixture[str], people: Path, items: Path) -> None:
    text = refused(capsys, people, items, "--on", "id=item")
    assert "'id'" in text
    assert "(int64)" in text
    assert "'item'" in text
    assert "(string)" in text


def test_unreadable_parquet(capsys: pytest.CaptureFixture[str], items: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_text("this is no Parquet file")
    assert "bad.parquet: is not a valid Parquet file" in refused(capsys, tmp_path / "bad.parquet", items, "--on", "id")


def test_broken_csv_row(capsys: pytest.CaptureFixture[str], people: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.csv").write_text("id,item\n1,pen\n2\n3,ink\n")
    out = tmp_path / "out.parquet"
    text = refused(capsys, people, tmp_path / "broken.csv", "--on", "id", "-o", out)
    assert "broken.csv: line 3" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.csv", "people.csv"]


def test_advice_for_python_is_not_given(
    capsys: pytest.CaptureFixture[str], items: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 64)
    (tmp_path / "odd.csv").write_text("id,age\n" + "1,2\n" * 50 + "2,old\n")
    text = refused(capsys, tmp_path / "odd.csv", items, "--on", "id", "--json")
    assert "column 'age': 'old' is not a valid int64; the type was inferred from the first rows" in text
    assert "types=" not in text
    (tmp_path / "odd.jsonl").write_text('{"id": 1, "age": 2}\n' * 50 + '{"id": 1, "age": "old"}\n')
    monkeypatch.setattr(jsonl_source, "BLOCK_BYTES", 64)
    text = refused(capsys, tmp_path / "odd.jsonl", items, "--on", "id", "--json")
    assert "is not a valid int64" in text
    assert "types=" not in text


def test_unknown_algorithm(capsys: pytest.CaptureFixture[str], people: Path, items: Path) -> None:
    text = refused(capsys, people, items, "--on", "id", "--algorithm", "hashy")
    assert "unknown algorithm 'hashy'" in text
    assert "nested" in text
    assert "shj" in text


def test_algorithm_that_cannot(capsys: pytest.CaptureFixture[str], people: Path, items: Path) -> None:
    text = refused(capsys, people, items, "--band", "id:1", "--algorithm", "shj")
    assert "shj" in text
    assert "choose one of: auto, nested" in text


@pytest.mark.parametrize("size", ["lots", "-5MB", "64XB", "1KB", "3rows"])
def test_nonsense_memory(capsys: pytest.CaptureFixture[str], people: Path, items: Path, size: str) -> None:
    assert "memory" in refused(capsys, people, items, "--on", "id", f"--memory={size}")


def test_output_exists(capsys: pytest.CaptureFixture[str], people: Path, items: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("precious")
    assert "--overwrite" in refused(capsys, people, items, "--on", "id", "-o", out)
    assert out.read_text() == "precious"
    assert run("join", people, items, "--on", "id", "-o", out, "--overwrite") == 0
    assert "pen" in out.read_text()


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("nowhere/out.csv", "directory"),
        ("out.xyz", "cannot tell the format"),
        (".", "is a directory"),
    ],
)
def test_output_that_cannot_be(
    capsys: pytest.CaptureFixture[str], people: Path, items: Path, tmp_path: Path, output: str, words: str
) -> None:
    assert words in refused(capsys, people, items, "--on", "id", "-o", tmp_path / output)


def test_csv_cannot_hold_lists(capsys: pytest.CaptureFixture[str], items: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "list": [[1, 2]]}), tmp_path / "lists.parquet")
    before = sorted(tmp_path.iterdir())
    refused(capsys, tmp_path / "lists.parquet", items, "--on", "id")
    refused(capsys, tmp_path / "lists.parquet", items, "--on", "id", "-o", tmp_path / "out.csv")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no join condition"),
        (["--on", "id", "--bogus"], "unknown argument: --bogus"),
        (["--on", "id", "--engine", "spark", "--algorithm", "shj"], "--algorithm is for the local engine"),
        (["--on", "id", "--engine", "local", "--master", "local[2]"], "--master local[2] is for Spark"),
        (["--on", "id", "third.csv"], "third.csv"),
        (["--on", "id", "--limit", "-1"], "--limit"),
        (["--on", "id", "--limit", "ten"], "--limit"),
        (["--on", "id", "--wait", "5"], "--wait: '5' is not a length of time"),
        (["--on", "id", "--how", "sideways"], "--how"),
        (["--on", "id", "--how", "cross"], "--how cross joins every row with every row and has no condition"),
        (["--on", "id", "--how", "right_semi"], "and --how semi"),
        (["--on", "name,item"], "write --on name=item"),
        (["--on", "name"], "write --on name=…"),
        (["--where", "id<5"], "write left.id or right.id"),
        (["--where", "name<5"], "write it in single quotes: name < '5'"),
        (["--on", "id", "--reading", "fast"], "reading ratio 'fast'"),
        (["--on", "id", "--suffixes", "_a"], "--suffixes"),
        (["--on", "id", "--arrivals-left", "sometimes"], "arrivals 'sometimes'"),
        (["--on", "id", "--spill-dir", "/nowhere"], "/nowhere"),
        (["--on", "id", "--left-columns", "id,nme"], "nme"),
        (["--on", "a=b=c"], "--on a=b=c"),
        (["--on", "id,"], "column name is missing"),
        (["--on", '"id'], "quote"),
        (["--band", "id"], "--band id: the distance is missing"),
        (["--band", "id:1 parsec"], "parsec"),
        (["--overlap", "id"], "overlaps takes 2 columns"),
        (["--where", "id"], "not a comparison"),
    ],
)
def test_bad_arguments(
    capsys: pytest.CaptureFixture[str], people: Path, items: Path, arguments: list[str], words: str
) -> None:
    assert words in refused(capsys, people, items, *arguments)


def test_delimiter_needs_csv(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    text = refused(capsys, tmp_path / "a.parquet", tmp_path / "a.parquet", "--on", "id", "--delimiter", ";")
    assert "these are parquet and parquet" in text


def test_unknown_format_names_the_option(capsys: pytest.CaptureFixture[str], items: Path, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("id\n1\n")
    assert "--format-left" in refused(capsys, tmp_path / "data", items, "--on", "id")


def test_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 2
    assert "join, demo, experiment, bench, archive or algorithms" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SourceError("the disk is gone"), "the disk is gone"),
        (RuntimeError("oops"), "internal error: RuntimeError: oops"),
    ],
)
def test_failures_are_one_line_and_exit_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def fail(options: object) -> int:
        raise error

    monkeypatch.setattr(cli_main, "_run", fail)
    assert run("algorithms") == 1
    assert capsys.readouterr().err == f"earlyjoin: {words}\n"
    monkeypatch.setenv("EARLYJOIN_DEBUG", "1")
    assert run("algorithms") == 1
    assert "Traceback" in capsys.readouterr().err
