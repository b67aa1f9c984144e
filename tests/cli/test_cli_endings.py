"""How a command ends: full devices, closed terminals and pipes, numbers that are too large, outputs that are inputs."""

from __future__ import annotations

import gzip
import os
import pty
import resource
import signal
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.commands import command, environment, run, start, wait_until, with_signals

FULL = Path("/dev/full")
SILENT = ("--arrivals-left", "stall:reliable:1ms@2:60s", "--packet-rows", "1")


def finished(*arguments: object, **more: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(*arguments),
        env=environment(),
        stderr=subprocess.PIPE,
        timeout=60,
        **{"stdout": subprocess.PIPE, "stdin": subprocess.DEVNULL} | more,  # type: ignore[call-overload]
    )


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run("join", *arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err


@pytest.mark.parametrize("number", ["99999999999999999999", "9" * 5000])
@pytest.mark.parametrize("option", ["--limit", "--batch-rows"])
def test_numbers_that_are_too_large(
    people: Path, items: Path, capsys: pytest.CaptureFixture[str], option: str, number: str
) -> None:
    text = refused(capsys, people, items, "--on", "id", option, number)
    assert text.startswith(f"earlyjoin: argument {option}: '99999999999999999999")
    assert "is too large: at most 9223372036854775807" in text


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--json"],
        ["--explain"],
        ["-o", "-"],
        ["-o", "-", "--output-format", "arrow"],
        ["-o", "-", "--output-format", "json"],
        ["-o", "-", "--output-format", "parquet"],
    ],
    ids=" ".join,
)
def test_standard_output_is_full(people: Path, items: Path, arguments: list[str]) -> None:
    with FULL.open("w") as full:
        done = finished("join", people, items, "--on", "id", *arguments, stdout=full)
    assert done.returncode == 1
    assert done.stderr == b"earlyjoin: cannot write to standard output: No space left on device\n"


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_list_on_a_full_standard_output() -> None:
    with FULL.open("w") as full:
        done = finished("algorithms", stdout=full)
    assert (done.returncode, done.stderr) == (
        1,
        b"earlyjoin: cannot write to standard output: No space left on device\n",
    )


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_messages_that_cannot_be_written_are_no_failure(people: Path, items: Path) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            command("join", people, items, "--on", "id"), env=environment(), stdout=subprocess.PIPE, stderr=full,
            timeout=60,
        )  # fmt: skip
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 4


def test_a_closed_standard_output(people: Path, items: Path) -> None:
    done = finished("join", people, items, "--on", "id", stdout=None, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (1, b"earlyjoin: cannot write to standard output: it is closed\n")


@pytest.mark.parametrize("format_", ["csv", "arrow", "json", "parquet"])
def test_nobody_reads_on(large: tuple[Path, Path], format_: str) -> None:
    process = subprocess.Popen(
        command("join", *large, "--on", "k", "-q", "-o", "-", "--output-format", format_),
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(100)
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_no_room_for_the_spill_files(large: tuple[Path, Path], tmp_path: Path) -> None:
    """Files of at most 1 MB, for which the system says "File too large"."""
    options = ("--on", "k", "--memory", "8MB", "--algorithm", "nested", "--engine", "local", "--spill-dir", tmp_path)
    done = finished(
        "join", *large, *options, "--json",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )  # fmt: skip
    assert done.returncode == 1
    assert b"cannot write spill file" in done.stderr
    assert b"File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_that_is_closed(people: Path, items: Path, tmp_path: Path) -> None:
    """The kernel sends SIGHUP, and every write to the terminal fails from then on."""
    out = tmp_path / "out.csv"
    pid, terminal = pty.fork()
    if pid == 0:
        with_signals()
        os.execve(command()[0], command("join", people, items, "--on", "id", *SILENT, "-o", out), environment())
    shown = b""
    while b"1 rows" not in shown:
        shown += os.read(terminal, 65536)
    os.close(terminal)
    deadline = time.monotonic() + 30
    while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert os.waitstatus_to_exitcode(ended[1]) == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["items.csv", "out.partial.csv", "people.csv"]


def test_a_signal_that_is_ignored_stays_ignored(people: Path, items: Path, tmp_path: Path) -> None:
    """As ``nohup`` wants it."""
    process = subprocess.Popen(
        command("join", people, items, "--on", "id", *SILENT, "-o", tmp_path / "out.csv"),
        env=environment(), stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    wait_until(lambda: list(tmp_path.glob(".*.part")))
    process.send_signal(signal.SIGHUP)
    time.sleep(1.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 130


def test_one_request_that_comes_as_two_signals(people: Path, items: Path, tmp_path: Path) -> None:
    """``timeout`` sends SIGTERM to the process and to its group: what was found is kept all the same."""
    process = start("join", people, items, "--on", "id", *SILENT, "-o", tmp_path / "out.csv")
    wait_until(lambda: list(tmp_path.glob(".*.part")))
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.05)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    _, text = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "interrupted: " in text


def test_a_signal_while_an_input_is_opened(tmp_path: Path, items: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = start("join", tmp_path / "pipe", items, "--on", "id")
    with open(tmp_path / "pipe", "wb"):  # it is waiting for the first bytes now
        time.sleep(0.3)
        process.send_signal(signal.SIGHUP)
        _, text = process.communicate(timeout=20)
    assert (process.returncode, text) == (130, "earlyjoin: aborted; nothing was kept\n")


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_the_output_is_an_input(
    people: Path, items: Path, tmp_path: Path, overwrite: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = items.read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(items)
    for output in (items, link, tmp_path / "." / "items.csv"):
        text = refused(capsys, people, items, "--on", "id", "-o", output, *overwrite)
        assert f"is the input '{items}', which it would destroy; name another output" in text
    text = refused(capsys, people, tmp_path / "it*.csv", "--on", "id", "-o", tmp_path / "it2.csv")
    assert "would become a part of the input" in text
    assert items.read_bytes() == before


def test_standard_output_is_an_input(people: Path, items: Path) -> None:
    before = items.read_bytes()
    with items.open("ab") as appended:
        done = finished("join", people, items, "--on", "id", stdout=appended)
    assert done.returncode == 2
    assert b"standard output is the input" in done.stderr
    assert items.read_bytes() == before


def test_bad_inputs_and_outputs_end_with_2(people: Path, items: Path, tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes(b"id,s\n1,caf\xe9\n")
    (tmp_path / "packed.csv").write_bytes(gzip.compress(b"id,s\n1,a\n"))
    (tmp_path / "empty.parquet").write_bytes(b"")
    (tmp_path / "directory").mkdir()
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"id": range(1000)}), whole)
    (tmp_path / "cut.parquet").write_bytes(whole.read_bytes()[:-100])
    (tmp_path / "unknown.xyz").write_text("id\n1\n")
    os.mkfifo(tmp_path / "out.csv")
    for name in ("latin.csv", "packed.csv", "empty.parquet", "directory", "cut.parquet", "unknown.xyz", "missing.csv"):
        assert run("join", tmp_path / name, items, "--on", "id") == 2, name
    for output in ("directory", "missing/out.csv", "out.csv"):
        assert run("join", people, items, "--on", "id", "--overwrite", "-o", tmp_path / output) == 2, output


def test_advice_has_the_words_of_the_command_line(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    late = tmp_path / "late.csv"
    late.write_text("id,x\n" + "1,1\n" * 400_000 + "1,y\n")
    assert run("join", people, late, "--on", "id", "--json") == 2
    text = capsys.readouterr().err
    assert "--types-left or --types-right x=string" in text
    assert "types=" not in text
    assert run("join", people, late, "--on", "id", "-o", tmp_path / "o.csv", "-q", "--types-right", "x=string") == 0
    semicolons = tmp_path / "semicolons.csv"
    semicolons.write_text("id;x\n1;a\n")
    text = refused(capsys, people, semicolons, "--on", "id")
    assert "that looks like fields separated by ';': say so with --delimiter-right ';'" in text
    unknown = tmp_path / "unknown.xyz"
    unknown.write_text("id\n1\n")
    assert "Or give --format-right" in refused(capsys, people, unknown, "--on", "id")


@pytest.mark.parametrize("format_", ["parquet", "arrow"])
def test_a_join_that_failed_leaves_nothing_that_looks_complete(tmp_path: Path, format_: str) -> None:
    """The first file is joined before the error in the second one; rows are held back for a row group as well."""
    for name, last in (("a.csv", ""), ("b.csv", "1,2,3\n")):
        (tmp_path / name).write_text("k,n\n" + "".join(f"{n},{n}\n" for n in range(100_000)) + last)
    pq.write_table(pa.table({"k": range(100_000)}), tmp_path / "right.parquet")
    options = ("--on", "k", "--engine", "local", "--output-format", format_, "-o", "-")
    done = finished("join", tmp_path / "[ab].csv", tmp_path / "right.parquet", *options)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, "nobody complains of what was abandoned"
    assert len(done.stdout) > 100_000, "rows came before the error"
    out = pa.BufferReader(done.stdout)
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(out) if format_ == "parquet" else pa.ipc.open_stream(out).read_all()


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["join", "--help"]])
def test_help_that_cannot_be_written(arguments: list[str]) -> None:
    with FULL.open("wb") as full:
        done = finished(*arguments, stdout=full)
    assert done.returncode == 1
    assert done.stderr == b"earlyjoin: cannot write to standard output: No space left on device\n"
