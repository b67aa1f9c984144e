"""A byte for each spilled row: has it matched? On disk, so that flags do not fill the memory.

Flags change in place, so blocks of them have their checksums in memory: verified whenever a flag of the block is looked
at, and made again whenever one is set.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt

from earlyjoin.errors import EarlyJoinError
from earlyjoin.kernels import checksums
from earlyjoin.predicates.keys import Bool, Int64
from earlyjoin.state.checked_files import damaged
from earlyjoin.state.snapshot import Snapshot
from earlyjoin.state.spill import SpillDirectory


class FlagFile:
    """Flags by the numbers of rows. Several threads may use it."""

    def __init__(self, directory: SpillDirectory) -> None:
        self._directory = directory
        self._path: Path | None = None
        self._sums: npt.NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._lock = threading.Lock()
        self.rows = 0

    def append(self, matched: Bool) -> Int64:
        """Add rows; returns their numbers."""
        with self._lock:
            numbers = np.arange(self.rows, self.rows + len(matched), dtype=np.int64)
            if len(matched):
                self._check_last_block()
                self._write_behind(matched)
                self.rows += len(matched)
                first = int(numbers[0]) // checksums.FLAGS_A_BLOCK
                self._sums = np.concatenate([self._sums[:first], checksums.sums_from(self._mapped("r"), first)])
            return numbers

    def read(self, numbers: Int64) -> Bool:
        """Copies of the flags of some rows."""
        if not len(numbers):
            return np.empty(0, dtype=np.bool_)
        with self._lock:
            return self._checked("r", numbers)[numbers].view(np.bool_)

    def mark(self, numbers: Int64) -> None:
        """These rows have matched."""
        if len(numbers):
            with self._lock:
                checksums.raise_flags(self._checked("r+", numbers), self._sums, numbers)

    def delete(self) -> None:
        """Remove the file."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        self._path, self.rows, self._sums = None, 0, self._sums[:0]

    def save(self, snapshot: Snapshot, name: str) -> int:
        """Put it into a snapshot; returns its length."""
        if self._path is not None:
            snapshot.files[name] = self._path
            snapshot.arrays[f"{name}-sums"] = self._sums.copy()
        return self.rows

    def load(self, snapshot: Snapshot, name: str, rows: int) -> None:
        """Copy it out of a snapshot."""
        if name in snapshot.files:
            self._path = self._directory.new_path(".flags")
            shutil.copyfile(snapshot.files[name], self._path)
            self._sums = snapshot.arrays[f"{name}-sums"]
        self.rows = rows

    def _check_last_block(self) -> None:
        """Rows are added to the last block, whose checksum is made again: it must be right before."""
        if self.rows % checksums.FLAGS_A_BLOCK:
            self._checked("r", np.array([self.rows - 1], dtype=np.int64))

    def _write_behind(self, matched: Bool) -> None:
        if self._path is None:
            self._path = self._directory.new_path(".flags")
        try:
            with self._path.open("ab") as file:
                file.write(matched.tobytes())
        except OSError as error:
            raise EarlyJoinError(f"cannot write spill file {str(self._path)!r}: {error}") from error

    def _checked(self, mode: str, numbers: Int64) -> npt.NDArray[np.uint8]:
        flags = self._mapped(mode)
        if not checksums.blocks_hold(flags, self._sums, numbers):
            assert self._path is not None
            raise damaged(self._path, "the checksum of a block of flags does not match")
        return flags

    def _mapped(self, mode: str) -> npt.NDArray[np.uint8]:
        assert self._path is not None
        try:
            size = self._path.stat().st_size
            if size < self.rows:  # NumPy would make it longer, and what is behind the end of a map kills the process
                raise damaged(self._path, f"it has {size:,} bytes instead of {self.rows:,}")
            return np.asarray(np.memmap(self._path, dtype=np.uint8, mode=mode, shape=(self.rows,)))  # type: ignore[call-overload]
        except OSError as error:
            raise damaged(self._path, f"it cannot be read ({error.strerror})") from error
