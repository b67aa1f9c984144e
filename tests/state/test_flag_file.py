"""Flags on disk, under checksums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from earlyjoin.errors import DamagedFile
from earlyjoin.kernels.checksums import FLAGS_A_BLOCK
from earlyjoin.state.disk.flag_file import FlagFile
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.snapshot import Snapshot


def test_flags_are_appended_read_marked_saved_and_loaded(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    flags = np.empty(0, dtype=np.bool_)
    with SpillDirectory(tmp_path) as directory:
        file = FlagFile(directory)
        assert file.append(flags).tolist() == []
        for count in (1, 10, FLAGS_A_BLOCK - 11, FLAGS_A_BLOCK, 3, 2 * FLAGS_A_BLOCK):
            more = rng.random(count) < 0.3
            assert file.append(more).tolist() == list(range(len(flags), len(flags) + count))
            flags = np.concatenate([flags, more])
            some = rng.integers(0, len(flags), 50)
            file.mark(some)
            flags[some] = True
            wanted = rng.integers(0, len(flags), 100)
            assert np.array_equal(file.read(wanted), flags[wanted])
        snapshot = Snapshot()
        rows = file.save(snapshot, "flags")
        snapshot.save(tmp_path / "saved")
        other = FlagFile(directory)
        other.load(Snapshot.load(tmp_path / "saved"), "flags", rows)
        assert np.array_equal(other.read(np.arange(rows)), flags)
        file.delete()
        assert other.append(np.zeros(1, dtype=np.bool_)).tolist() == [rows]
        assert file.read(np.empty(0, dtype=np.int64)).tolist() == []


@pytest.mark.parametrize("change", ["flip", "cut", "unlink"])
@pytest.mark.parametrize("use", ["read", "mark", "append"])
def test_damage_is_noticed_whatever_is_done(tmp_path: Path, change: str, use: str) -> None:
    with SpillDirectory(tmp_path) as directory:
        file = FlagFile(directory)
        file.append(np.zeros(100, dtype=np.bool_))
        (path,) = directory.path.glob("*.flags")
        if change == "flip":
            path.write_bytes(b"\1" + path.read_bytes()[1:])
        elif change == "cut":
            path.write_bytes(path.read_bytes()[:50])
        else:
            path.unlink()
        argument = np.zeros(1, dtype=np.bool_) if use == "append" else np.array([7])
        with pytest.raises(DamagedFile, match=rf"spill file '{path}' is damaged"):
            getattr(file, use)(argument)
