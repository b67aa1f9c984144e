"""Spill runs, and the directory that must be gone in every ending."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from earlyjoin.errors import EarlyJoinError, InputError, SpillClosed
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk import spill
from earlyjoin.state.disk.runs import RunWriter
from earlyjoin.state.disk.spill import SpillDirectory, sweep
from state.arrow_columns import COLUMNS

SOURCE = Path(spill.__file__).parents[2]


def directories(root: Path) -> list[Path]:
    return sorted(root.iterdir())


def start(script: str, root: Path, **more: object) -> subprocess.Popen[str]:
    """A Python process that has ``root``, SpillDirectory and sweep."""
    head = f"""
        import os, sys, time
        from pathlib import Path
        from earlyjoin.state.disk.spill import SpillDirectory, sweep
        root = Path({str(root)!r})
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(script)],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,  # type: ignore[call-overload]
    )


HOLDER = """
    directory = SpillDirectory(root)
    path = directory.new_path(".arrow")
    path.write_bytes(b"x" * 1000)
    print(path.parent, flush=True)
    sys.stdin.readline()
"""


def test_runs_come_back_page_by_page(tmp_path: Path) -> None:
    writing, reading = Counters(), Counters()
    table = pa.table({name: array for name, array in COLUMNS.items() if not name.startswith("extension")})
    batch = table.combine_chunks().to_batches()[0]
    pages = [batch, batch.slice(2, 1), batch.slice(3)]
    with SpillDirectory(tmp_path) as directory:
        writer = RunWriter(directory.new_path(".arrow"), batch.schema, writing)
        for page in pages:
            writer.write(page)
        run = writer.close()
        assert (run.rows, run.starts, run.pages) == (12, (0, 7, 8), 3)
        assert (writing.pages_written, writing.tuples_written) == (3, 12)
        assert 0 < writing.bytes_written <= run.nbytes == run.path.stat().st_size
        reader = run.read(reading)
        for number in (2, 0, 1, 0):
            assert reader.page(number).to_pylist() == pages[number].to_pylist()
        reader.close()
        assert (reading.pages_read, reading.tuples_read) == (4, 4 + 7 + 1 + 7)
        assert reading.bytes_read > 0
        run.delete()
        assert not run.path.exists()
        run.delete()


def test_a_run_without_rows(tmp_path: Path) -> None:
    with SpillDirectory(tmp_path) as directory:
        run = RunWriter(directory.new_path(".arrow"), pa.schema([("a", pa.int64())]), Counters()).close()
        assert (run.rows, run.pages, run.starts) == (0, 0, ())


def test_the_directory_is_made_when_it_is_needed_and_private(tmp_path: Path) -> None:
    directory = SpillDirectory(tmp_path)
    assert directories(tmp_path) == []
    first, second = directory.new_path(".a"), directory.new_path(".b")
    assert first != second
    assert first.parent == second.parent == directory.path == directories(tmp_path)[0]
    assert directory.path.stat().st_mode & 0o077 == 0
    directory.close()
    directory.close()
    assert directories(tmp_path) == []


@pytest.mark.parametrize("used", [True, False])
def test_it_does_not_come_back_after_closing(tmp_path: Path, used: bool) -> None:
    directory = SpillDirectory(tmp_path)
    if used:
        directory.new_path(".a").write_bytes(b"data")
    assert not directory.closed
    directory.close()
    assert directory.closed
    with pytest.raises(SpillClosed, match="is gone, because the query has ended"):
        directory.new_path(".b")
    with pytest.raises(SpillClosed):
        assert directory.path
    assert directories(tmp_path) == []


def test_closing_while_others_ask_for_paths(tmp_path: Path) -> None:
    for _ in range(20):
        directory = SpillDirectory(tmp_path)
        begun = threading.Barrier(3)

        def spilling(directory: SpillDirectory = directory, begun: threading.Barrier = begun) -> None:
            begun.wait()
            with contextlib.suppress(SpillClosed, FileNotFoundError):
                for _ in range(5000):
                    directory.new_path(".a").write_bytes(b"data")

        threads = [threading.Thread(target=spilling) for _ in range(2)]
        for thread in threads:
            thread.start()
        begun.wait()
        directory.close()
        for thread in threads:
            thread.join()
        assert directories(tmp_path) == []


def test_closed_on_the_way_out_of_an_exception(tmp_path: Path) -> None:
    def fail_while_spilling() -> None:
        with SpillDirectory(tmp_path) as directory:
            directory.new_path(".arrow").write_bytes(b"data")
            assert len(directories(tmp_path)) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_while_spilling()
    assert directories(tmp_path) == []


@pytest.mark.parametrize(
    ("ending", "code"),
    [("", 0), ("sys.exit(3)", 3), ("raise RuntimeError('boom')", 1), ("raise KeyboardInterrupt", -signal.SIGINT)],
    ids=["end", "exit", "exception", "interrupt"],
)
def test_gone_when_the_process_ends_without_closing(tmp_path: Path, ending: str, code: int) -> None:
    process = start(HOLDER + "\n    " + ending, tmp_path)
    output, _ = process.communicate("\n", timeout=60)
    assert process.returncode in (code, 130 if code < 0 else code)
    assert output.startswith(str(tmp_path))
    assert directories(tmp_path) == []


def test_what_a_killed_process_left_is_swept_by_the_next_and_a_living_one_is_not(tmp_path: Path) -> None:
    killed, living = start(HOLDER, tmp_path), start(HOLDER, tmp_path)
    assert killed.stdout is not None
    assert living.stdout is not None
    left, kept = Path(killed.stdout.readline().strip()), Path(living.stdout.readline().strip())
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=60)
    assert left.is_dir()
    mine = SpillDirectory(tmp_path)
    assert not left.exists(), "swept at the start, also when nothing will be spilled"
    own = mine.path
    assert directories(tmp_path) == sorted([kept, own])
    assert (kept / "run-000001.arrow").stat().st_size == 1000
    assert sweep(tmp_path) == []
    living.communicate("\n", timeout=60)
    mine.close()
    assert directories(tmp_path) == []


def test_processes_that_start_at_once_do_not_sweep_each_other(tmp_path: Path) -> None:
    script = """
        print("ready", flush=True)
        sys.stdin.readline()
        for _ in range(40):
            directory = SpillDirectory(root)
            path = directory.new_path(".arrow")
            path.write_bytes(b"x")
            time.sleep(0.001)
            sweep(root)
            assert path.exists(), "swept while it was held"
            directory.close()
        print("done")
    """
    processes = [start(script, tmp_path) for _ in range(3)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        output, errors = process.communicate(timeout=60)
        assert output == "done\n", errors
    assert directories(tmp_path) == []


def test_a_removal_that_was_interrupted_is_finished_by_the_next_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: with the lock removed first, nobody could tell that the rest was abandoned."""
    directory = SpillDirectory(tmp_path)
    runs = [directory.new_path(".arrow") for _ in range(3)]
    for run in runs:
        run.write_bytes(b"x")
    unlink, removed = Path.unlink, []

    def fail_after_one(path: Path, missing_ok: bool = False) -> None:
        if removed:
            raise KeyboardInterrupt
        removed.append(path)
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", fail_after_one)
    with pytest.raises(KeyboardInterrupt):
        directory.close()
    monkeypatch.undo()
    assert len(removed) == 1
    assert directory._lock is not None
    os.close(directory._lock)  # as the system does when the process dies
    directory._lock = directory._path = None
    assert sweep(tmp_path) == [runs[0].parent]
    assert directories(tmp_path) == []


def test_other_peoples_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "earlyjoin-notes.txt").write_text("mine")
    (tmp_path / "earlyjoin-12-abc").mkdir()
    (tmp_path / "earlyjoin-12-abc" / "thesis.txt").write_text("mine")
    assert sweep(tmp_path) == []
    with SpillDirectory(tmp_path) as directory:
        assert directory.path.is_dir()
    assert len(directories(tmp_path)) == 2


def test_no_such_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(InputError, match=f"spill directory '{root}' does not exist; create it or name another"):
            SpillDirectory(root)


def test_a_directory_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "locked"
    root.mkdir(mode=0o500)
    if os.geteuid() == 0:  # root may write anywhere

        def refuse(**_: object) -> str:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(spill.tempfile, "mkdtemp", refuse)
    directory = SpillDirectory(root)
    for _ in range(2):
        with pytest.raises(InputError, match=f"cannot spill to '{root}': Permission denied; name another directory"):
            directory.new_path(".arrow")
    directory.close()
    assert directories(root) == []


def test_a_directory_that_cannot_be_locked_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    directory = SpillDirectory(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(spill.fcntl, "flock", refuse)
        with pytest.raises(InputError, match="No locks available"):
            directory.new_path(".arrow")
        assert directories(tmp_path) == []
    assert directory.path.is_dir()
    directory.close()
    assert directories(tmp_path) == []


def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    page = pa.record_batch([pa.array(np.arange(100_000))], names=["a"])
    with pytest.raises(EarlyJoinError, match=r"cannot write spill file .*No space left"):
        RunWriter(Path("/dev/full"), page.schema, Counters()).write(page)


def test_starting_is_quick_beside_many_living_directories(tmp_path: Path) -> None:
    others = [SpillDirectory(tmp_path) for _ in range(20)]
    for other in others:
        assert other.path.is_dir()
    started = time.monotonic()
    with SpillDirectory(tmp_path) as directory:
        assert directory.path.is_dir()
    assert time.monotonic() - started < 2
    assert len(directories(tmp_path)) == 20
    for other in others:
        other.close()


def test_a_link_to_another_directory_is_not_followed(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    for name in ("lock", "thesis.txt"):
        (elsewhere / name).write_text("mine")
    (root / "earlyjoin-12-abc").symlink_to(elsewhere)
    assert sweep(root) == []
    assert sorted(path.name for path in elsewhere.iterdir()) == ["lock", "thesis.txt"]
