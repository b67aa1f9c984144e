"""``earlyjoin bench`` at a tiny scale: it runs, agrees with DuckDB on the number of rows, and prints ratios."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from earlyjoin.cli.main import main


def test_ratios_at_a_tiny_scale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--scale", "0.01", "--rounds", "1", "--data", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "tpch-join" in out
    assert "tpch-join-shuffled" in out
    assert "60,175 rows" in out
    assert "Python calls" in out


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "tpch-join", "--scale", "0.01", "--rounds", "2", "--data", str(tmp_path), "--json"]) == 0
    (outcome,) = json.loads(capsys.readouterr().out)
    assert len(outcome["timings"]["earlyjoin"]) == len(outcome["timings"]["duckdb"]) == 2
    assert set(outcome["ratios"]["duckdb"]) == {"first", "total"}


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "nonsense"]) == 2
    assert "unknown benchmark 'nonsense'" in capsys.readouterr().err
