"""The state of an operator as named flat arrays, tables, run files and plain values: pause, resume, checkpoint.

On disk it is a directory with Arrow IPC files and one JSON file, nothing that executes on loading. The JSON is
written last and under another name first, so a directory that has it is complete.
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

from earlyjoin.errors import SnapshotError

FORMAT = 4
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
        arrays: dict[str, str] = {}
        for number, (name, array) in enumerate(self.arrays.items()):
            arrays[name] = f"array-{number:04d}.npy"
            np.save(path / arrays[name], array, allow_pickle=False)
        tables: dict[str, str] = {}
        for number, (name, table) in enumerate(self.tables.items()):
            tables[name] = f"table-{number:04d}.arrow"
            with pa.OSFile(str(path / tables[name]), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        files: dict[str, str] = {}
        for number, (name, source) in enumerate(self.files.items()):
            files[name] = f"file-{number:04d}{source.suffix}"
            shutil.copyfile(source, path / files[name])
        manifest = {"format": FORMAT, "values": self.values, "arrays": arrays, "tables": tables, "files": files}
        temporary = path / (_MANIFEST + ".part")
        temporary.write_text(json.dumps(manifest, indent=1))
        temporary.replace(path / _MANIFEST)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Snapshot:
        """Read what ``save`` wrote. The files stay where they are; whoever restores copies what it will change."""
        path = Path(directory)
        try:
            manifest = json.loads((path / _MANIFEST).read_text())
        except FileNotFoundError:
            raise SnapshotError(f"{str(path)!r} holds no complete saved state ({_MANIFEST} is missing)") from None
        except (OSError, ValueError) as error:
            raise SnapshotError(f"{str(path)!r} holds no saved state that can be read: {error}") from error
        found = manifest.get("format") if isinstance(manifest, dict) else None
        if found != FORMAT:
            raise SnapshotError(f"{str(path)!r} has state format {found}, this version reads {FORMAT}")
        files = {name: path / file for name, file in manifest["files"].items()}
        missing = sorted(str(file) for file in files.values() if not file.is_file())
        if missing:
            raise SnapshotError(f"{str(path)!r} holds a damaged saved state: {missing[0]} is missing")
        try:
            arrays = {name: np.load(path / file, allow_pickle=False) for name, file in manifest["arrays"].items()}
            tables = {name: _read_table(path / file) for name, file in manifest["tables"].items()}
        except (OSError, ValueError) as error:
            raise SnapshotError(f"{str(path)!r} holds a damaged saved state: {error}") from error
        return cls(manifest["values"], arrays, tables, files)

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


def _read_table(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source:
        return pa.ipc.open_file(source).read_all()
