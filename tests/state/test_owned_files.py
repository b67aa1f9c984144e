"""Files that belong to a living process, and those of a dead one."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from itertools import count
from pathlib import Path

import pytest

from earlyjoin.state.disk import owned_files
from earlyjoin.state.disk.owned_files import claim, is_held, remove_abandoned

SOURCE = Path(owned_files.__file__).parents[2]

HOLDER = """
    import sys
    from pathlib import Path
    from earlyjoin.state.disk.owned_files import claim
    path, handle = claim(lambda: Path(sys.argv[1]))
    path.write_bytes(b"rows")
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER), str(path)],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_file_stays_while_its_process_lives_and_goes_when_it_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "part"
    process = holder(path)
    assert is_held(path)
    assert not remove_abandoned(path)
    assert path.read_bytes() == b"rows"
    process.kill()
    process.communicate(timeout=20)
    assert not is_held(path)
    assert remove_abandoned(path)
    assert list(tmp_path.iterdir()) == []


def test_another_file_is_made_when_a_sweep_came_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, swept = owned_files.fcntl.flock, []

    def sweep_first(handle: int, how: int) -> None:
        if not swept:
            swept.append(True)
            assert remove_abandoned(tmp_path / "part-0")
        lock(handle, how)

    numbers = count()
    monkeypatch.setattr(owned_files.fcntl, "flock", sweep_first)
    path, handle = claim(lambda: tmp_path / f"part-{next(numbers)}")
    assert handle is not None
    assert path == tmp_path / "part-1"
    assert list(tmp_path.iterdir()) == [path]
    assert not remove_abandoned(path)
    os.close(handle)


def test_links_directories_and_files_of_others_stay(tmp_path: Path) -> None:
    real, link, directory = tmp_path / "real", tmp_path / "link", tmp_path / "directory"
    real.write_text("mine")
    link.symlink_to(real)
    directory.mkdir()
    assert not remove_abandoned(link)
    assert not remove_abandoned(directory)
    assert not remove_abandoned(tmp_path / "missing")
    if os.geteuid() == 0:
        os.chown(real, 12345, -1)
        assert not remove_abandoned(real)
    assert len(list(tmp_path.iterdir())) == 3


def test_nothing_is_abandoned_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(owned_files.fcntl, "flock", refuse)
    path, handle = claim(lambda: tmp_path / "part")
    assert handle is None
    assert not remove_abandoned(path)
    assert path.exists()
