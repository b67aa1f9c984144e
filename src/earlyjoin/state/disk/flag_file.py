"""A byte for each spilled row: has it matched? On disk, so that flags do not fill the memory.

Flags change in place, so blocks of them have their checksums in memory: verified whenever a flag of the block is looked
at, and made again whenever one is set.
"""

from __future__ import annotations

import mmap
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from earlyjoin.errors import EarlyJoinError
from earlyjoin.kernels import checksums
from earlyjoin.predicates.encoding.keys import Bool, Int64
from earlyjoin.state.disk.checked_files import damaged
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.snapshot import Snapshot

_MISMATCH = "the checksum of a block of flags does not match"


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
                first = self.rows // checksums.FLAGS_A_BLOCK
                flags = np.concatenate([self._last_block(first), matched.view(np.uint8)])
                self._write_behind(matched)
                self._sums = np.concatenate([self._sums[:first], checksums.sums_of(flags, first)])
                self.rows += len(matched)
            return numbers

    def read(self, numbers: Int64) -> Bool:
        """Copies of the flags of some rows."""
        if not len(numbers):
            return np.empty(0, dtype=np.bool_)
        with self._lock:
            return self._checked(numbers)[numbers].view(np.bool_)

    def mark(self, numbers: Int64) -> None:
        """These rows have matched."""
        if len(numbers):
            with self._lock:
                checksums.raise_flags(self._checked(numbers), self._sums, numbers)

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
            shutil.copyfile(snapshot.files[name], self._path)  # it changes in place
            self._sums = snapshot.arrays[f"{name}-sums"].copy()
        self.rows = rows

    def _last_block(self, number: int) -> npt.NDArray[np.uint8]:
        """The flags of a block that is not full. It gets more, and a new checksum: so it must be right before."""
        start = number * checksums.FLAGS_A_BLOCK
        if self.rows == start:
            return np.empty(0, dtype=np.uint8)
        with self._opened() as (path, file):
            flags = np.frombuffer(bytearray(os.pread(file, self.rows - start, start)), dtype=np.uint8)
            if checksums.sums_of(flags, number)[0] != self._sums[number]:
                raise damaged(path, _MISMATCH)
            return flags

    def _write_behind(self, matched: Bool) -> None:
        if self._path is None:
            self._path = self._directory.new_path(".flags")
        try:
            with self._path.open("ab") as file:
                file.write(matched.tobytes())
        except OSError as error:
            raise EarlyJoinError(f"cannot write spill file {str(self._path)!r}: {error}") from error

    def _checked(self, numbers: Int64) -> npt.NDArray[np.uint8]:
        """All flags, writable; the blocks of these rows are as they were written."""
        with self._opened() as (path, file):
            flags = np.frombuffer(mmap.mmap(file, self.rows), dtype=np.uint8)
            if not checksums.blocks_hold(flags, self._sums, numbers):
                raise damaged(path, _MISMATCH)
            return flags

    @contextmanager
    def _opened(self) -> Iterator[tuple[Path, int]]:
        """The file, opened for each use: there may be very many."""
        path = self._path
        assert path is not None
        file = -1
        try:
            file = os.open(path, os.O_RDWR)
            size = os.fstat(file).st_size
            if size < self.rows:  # what is behind the end of a map kills the process
                raise damaged(path, f"it has {size:,} bytes instead of {self.rows:,}")
            yield path, file
        except OSError as error:
            raise damaged(path, f"it cannot be read ({error.strerror})") from error
        finally:
            if file >= 0:
                os.close(file)
