"""``earlyjoin join`` that works: conditions, options, outputs, the summary."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest

from cli.commands import run


def rows(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, str]]:
    """What a join prints as CSV."""
    assert run("join", *arguments) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def test_on(capsys: pytest.CaptureFixture[str], people: Path, items: Path) -> None:
    found = rows(capsys, people, items, "--on", "id")
    assert sorted(row["item"] for row in found) == ["cap", "ink", "pen"]
    assert list(found[0]) == ["id", "name", "t", "item", "at"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (["--on", "id=id"], [("ann", "pen"), ("cy", "cap"), ("cy", "ink")]),
        (["--on", "id", "--where", "t<=at"], [("ann", "pen"), ("cy", "cap"), ("cy", "ink")]),
        (["--band", "t=at:5s"], [("ann", "pen"), ("cy", "cap")]),
        (["--on", "id", "--band", "t=at:2 s"], [("cy", "cap")]),
        (["--band", "id:0"], [("ann", "pen"), ("cy", "cap"), ("cy", "ink")]),
        (["--where", "id<id"], [("ann", "cap"), ("ann", "ink"), ("bob", "cap"), ("bob", "ink")]),
        (["--where", "id<id", "--where", "t>=at"], []),
        (["--overlap", "id,id"], [("ann", "pen"), ("cy", "cap"), ("cy", "ink")]),
        (["--intersect", "id,id,id,id=id,id,id,id"], [("ann", "pen"), ("cy", "cap"), ("cy", "ink")]),
        (["--near", "id,id=id,id:0.5"], [("ann", "pen"), ("cy", "cap"), ("cy", "ink")]),
        (["--on", "id", "--where", "left.id<3"], [("ann", "pen")]),
        (["--on", "id", "--where", "item<>'ink'"], [("ann", "pen"), ("cy", "cap")]),
        (["--on", "id", "--where", "at>='2024-01-01 00:00:22'"], [("cy", "cap"), ("cy", "ink")]),
        (["--where", "right.id=left.id and item='pen' or name='bob' and item='cap'"], [("ann", "pen"), ("bob", "cap")]),
        (["--how", "cross", "--limit", "9"], [(n, i) for n in ("ann", "bob", "cy") for i in ("cap", "ink", "pen")]),
        (["--near", "id:1", "--where", "id<>id"], [("bob", "cap"), ("bob", "ink"), ("bob", "pen")]),
    ],
)
def test_conditions(
    capsys: pytest.CaptureFixture[str],
    people: Path,
    items: Path,
    condition: list[str],
    expected: list[tuple[str, str]],
) -> None:
    found = rows(capsys, people, items, *condition)
    assert sorted((row["name"], row["item"]) for row in found) == expected


def test_quoted_names_and_lists(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    left, right = tmp_path / "l.parquet", tmp_path / "r.parquet"
    pq.write_table(pa.table({"a,b": [1, 2], "x=y": [1, 1], "c:d": [10, 20]}), left)
    pq.write_table(pa.table({"k": [1, 2], "x=y": [1, 2], "c:d": [11, 29]}), right)
    assert len(rows(capsys, left, right, "--on", '"a,b"=k,`x=y`')) == 1
    assert len(rows(capsys, left, right, "--band", "`c:d`:5")) == 1


@pytest.mark.parametrize(
    ("how", "count"), [("inner", 3), ("left", 4), ("right", 3), ("full", 4), ("semi", 2), ("anti", 1)]
)
def test_join_types(capsys: pytest.CaptureFixture[str], people: Path, items: Path, how: str, count: int) -> None:
    assert len(rows(capsys, people, items, "--on", "id", "--how", how)) == count


@pytest.mark.parametrize(
    ("how", "count"), [("outer", 4), ("full_outer", 4), ("left_outer", 4), ("LEFTSEMI", 2), ("left-anti", 1)]
)
def test_other_spellings(capsys: pytest.CaptureFixture[str], people: Path, items: Path, how: str, count: int) -> None:
    assert len(rows(capsys, people, items, "--on", "id", "--how", how)) == count


def test_a_condition_on_the_kept_side_filters_matches(
    capsys: pytest.CaptureFixture[str], people: Path, items: Path
) -> None:
    found = rows(capsys, people, items, "--on", "id", "--how", "left", "--where", "left.id<3")
    assert sorted((row["name"], row["item"]) for row in found) == [("ann", "pen"), ("bob", ""), ("cy", "")]


def test_null_safe(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("l", "r"):
        pq.write_table(pa.table({"k": [1, None], name: [1, 2]}), tmp_path / f"{name}.parquet")
    arguments = (tmp_path / "l.parquet", tmp_path / "r.parquet", "--on", "k")
    assert len(rows(capsys, *arguments)) == 1
    assert len(rows(capsys, *arguments, "--null-safe")) == 2


def test_formats_delimiters_columns_and_suffixes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "semicolons").write_text("k;v;w\n1;a;x\n2;b;y\n")
    pq.write_table(pa.table({"k": [1, 2], "v": ["c", "d"]}), tmp_path / "r.parquet")
    found = rows(
        capsys, tmp_path / "semicolons", tmp_path / "r.parquet", "--on", "k", "--format-left", "csv", "--delimiter=;",
        "--left-columns", "k,v", "--suffixes", "_l,_r", "--reading", "2:1", "--driving", "push", "--wait", "1ms",
        "--batch-rows", "1", "--seed", "3",
    )  # fmt: skip
    assert sorted(tuple(row.items()) for row in found) == [
        (("k", "1"), ("v_l", "a"), ("v_r", "c")),
        (("k", "2"), ("v_l", "b"), ("v_r", "d")),
    ]


def test_limit(capsys: pytest.CaptureFixture[str], people: Path, items: Path, tmp_path: Path) -> None:
    assert len(rows(capsys, people, items, "--on", "id", "--limit", "2")) == 2
    assert rows(capsys, people, items, "--on", "id", "--limit", "0") == []
    assert len(rows(capsys, people, items, "--on", "id", "--limit", "100")) == 3
    out = tmp_path / "out.parquet"
    assert run("join", people, items, "--on", "id", "--limit", "1", "-o", out, "--json") == 0
    assert pq.read_table(out).num_rows == json.loads(capsys.readouterr().out)["rows"] == 1


def read_back(path: Path) -> Any:
    if path.suffix == ".parquet":
        return pq.read_table(path)
    if path.suffix == ".csv":
        return pyarrow.csv.read_csv(path)
    if path.suffix == ".jsonl":
        return pyarrow.json.read_json(path)
    return pa.ipc.open_file(str(path)).read_all()


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow", ".jsonl"])
def test_outputs_can_be_read_and_joined_again(
    capsys: pytest.CaptureFixture[str], people: Path, items: Path, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"out{suffix}"
    assert run("join", people, items, "--on", "id", "--left-columns", "id,name", "-o", out) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"3 rows written to '{out}'" in shown.err
    table = read_back(out).select(["id", "name", "item"]).sort_by("item")
    assert table.to_pydict() == {"id": [3, 3, 1], "name": ["cy", "cy", "ann"], "item": ["cap", "ink", "pen"]}
    assert len(rows(capsys, out, people, "--on", "id,name")) == 3
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_string_views_as_csv(capsys: pytest.CaptureFixture[str], items: Path, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([1]), "view": pa.array(["a string that is not short"], pa.string_view())})
    with pa.ipc.new_file(str(tmp_path / "views.arrow"), table.schema) as writer:
        writer.write_table(table)
    arguments = (tmp_path / "views.arrow", items, "--on", "id")
    assert rows(capsys, *arguments)[0]["view"] == "a string that is not short"
    assert run("join", *arguments, "-o", tmp_path / "out.csv") == 0
    assert "not short" in (tmp_path / "out.csv").read_text()


def test_json_summary(capsys: pytest.CaptureFixture[str], people: Path, items: Path) -> None:
    assert run("join", people, items, "--on", "id", "--json", "--memory", "64MB") == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    summary = json.loads(shown.out)  # one object and nothing else
    assert list(summary) == ["rows", "algorithm", "engine", "seconds", "phases", "memory", "spill", "estimate"]
    assert (summary["rows"], summary["algorithm"], summary["engine"]) == (3, "shj", "local")
    assert list(summary["seconds"]) == ["first", "first_1000", "total"]
    assert 0 < summary["seconds"]["first"] <= summary["seconds"]["total"]
    assert summary["seconds"]["first_1000"] is None
    assert summary["phases"] == {"arriving": 3, "reactive": 0, "cleanup": 0}
    assert summary["memory"]["budget_bytes"] == 64_000_000
    assert 0 < summary["memory"]["peak_bytes"] <= 64_000_000
    assert list(summary["spill"]) == [
        "bytes_written", "bytes_read", "pages_written", "pages_read", "tuples_written", "tuples_read",
    ]  # fmt: skip
    assert summary["estimate"] == {"rows": 3, "low": 3, "high": 3, "confidence": 1.0}


def test_quiet(capsys: pytest.CaptureFixture[str], people: Path, items: Path) -> None:
    assert run("join", people, items, "--on", "id", "--quiet") == 0
    assert capsys.readouterr().err == ""


def test_explain_reads_nothing(capsys: pytest.CaptureFixture[str], people: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.csv").write_text("id,item\n" + "1,pen\n" * 300_000 + "2\n")
    assert run("join", people, tmp_path / "broken.csv", "--on", "id", "--explain", "-o", tmp_path / "out.csv") == 0
    text = capsys.readouterr().out
    assert "shj (symmetric hash join)" in text
    assert "left.id = right.id" in text
    assert not (tmp_path / "out.csv").exists()


def test_memory_in_rows(capsys: pytest.CaptureFixture[str], people: Path, items: Path) -> None:
    assert run("join", people, items, "--on", "id", "--memory", "100rows") == 0
    assert "of 100 rows" in capsys.readouterr().err


def test_arrivals(capsys: pytest.CaptureFixture[str], people: Path, items: Path) -> None:
    slow = ["--arrivals-left", "reliable:10ms", "--arrivals-right", "bursty:1ms:2:20ms", "--packet-rows", "1"]
    assert len(rows(capsys, people, items, "--on", "id", *slow)) == 3
    assert run("join", people, items, "--on", "id", *slow, "--explain") == 0
    assert "push, as inputs arrive" in capsys.readouterr().out


def test_algorithms(capsys: pytest.CaptureFixture[str]) -> None:
    from earlyjoin import algorithm_names

    assert run("algorithms") == 0
    text = capsys.readouterr().out
    assert all(f"\n{name} " in text for name in algorithm_names())
    assert "symmetric hash join" in text
    assert "equality" in text


@pytest.mark.parametrize("command", [[], ["join"], ["demo"], ["algorithms"]])
def test_help(capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    assert run(*command, "--help") == 0
    text = capsys.readouterr().out
    assert "usage: earlyjoin" in text
    assert max(map(len, text.splitlines())) <= 100


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    from earlyjoin import __version__

    assert run("--version") == 0
    assert capsys.readouterr().out == f"earlyjoin {__version__}\n"


def test_aggregates_in_the_summary(capsys: pytest.CaptureFixture[str], people: Path, items: Path) -> None:
    asked = ["--aggregate", "sum(id)", "--aggregate", "twice=sum(2 * (id + 1))", "--aggregate", "count(item)"]
    assert run("join", people, items, "--on", "id", "--json", "--estimator", "paper", *asked) == 0
    summary = json.loads(capsys.readouterr().out)
    assert {name: one["value"] for name, one in summary["estimates"].items()} == {
        "sum(id)": 7,
        "twice": 20,
        "count(item)": 3,
    }
    assert run("join", people, items, "--on", "id", *asked[:2]) == 0
    assert "sum(id): 7" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("total(id)", "write sum(COLUMN)"),
        ("sum()", "sum of what"),
        ("sum(id and 1)", "neither a column nor"),
        ("sum(idd)", "did you mean 'id'"),
        ('sum("no such")', "does not exist"),
        ("avg(name)", "needs numbers"),
    ],
)
def test_aggregates_that_cannot_be(
    capsys: pytest.CaptureFixture[str], people: Path, items: Path, text: str, says: str
) -> None:
    assert run("join", people, items, "--on", "id", "--aggregate", text) == 2
    assert says in capsys.readouterr().err


def test_options_of_the_algorithm(capsys: pytest.CaptureFixture[str], people: Path, items: Path) -> None:
    pmj = ("--on", "id", "--algorithm", "pmj", "--option")
    assert len(rows(capsys, people, items, *pmj, "fan-in=2")) == 3
    assert run("join", people, items, *pmj, "fan-in=2", "--explain") == 0
    assert "fan-in=2" in capsys.readouterr().out
    assert run("join", people, items, *pmj, "fan-in=1") == 2
    assert "option fan-in must be a whole number between 2 and 1000, got '1'" in capsys.readouterr().err
    assert run("algorithms") == 0
    assert "most runs of a side that one merge takes" in capsys.readouterr().out
