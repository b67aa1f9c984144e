"""Every experiment runs at a small scale, is the same twice, and can be drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from earlyjoin.cli.main import main
from earlyjoin.predicates import equal
from earlyjoin.report.experiments import EXPERIMENTS
from earlyjoin.report.experiments.ehj import setting as ehj
from earlyjoin.report.experiments.rpj import setting as rpj
from earlyjoin.report.experiments.tracing import trace
from earlyjoin.state.budget import MemoryLimit

SLOW = {"pmj-fig10"} | {name for name in EXPERIMENTS if not name.startswith("pmj")}  # many runs, or very little memory


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in EXPERIMENTS])
def test_runs_and_draws(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EARLYJOIN_DATA", raising=False)
    outputs = []
    for number in range(2):
        for kept in (ehj.many_to_many, ehj.one_to_many, rpj.run):
            kept.cache_clear()  # else the second run would be the first one
        picture = tmp_path / f"{number}.png"
        assert main(["experiment", name, "--scale", "0.01", "--json", "--plot", str(picture)]) == 0
        outputs.append(json.loads(capsys.readouterr().out))
        assert picture.read_bytes().startswith(b"\x89PNG")
    assert outputs[0] == outputs[1]
    assert all(curve["y"] for panel in outputs[0]["panels"] for curve in panel["curves"])


def test_the_list_and_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "list"]) == 0
    assert "pmj-fig6" in capsys.readouterr().out
    assert main(["experiment", "fig99"]) == 2
    assert "unknown experiment 'fig99'" in capsys.readouterr().err


def test_a_trace_counts_what_was_read_and_found() -> None:
    table = pa.table({"k": [n % 10 for n in range(100)]})
    run = trace("nested", equal("k"), table, table, memory=MemoryLimit(rows=1000), batch_rows=10)
    assert (run.last.rows_read, run.last.tuple_ios, run.last.results) == (200, 0, 1000)
    assert run.when(1).rows_read == 20
    assert run.results == sorted(run.results)
    spilled = trace("nested", equal("k"), table, table, memory=MemoryLimit(rows=50), batch_rows=10)
    assert spilled.last.results == 1000
    assert spilled.last.tuple_ios > 200
