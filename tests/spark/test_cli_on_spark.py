"""The command line on Spark, in the tests' own session."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.cli import engines
from earlyjoin.cli.live import Wording
from earlyjoin.cli.main import main
from earlyjoin.errors import SourceError
from earlyjoin.query.life import Progress
from earlyjoin.spark.writing import sinks
from earlyjoin.spark.writing.targets import Target
from earlyjoin.state.counters import Phase
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
    assert (
        main(
            [
                "join",
                left_path,
                right_path,
                "--on",
                "k",
                "--engine",
                "spark",
                "-o",
                "-",
                "--output-format",
                "arrow",
                "-q",
            ]
        )
        == 0
    )
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
    assert main([*arguments, "--limit", "1000"]) == 0
    assert "local: 1,000 rows are found before Spark would have started" in capsys.readouterr().out
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


def test_a_line_while_spark_starts(
    spark: Any, inputs: Inputs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("earlyjoin.spark.session.active_session", lambda: None)
    monkeypatch.setattr("earlyjoin.spark.session.start_session", lambda *_, **__: spark)
    arguments = ["join", inputs[1], inputs[3], "--on", "k", "--engine", "spark", "--explain"]
    assert main(arguments) == 0
    assert "earlyjoin: starting Spark ..." in capsys.readouterr().err
    for silent in ("--quiet", "--json"):
        assert main([*arguments, silent]) == 0
        assert "starting" not in capsys.readouterr().err


def test_a_directory_without_an_extension(spark: Any, inputs: Inputs, tmp_path: Path) -> None:
    left, left_path, right, right_path = inputs
    target = str(tmp_path / "out")
    assert main(["join", left_path, right_path, "--on", "K", "--engine", "spark", "-o", target, "-q"]) == 0
    assert multiset(spark.read.parquet(target).toArrow()) == multiset(ej.join(left, right, on="k").to_arrow())


def test_interrupted_while_spark_writes(
    spark: Any, inputs: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(frame: Any, target: Any, jobs: Any) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        raise SourceError("the query was stopped")

    target = tmp_path / "out.parquet"
    target.mkdir()
    (target / "old").write_text("good")
    monkeypatch.setattr(sinks, "write", interrupted)
    arguments = ["join", inputs[1], inputs[3], "--on", "k", "--engine", "spark", "-o", str(target), "--overwrite"]
    assert main(arguments) == 130
    told = capsys.readouterr().err
    assert "nothing of them was kept" in told
    assert "is as it was before" in told
    assert (target / "old").read_text() == "good"


def test_the_line_while_spark_writes(tmp_path: Path) -> None:
    progress = Progress(0, (0, 0), (None, None), Phase.CLEANUP, 12.3, 0.0, finished=False)
    target = Target.of(tmp_path / "out", overwrite=True)
    query: Any = SimpleNamespace(progress=progress, writing=SimpleNamespace(target=target))
    assert Wording(query).now() == "bulk · 12 s"
    hidden = tmp_path / ".out.0123456789ab.new" / "_temporary" / "0"
    hidden.mkdir(parents=True)
    (hidden / "part-0").write_bytes(bytes(143_000))
    assert Wording(query).now() == "bulk · 12 s · 143.0 kB written"
