"""What people see: the live line, the glance at the first rows, the demo."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.commands import on_terminal, run
from earlyjoin import join
from earlyjoin.cli.demo_report import Arrived, at, blocking_rows
from earlyjoin.cli.live import NoLine, PlainLine, Wording, line_for, short


def test_live_line_and_first_rows(large: tuple[Path, Path]) -> None:
    slow = ("--arrivals-left", "reliable:3ms", "--arrivals-right", "reliable:3ms")
    code, text = on_terminal("join", *large, "--on", "k", "--memory", "400MB", *slow)
    assert code == 0
    counts = {int(found.replace(",", "")) for found in re.findall(r"([\d,]+) rows · ", text)}
    assert len(counts) > 5  # it moves
    assert max(counts) > 1000
    assert re.search(r"\d/s · arriving · left \d+% · right \d+% · memory [█░]{10} +\d+%", text)
    assert "note_right" in text
    assert re.search(r"rows, the first 20 shown \(all of them: -o FILE\)", text)
    assert text.count("note_right") == 1


def test_few_rows_on_a_terminal(people: Path, items: Path) -> None:
    code, text = on_terminal("join", people, items, "--on", "id")
    assert code == 0
    assert "┃" in text
    assert "3 rows in" in text
    code, text = on_terminal("join", people, items, "--on", "id", "--limit", "1", "--quiet")
    assert code == 0
    assert text.splitlines() == ['"id","name","t","item","at"', '1,"ann",2024-01-01 00:00:00,"pen",2024-01-01 00:00:03']


def test_without_rich(
    people: Path, items: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rich", None)
    query = join(str(people), str(items), on="id")
    assert isinstance(line_for(query, quiet=True), NoLine)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert isinstance(line_for(query, quiet=False), PlainLine)
    with PlainLine(Wording(query), every_s=0.01) as line:
        query.to_arrow()
        __import__("time").sleep(0.1)
        with line.hidden():
            pass
    assert "3 rows · " in capsys.readouterr().err
    assert run("join", people, items, "--on", "id") == 0
    assert "pen" in capsys.readouterr().out


def test_short_numbers() -> None:
    assert [short(n) for n in (0, 999, 1000, 12_345, 173_600, 4_500_000, 2e9)] == [
        "0", "999", "1.0k", "12.3k", "174k", "4.5M", "2.0G",
    ]  # fmt: skip


def test_demo_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("demo", "--seconds", "2", "--seed", "1") == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "\x1b" not in shown.out
    for words in ("arrive in bursts", "0.5 s", "first row after", "first 1,000 rows after", "left input ended after"):
        assert words in shown.out
    assert "it shows nothing before 1.4" in shown.out
    last = re.findall(r"^ *[\d.]+ s .*$", shown.out, flags=re.MULTILINE)[-1].split()
    assert last[2:4] == ["30,000", "100,000"]
    assert last[4] == last[5] == re.findall(r"([\d,]+) rows in all", shown.out)[0]


def test_demo_on_a_terminal() -> None:
    code, text = on_terminal("demo", "--seconds", "1")
    assert code == 0
    assert re.search(r"right  █+░+ +\d+%", text)
    assert re.search(r"joined  [\d,]+ rows", text)
    assert "rows over time" in text


def test_quiet_demo_tells_only_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("demo", "--seconds", "0.3", "--quiet") == 0
    assert capsys.readouterr().out.lstrip().startswith("after")


def test_what_a_blocking_join_would_have_shown() -> None:
    import numpy as np

    build, probe = Arrived(), Arrived()
    build.add(1.0, np.array([1, 1, 2]))
    probe.add(0.5, np.array([1, 7]))
    probe.add(3.0, np.array([2]))
    assert blocking_rows(build, probe) == [(0.0, 0)]  # the build input has not ended
    build.ended_s = 2.0
    series = blocking_rows(build, probe)
    assert [at(series, moment) for moment in (0.0, 1.9, 2.0, 3.0)] == [0, 0, 2, 3]
