"""Runs as sealed blocks: named by what they hold, saved and loaded without a copy, checked whenever they are read."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from earlyjoin.errors import DamagedFile
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.runs import Run, RunWriter
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.snapshot import Snapshot

ROWS = pa.record_batch({"a": pa.array([1, None, 3], pa.int64()), "s": pa.array(["x", "yy", None])})


def written(directory: SpillDirectory, *pages: pa.RecordBatch) -> Run:
    writer = RunWriter(directory.new_path(".pages"), ROWS.schema, Counters())
    for page in pages:
        writer.write(page)
    return writer.close()


def pages(run: Run) -> list[pa.RecordBatch]:
    reader = run.read(Counters())
    found = [reader.page(number) for number in range(run.pages)]
    reader.close()
    return found


def test_the_id_says_what_a_run_holds(tmp_path: Path) -> None:
    with SpillDirectory(tmp_path) as directory:
        one, same = written(directory, ROWS, ROWS), written(directory, ROWS, ROWS)
        others = [written(directory, ROWS), written(directory, ROWS.slice(0, 2), ROWS), written(directory)]
        assert one.path != same.path
        assert one.id == same.id
        assert len({one.id, *(other.id for other in others)}) == 4


def test_what_was_saved_is_loaded_without_a_copy_and_more_than_once(tmp_path: Path) -> None:
    with SpillDirectory(tmp_path) as directory, SpillDirectory(tmp_path) as other:
        run, snapshot = written(directory, ROWS, ROWS.slice(1)), Snapshot()
        snapshot.values["runs"] = json.loads(json.dumps([run.save(snapshot), run.save(snapshot)]))
        assert list(snapshot.blocks) == [run.id]
        snapshot.save(tmp_path / "state")
        found = Snapshot.load(tmp_path / "state")
        loaded = [Run.load(found, values, other) for values in found.values["runs"]]
        assert len({run.path, *(again.path for again in loaded)}) == 3
        for again in loaded:
            assert again.path.samefile(run.path)
            assert again.id == run.id
            assert pages(again) == [ROWS, ROWS.slice(1)]
            again.delete()
        run.delete()
        assert pages(Run.load(found, found.values["runs"][0], other)) == [ROWS, ROWS.slice(1)]


def test_a_loaded_run_is_still_checked(tmp_path: Path) -> None:
    with SpillDirectory(tmp_path) as directory:
        run, snapshot = written(directory, ROWS), Snapshot()
        values = run.save(snapshot)
        content = bytearray(run.path.read_bytes())
        content[-3] ^= 1
        run.path.write_bytes(content)
        with pytest.raises(DamagedFile, match="checksum"):
            pages(Run.load(snapshot, values, directory))
