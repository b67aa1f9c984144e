"""``earlyjoin bench`` at a tiny scale: it runs, agrees with DuckDB on the number of rows, and prints ratios."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from earlyjoin.cli.main import main
from earlyjoin.report.bench import BENCHMARKS, small_memory


def test_ratios_at_a_tiny_scale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in BENCHMARKS if "memory" in name]:
        monkeypatch.delitem(BENCHMARKS, name)  # many processes, tested below with fewer
    assert main(["bench", "--scale", "0.01", "--rounds", "1", "--data", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "tpch-join" in out
    assert "tpch-join-shuffled" in out
    assert "60,175 rows" in out
    assert "Python calls" in out


def test_small_memory_beside_a_large_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_memory, "ALGORITHMS", ("ehj",))
    command = ["bench", "small-memory-customer", "--scale", "0.05", "--rounds", "1", "--data", str(tmp_path)]
    assert main([*command, "--json"]) == 0
    (outcome,) = json.loads(capsys.readouterr().out)
    whole, small = outcome["values"]
    assert (whole["algorithm"], small["algorithm"]) == ("shj", "ehj")
    (run,) = small["runs"]
    assert run["rows"] == whole["runs"][0]["rows"] == 75_000
    assert 0 < run["peak_bytes"] <= run["budget_bytes"] < whole["runs"][0]["peak_bytes"]


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "tpch-join", "--scale", "0.01", "--rounds", "2", "--data", str(tmp_path), "--json"]) == 0
    (outcome,) = json.loads(capsys.readouterr().out)
    assert len(outcome["timings"]["earlyjoin"]) == len(outcome["timings"]["duckdb"]) == 2
    assert set(outcome["ratios"]["duckdb"]) == {"first", "total"}


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "nonsense"]) == 2
    assert "unknown benchmark 'nonsense'" in capsys.readouterr().err
