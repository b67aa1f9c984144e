"""``earlyjoin join`` with more than two inputs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.commands import run


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.csv"
    path.write_text("person,id,text\n3,8,late\n1,9,early\n")
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, str]]:
    assert run("join", *arguments) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    try:
        code = run("join", *arguments)
    except SystemExit as end:
        code = end.code
    assert code == 2
    return capsys.readouterr().err


def test_equalities(capsys: pytest.CaptureFixture[str], people: Path, items: Path, notes: Path) -> None:
    on = ["--on", "people.id=items.id", "--on", "items.id=notes.person"]
    rows = printed(capsys, people, items, notes, *on)
    assert sorted((row["name"], row["item"], row["text"]) for row in rows) == [
        ("ann", "pen", "early"), ("cy", "cap", "late"), ("cy", "ink", "late"),
    ]  # fmt: skip
    assert list(rows[0]) == ["id_people", "name", "t", "id_items", "item", "at", "person", "id_notes", "text"]
    assert len(printed(capsys, people, items, *on, notes)) == 3, "an input may stand behind the options"


def test_one_column(capsys: pytest.CaptureFixture[str], people: Path, items: Path, tmp_path: Path) -> None:
    (other := tmp_path / "old").mkdir()
    (other / "people.csv").write_text("id,name\n3,cyril\n")
    rows = printed(capsys, people, items, other / "people.csv", "--on", "id")
    assert [(row["id"], row["name_people"], row["name_people_2"]) for row in rows] == [("3", "cy", "cyril")] * 2


def test_json_and_file(capsys: pytest.CaptureFixture[str], people: Path, items: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert run("join", people, items, people, items, "--on", "id", "--json", "-o", out, "--memory", "64KiB") == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["rows"], summary["algorithm"], summary["estimate"]["rows"]) == (5, "pmj", 5)
    assert pq.read_table(out).num_rows == 5


def test_explain(capsys: pytest.CaptureFixture[str], people: Path, items: Path, notes: Path) -> None:
    assert run("join", people, items, notes, "--on", "id", "--reading", "2:1:1", "--explain") == 0
    text = capsys.readouterr().out
    assert "people.id = items.id = notes.id" in text
    assert "reading 2:1:1 (rows of people : items : notes)" in text


def test_format_of_the_others(capsys: pytest.CaptureFixture[str], people: Path, items: Path, notes: Path) -> None:
    renamed = notes.rename(notes.with_suffix(".dat"))
    assert "--format-more" in refused(capsys, people, items, renamed, "--on", "id")
    assert printed(capsys, people, items, renamed, "--on", "id", "--format-more", "csv") == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no join condition: give --on COLUMN, which all 3 inputs have"),
        (["--on", "id=person"], "'id' in ('id', 'person') does not name a column of an input"),
        (["--on", "people.id=items.id"], "leaves out 'notes'"),
        (["--on", "item"], "column 'item' is not in input 'people'"),
        (["--on", "id", "--band", "t:5s"], "--band is for two inputs, got 3"),
        (["--on", "id", "--how", "left"], "inner join only, not a left join"),
        (["--on", "id", "--suffixes", "_a,_b"], "--suffixes is for two inputs"),
        (["--on", "id", "--reading", "1:1"], "reading ratio '1:1' is for 2 inputs, there are 3"),
        (["--on", "id", "--algorithm", "shj"], "choose one of: auto, pmj"),
        (["--on", "id", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_bad_arguments(
    capsys: pytest.CaptureFixture[str], people: Path, items: Path, notes: Path, arguments: list[str], words: str
) -> None:
    assert words in refused(capsys, people, items, notes, *arguments)


def test_algorithms_say_how_many_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("algorithms") == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("pmj ") and "2 to 16" in line for line in lines)
