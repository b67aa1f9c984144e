"""The state of an operator as named flat arrays, tables, run files and plain values: pause, resume, checkpoint.

On disk it is a directory with Arrow IPC files and one JSON file, nothing that executes on loading. The JSON is
written last and under another name first, so a directory that has it is complete. It has a checksum of every file and
of itself: a damaged one is refused by its name, whatever the damage would have done.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.errors import DamagedState, SnapshotError
from earlyjoin.state.disk.checked_files import checksum_of, file_checksum

FORMAT = 5
_MANIFEST = "snapshot.json"


@dataclass(slots=True)
class Snapshot:
    """Everything needed to go on later, in another process."""

    values: dict[str, Any] = field(default_factory=dict)
    """Plain values that JSON can hold."""
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    """Files (spill runs) that belong to the state; saving copies them."""

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write everything into a new or empty directory."""
        path = Path(directory)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SnapshotError(
                f"cannot save state in {str(path)!r}: {error.strerror}; name another directory"
            ) from error
        if any(path.iterdir()):
            raise SnapshotError(f"{str(path)!r} is not empty; a saved state needs a directory of its own")
        self._write(path)

    def _write(self, path: Path) -> None:
        files: dict[str, dict[str, str]] = {"arrays": {}, "tables": {}, "files": {}}
        for number, (name, array) in enumerate(self.arrays.items()):
            files["arrays"][name] = f"array-{number:04d}.npy"
            np.save(path / files["arrays"][name], array, allow_pickle=False)
        for number, (name, table) in enumerate(self.tables.items()):
            files["tables"][name] = file = f"table-{number:04d}.arrow"
            with pa.OSFile(str(path / file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        for number, (name, source) in enumerate(self.files.items()):
            files["files"][name] = f"file-{number:04d}{source.suffix}"
            shutil.copyfile(source, path / files["files"][name])
        sums = {file: file_checksum(path / file) for kind in files.values() for file in kind.values()}
        state = {"values": self.values, **files, "checksums": sums}
        manifest = {"format": FORMAT, "checksum": _text_checksum(state), "state": state}
        temporary = path / (_MANIFEST + ".part")
        temporary.write_text(json.dumps(manifest, indent=1))
        temporary.replace(path / _MANIFEST)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Snapshot:
        """Read what ``save`` wrote. The files stay where they are; a restore copies what it will change."""
        path = Path(directory)
        state = _read_manifest(path)
        for file, checksum in state["checksums"].items():
            _verify(path / file, checksum)
        files = {name: path / file for name, file in state["files"].items()}
        try:
            arrays = {name: np.load(path / file, allow_pickle=False) for name, file in state["arrays"].items()}
            tables = {name: _read_table(path / file) for name, file in state["tables"].items()}
        except (OSError, ValueError) as error:
            raise SnapshotError(f"{str(path)!r} holds a saved state that cannot be read: {error}") from error
        return cls(state["values"], arrays, tables, files)

    def nested(self, prefix: str, inner: Snapshot) -> None:
        """Put another snapshot inside this one under a prefix."""
        self.values[prefix] = inner.values
        self.arrays |= {f"{prefix}/{name}": array for name, array in inner.arrays.items()}
        self.tables |= {f"{prefix}/{name}": table for name, table in inner.tables.items()}
        self.files |= {f"{prefix}/{name}": path for name, path in inner.files.items()}

    def part(self, prefix: str) -> Snapshot:
        """The snapshot that ``nested`` put under a prefix."""

        def inside(things: dict[str, Any]) -> dict[str, Any]:
            start = f"{prefix}/"
            return {name.removeprefix(start): value for name, value in things.items() if name.startswith(start)}

        return Snapshot(self.values[prefix], inside(self.arrays), inside(self.tables), inside(self.files))


def _read_manifest(path: Path) -> dict[str, Any]:
    """What the directory holds, if it is complete, of this version, and as it was written."""
    file = path / _MANIFEST
    try:
        manifest = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise SnapshotError(f"{str(path)!r} holds no complete saved state ({_MANIFEST} is missing)") from None
    except OSError as error:
        raise SnapshotError(f"{str(path)!r} holds no saved state that can be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(file, str(error)) from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        raise SnapshotError(f"{str(path)!r} has state format {found}, this version reads {FORMAT}")
    state = manifest.get("state")
    if not isinstance(state, dict) or manifest.get("checksum") != _text_checksum(state):
        raise _damaged(file, "its checksum does not match")
    return state


def _text_checksum(state: dict[str, Any]) -> int:
    """Of the text of plain values, however it is laid out in the file."""
    return checksum_of(bytearray(json.dumps(state).encode()))


def _verify(file: Path, checksum: int) -> None:
    try:
        if file_checksum(file) != checksum:
            raise _damaged(file, "its checksum does not match")
    except FileNotFoundError:
        raise _damaged(file, "it is missing") from None
    except OSError as error:
        raise _damaged(file, f"it cannot be read ({error.strerror})") from error


def _damaged(file: Path, what: str) -> DamagedState:
    return DamagedState(
        f"{str(file)!r} of a saved state is damaged: {what}; restore the directory from a copy, or start the join again"
    )


def _read_table(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source:
        return pa.ipc.open_file(source).read_all()
