"""Saved states: complete or refused, and nothing in them that executes."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from earlyjoin.errors import SnapshotError
from earlyjoin.state.snapshot import FORMAT, Snapshot
from state.arrow_columns import COLUMNS


def sample(directory: Path) -> Snapshot:
    run = directory / "run-000001.arrow"
    run.write_bytes(b"a run")
    return Snapshot(
        values={"phase": "arriving", "ended": [True, False], "work": [{"row": 3, "name": None}]},
        arrays={
            "met": np.arange(5),
            "matched": np.array([True, False]),
            "empty": np.empty((0, 3)),
            "words/odd name": np.arange(6).reshape(2, 3),
        },
        tables={
            "rows": pa.table({n: a for n, a in COLUMNS.items() if n != "extension"}),
            "none": pa.table({"a": pa.array([], pa.string())}),
        },
        files={"run": run},
    )


def same(one: Snapshot, other: Snapshot) -> None:
    assert one.values == other.values
    assert list(one.arrays) == list(other.arrays)
    for name, array in one.arrays.items():
        assert array.dtype == other.arrays[name].dtype
        assert np.array_equal(array, other.arrays[name])
    assert list(one.tables) == list(other.tables)
    for name, table in one.tables.items():
        assert table.schema == other.tables[name].schema
        assert table.to_pylist() == other.tables[name].to_pylist()
    assert {n: p.read_bytes() for n, p in one.files.items()} == {n: p.read_bytes() for n, p in other.files.items()}


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    saved = sample(tmp_path)
    saved.save(tmp_path / "deep" / "state")
    loaded = Snapshot.load(str(tmp_path / "deep" / "state"))
    same(saved, loaded)
    assert loaded.files["run"].parent == tmp_path / "deep" / "state"
    assert loaded.files["run"].suffix == ".arrow"
    loaded.save(tmp_path / "again")
    same(saved, Snapshot.load(tmp_path / "again"))


def test_an_empty_one(tmp_path: Path) -> None:
    Snapshot().save(tmp_path / "state")
    same(Snapshot(), Snapshot.load(tmp_path / "state"))


def test_nested_and_part(tmp_path: Path) -> None:
    inner, other = sample(tmp_path), Snapshot(values={"x": 1}, arrays={"met": np.zeros(2)})
    outer = Snapshot(values={"query": "q"}, arrays={"met": np.ones(1)})
    outer.nested("operator", inner)
    outer.nested("operator2", other)
    outer.save(tmp_path / "state")
    loaded = Snapshot.load(tmp_path / "state")
    same(inner, loaded.part("operator"))
    same(other, loaded.part("operator2"))
    assert loaded.values["query"] == "q"
    with pytest.raises(KeyError):
        loaded.part("nobody")
    deeper = Snapshot()
    deeper.nested("all", outer)
    same(inner, deeper.part("all").part("operator"))


def test_sealed_blocks_are_linked_and_named_once(tmp_path: Path) -> None:
    (tmp_path / "run-000007.pages").write_bytes(b"sealed")
    saved = Snapshot(blocks={"a1": tmp_path / "run-000007.pages"})
    outer = Snapshot()
    outer.nested("operator", saved)
    outer.save(tmp_path / "state")
    assert (tmp_path / "state" / "block-a1.pages").samefile(tmp_path / "run-000007.pages")
    (tmp_path / "run-000007.pages").unlink()
    loaded = Snapshot.load(tmp_path / "state").part("operator")
    assert list(loaded.blocks) == ["a1"]
    assert loaded.blocks["a1"].read_bytes() == b"sealed"
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again" / "block-a1.pages").samefile(loaded.blocks["a1"])
    loaded.blocks["a1"].write_bytes(b"seared")
    with pytest.raises(SnapshotError, match=r"block-a1\.pages' of a saved state is damaged"):
        Snapshot.load(tmp_path / "state")


def test_what_cannot_be_linked_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other_file_system(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr("os.link", other_file_system)
    (tmp_path / "run.pages").write_bytes(b"sealed")
    Snapshot(blocks={"a1": tmp_path / "run.pages"}).save(tmp_path / "state")
    loaded = Snapshot.load(tmp_path / "state")
    assert loaded.blocks["a1"].read_bytes() == b"sealed"
    assert not loaded.blocks["a1"].samefile(tmp_path / "run.pages")


def test_files_that_go_on_changing_are_copied(tmp_path: Path) -> None:
    saved = sample(tmp_path)
    saved.save(tmp_path / "state")
    saved.files["run"].write_bytes(b"changed")
    assert Snapshot.load(tmp_path / "state").files["run"].read_bytes() == b"a run"


def test_a_directory_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SnapshotError, match="is not empty; a saved state needs a directory of its own"):
        Snapshot().save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(SnapshotError, match="cannot save state in"):
            Snapshot().save(path)


@pytest.mark.parametrize("place", ["missing", "empty"])
def test_incomplete_directories_are_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SnapshotError, match=r"no complete saved state \(snapshot.json is missing\)"):
        Snapshot.load(tmp_path / place)


def test_a_save_that_broke_off_is_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved, path = sample(tmp_path), tmp_path / "state"
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        saved.save(path)
    assert any(path.iterdir())
    with pytest.raises(SnapshotError, match="no complete saved state"):
        Snapshot.load(path)


@pytest.mark.parametrize("format_", [FORMAT + 1, 0, None, "1"])
def test_another_format_is_refused(tmp_path: Path, format_: object) -> None:
    Snapshot().save(tmp_path / "state")
    manifest = tmp_path / "state" / "snapshot.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": format_}))
    with pytest.raises(SnapshotError, match=f"state format {format_}, this version reads {FORMAT}"):
        Snapshot.load(tmp_path / "state")


@pytest.mark.parametrize("content", ["", "{", "[]", "3", "null"])
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "snapshot.json").write_text(content)
    with pytest.raises(SnapshotError):
        Snapshot.load(tmp_path)


@pytest.mark.parametrize(
    ("file", "damage"),
    [("array-0000.npy", "gone"), ("table-0000.arrow", "gone"), ("file-0000.arrow", "gone"), ("array-0000.npy", "cut"),
     ("table-0000.arrow", "cut")],
)  # fmt: skip
def test_damaged_directories_are_refused(tmp_path: Path, file: str, damage: str) -> None:
    sample(tmp_path).save(tmp_path / "state")
    path = tmp_path / "state" / file
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(SnapshotError, match="damaged"):
        Snapshot.load(tmp_path / "state")


def test_nothing_is_pickled(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle=False"):
        Snapshot(arrays={"objects": np.array([{}], dtype=object)}).save(tmp_path / "refused")
    with pytest.raises(TypeError, match="JSON"):
        Snapshot(values={"object": object()}).save(tmp_path / "values")
    path = tmp_path / "state"
    Snapshot(arrays={"a": np.arange(3)}).save(path)
    np.save(path / "array-0000.npy", np.array([{"evil": print}], dtype=object), allow_pickle=True)
    with pytest.raises(SnapshotError, match="damaged"):
        Snapshot.load(path)
