"""The command as a process: memory that is too small, signals, kill, pipes, start-up."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from cli.commands import command, environment, run, start, wait_until
from earlyjoin import BudgetExceeded, join
from earlyjoin.cli.interruption import Forced, Interruption

Pair = tuple[Path, Path]

SLOW = ("--arrivals-left", "reliable:10ms", "--arrivals-right", "reliable:10ms")


def test_more_than_memory_with_shj(capsys: pytest.CaptureFixture[str], large: Pair, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    options = ("--on", "k", "--engine", "local", "--algorithm", "shj", "--memory", "8MB")
    assert run("join", *large, *options, "-o", out, "--json") == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "shj" in shown.err
    assert "nested" in shown.err
    assert len(shown.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_more_than_memory_stays_inside_it(large: Pair) -> None:
    query = join(*map(str, large), on="k", algorithm="shj", memory="8MB")
    with pytest.raises(BudgetExceeded, match="nested"):
        query.to_arrow()
    assert 4_000_000 < query.summary()["memory"]["peak_bytes"] <= 8_000_000


@pytest.mark.parametrize(
    ("number", "suffix"), [(signal.SIGINT, "parquet"), (signal.SIGTERM, "csv"), (signal.SIGHUP, "arrow")]
)
def test_interrupted_in_the_middle(large: Pair, tmp_path: Path, number: signal.Signals, suffix: str) -> None:
    spill, out = tmp_path / "spill", tmp_path / f"out.{suffix}"
    spill.mkdir()
    options = ("--on", "k", "--algorithm", "nested", "--memory", "20000rows", "--spill-dir", spill, "-o", out)
    process = start("join", *large, *options, *SLOW)
    wait_until(lambda: any(spill.iterdir()))
    time.sleep(0.3)
    process.send_signal(number)
    _, text = process.communicate(timeout=10)
    assert process.returncode == 130
    partial = tmp_path / f"out.partial.{suffix}"
    read = {"parquet": pq.read_table, "csv": pyarrow.csv.read_csv, "arrow": pyarrow.feather.read_table}[suffix]
    rows = read(partial).num_rows
    assert rows > 0
    assert text == f"earlyjoin: interrupted: {rows:,} rows found so far are kept in '{partial}'\n"
    assert list(spill.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [partial.name, "spill"]


def test_interrupted_while_inputs_are_silent(people: Path, items: Path) -> None:
    silence = ("--arrivals-left", "stall:reliable:1ms@2:60s", "--packet-rows", "1")
    process = start("join", people, items, "--on", "id", *silence)
    assert process.stdout is not None
    lines = [process.stdout.readline(), process.stdout.readline()]  # the row comes before the silence ends
    assert lines[1].startswith('1,"ann"')
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    rest, text = process.communicate(timeout=10)
    assert time.monotonic() - asked < 5
    assert (process.returncode, rest, text) == (130, "", "earlyjoin: interrupted: 1 row printed\n")


def test_interrupted_before_the_first_row(people: Path, items: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    process = start("join", people, items, "--on", "id", "--arrivals-left", "reliable:60s", "-o", out)
    wait_until(lambda: list(tmp_path.glob(".*.part")))
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "nothing was" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["items.csv", "people.csv"]


@pytest.fixture
def not_ignored() -> Iterator[None]:
    """Ctrl-C is ignored in what a shell runs in the background, and then these tests would wait for ever."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_second_interruption_aborts(not_ignored: None) -> None:
    class Endless:
        def interrupt(self) -> None:
            pass

    before = signal.getsignal(signal.SIGINT)
    with Interruption(Endless()) as interruption:  # type: ignore[arg-type]
        signal.raise_signal(signal.SIGINT)
        assert interruption.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_query_that_does_not_stop_by_itself_is_left(monkeypatch: pytest.MonkeyPatch, not_ignored: None) -> None:
    class Endless:
        def interrupt(self) -> None:
            pass

    monkeypatch.setattr("earlyjoin.cli.interruption.PATIENCE_S", 0.05)
    with Interruption(Endless()) as interruption:  # type: ignore[arg-type]
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.1)  # here nothing may be forced
        with pytest.raises(Forced), interruption.may_force():
            time.sleep(5)


def test_killed_and_started_again(large: Pair, people: Path, items: Path, tmp_path: Path) -> None:
    """What was spilled and what was written go at the next start, also of one that does not spill."""
    spill, out = tmp_path / "spill", tmp_path / "out"
    spill.mkdir()
    out.mkdir()
    options = ("--on", "k", "--algorithm", "nested", "--memory", "20000rows", "--spill-dir", spill)
    process = start("join", *large, *options, *SLOW, "-o", out / "large.csv")
    wait_until(lambda: list(spill.glob("*/run-*")) and list(out.iterdir()))
    process.kill()
    process.communicate(timeout=10)
    assert list(spill.iterdir())
    assert list(out.iterdir())
    assert run("join", people, items, "--on", "id", "--spill-dir", spill, "-o", out / "small.csv", "-q") == 0
    assert list(spill.iterdir()) == []
    assert [path.name for path in out.iterdir()] == ["small.csv"]


def test_broken_pipe(large: Pair) -> None:
    process = start("join", *large, "--on", "k", "--quiet")
    assert process.stdout is not None
    assert process.stdout.readline() == '"k","note","note_right"\n'
    process.stdout.close()
    assert process.wait(timeout=20) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()


@pytest.mark.parametrize("arguments", [["--help"], ["join", "--help"], ["join", "a", "b", "--bogus"], ["--version"]])
def test_help_and_argument_errors_do_not_load_the_kernels(arguments: list[str]) -> None:
    program = f"import sys; from earlyjoin.cli.main import main; main({arguments}); sys.exit('numba' in sys.modules)"
    finished = subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, timeout=20)
    assert finished.returncode == 0


def test_a_join_does_not_load_what_it_does_not_need(tmp_path: Path) -> None:
    """Loading pandas takes longer than a few rows do."""
    columns = {"k": [1, 2, 3, None] * 100, "text": ["a", None, "c", "d"] * 100, "x": [0.5, None, 1.5, 2.5] * 100}
    for name in ("left.parquet", "right.parquet"):
        pq.write_table(pyarrow.table(columns), tmp_path / name)
    arguments = ["join", str(tmp_path / "left.parquet"), str(tmp_path / "right.parquet"), "--on", "k", "--limit", "9"]
    loaded = "sorted({'pandas', 'pyspark', 'matplotlib', 'duckdb', 'polars', 'pyarrow.dataset'} & set(sys.modules))"
    program = f"import sys; from earlyjoin.cli.main import main; main({arguments}); sys.exit(str({loaded}))"
    finished = subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, timeout=60)
    assert finished.stderr.decode().splitlines()[-1] == "[]"
    assert len(finished.stdout.splitlines()) == 10


def test_output_that_cannot_be_written_on(people: Path, items: Path, tmp_path: Path) -> None:
    """A full disk: /dev/full refuses every write."""
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with open("/dev/full", "w") as full:
        finished = subprocess.run(
            command("join", people, items, "--on", "id"), env=environment(), stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=20,
        )  # fmt: skip
    assert finished.returncode == 1
    assert finished.stderr == "earlyjoin: cannot write to standard output: No space left on device\n"
