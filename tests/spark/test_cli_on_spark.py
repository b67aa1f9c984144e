"""The command line on Spark, in the tests' own session."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.cli import engines
from earlyjoin.cli.main import main
from spark.tables import in_files, multiset, numbered

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

Inputs = tuple[pa.Table, str, pa.Table, str]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    directory = tmp_path_factory.mktemp("cli")
    left, right = numbered(900, 400, "a", 1), numbered(800, 500, "b", 2)
    return left, in_files(left, directory / "left", 3), right, in_files(right, directory / "right", 3)


def test_parquet_directory(spark: Any, inputs: Inputs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left, left_path, right, right_path = inputs
    target = str(tmp_path / "out.parquet")
    assert main(["join", left_path, right_path, "--on", "k", "--engine", "spark", "-o", target, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    expected = ej.join(left, right, on="k").to_arrow()
    assert (summary["engine"], summary["rows"]) == ("spark", len(expected))
    assert multiset(spark.read.parquet(target).toArrow()) == multiset(expected)
    assert main(["join", left_path, right_path, "--on", "k", "--engine", "spark", "-o", target]) == 2
    assert "exists" in capsys.readouterr().err


def test_csv_lines_and_a_file(spark: Any, inputs: Inputs, tmp_path: Path, capfdbinary: Any) -> None:
    left, left_path, right, right_path = inputs
    arguments = [
        "join",
        left_path,
        right_path,
        "--on",
        "k",
        "--engine",
        "spark",
        "--how",
        "semi",
        "--left-columns",
        "k",
    ]
    expected = len(ej.join(left, right, on="k", how="semi").to_arrow())
    target = tmp_path / "out.arrow"
    assert main([*arguments, "-o", str(target)]) == 0
    assert len(pa.ipc.open_file(str(target)).read_all()) == expected
    assert main([*arguments, "--limit", "7", "--quiet"]) == 0
    assert capfdbinary.readouterr().out.splitlines()[0] == b'"k"'


def test_arrow_on_standard_output(spark: Any, inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    left, left_path, right, right_path = inputs
    taken = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=taken, isatty=lambda: False, flush=lambda: None))
    assert main(["join", left_path, right_path, "--on", "k", "--engine", "spark", "--stdout", "arrow", "-q"]) == 0
    rows = pa.ipc.open_stream(taken.getvalue()).read_all()
    assert multiset(rows) == multiset(ej.join(left, right, on="k").to_arrow())


def test_which_engine(inputs: Inputs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _, left_path, _, right_path = inputs
    arguments = ["join", left_path, right_path, "--on", "k", "--explain"]
    assert main(arguments) == 0
    assert "joined before Spark would have started" in capsys.readouterr().out
    monkeypatch.setattr(engines, "SMALL_BYTES", 0)
    assert main([*arguments, "--algorithm", "shj"]) == 0
    assert "local: --algorithm is for the local engine" in capsys.readouterr().out
    monkeypatch.setenv("JAVA_HOME", os.devnull)
    assert main(arguments) == 0
    assert "local: Spark needs Java 17 or newer" in capsys.readouterr().out
    assert main([*arguments, "--engine", "spark"]) == 2
    assert "needs Java 17" in capsys.readouterr().err


def test_large_inputs_go_to_spark(
    spark: Any, inputs: Inputs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, left_path, _, right_path = inputs
    monkeypatch.setattr(engines, "SMALL_BYTES", 0)
    assert main(["join", left_path, right_path, "--on", "k", "--explain"]) == 0
    assert "spark: the default for large inputs" in capsys.readouterr().out
