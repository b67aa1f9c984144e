"""Blocks in files, with checksums that are kept apart from them: what is read is what was written, or an error.

Length, place and checksum of a block come from memory, or from a saved state that was verified. So nothing that is
found in a file decides how much is read or allocated, and a block that passes can be given to Arrow as it is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from earlyjoin.errors import DamagedFile, EarlyJoinError
from earlyjoin.kernels import checksums

_CHUNK_BYTES = 1 << 20
_BYTE = np.dtype(np.uint8)


def checksum_of(data: pa.Buffer | memoryview | bytearray, seed: int = 0) -> int:
    """The checksum of a block; ``seed`` is that of the block before, where one checksum is for several."""
    return int(checksums.checksum(np.frombuffer(data, _BYTE), np.uint64(seed)))


def file_checksum(path: Path) -> int:
    """The checksum of a whole file."""
    found = 0
    chunk = memoryview(pa.allocate_buffer(_CHUNK_BYTES))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(chunk):
            while count < _CHUNK_BYTES and (more := file.readinto(chunk[count:])):
                count += more
            found = checksum_of(chunk[:count], found)
    return found


def link_file(source: Path, path: Path) -> None:
    """Another name for a file that nobody writes to any more; a copy where it cannot have one (another file system)."""
    try:
        os.link(source, path)
    except OSError:
        shutil.copyfile(source, path)


def damaged(path: Path, what: str) -> DamagedFile:
    """The error for a spill file that is not as it was written."""
    return DamagedFile(
        f"spill file {str(path)!r} is damaged: {what}; somebody wrote to it, or the disk is failing: "
        "start the join again, with another spill directory if it happens again"
    )


class BlockWriter:
    """Writes blocks one behind the other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.ends: list[int] = []
        """Where each block ends."""
        self.sums: list[int] = []
        with self._failing_clearly():
            self._file = path.open("wb", buffering=0)

    @property
    def size(self) -> int:
        """Bytes written."""
        return self.ends[-1] if self.ends else 0

    def write(self, block: pa.Buffer) -> None:
        """Add one block."""
        rest = memoryview(block)
        with self._failing_clearly():
            while rest:
                rest = rest[self._file.write(rest) :]
        self.ends.append(self.size + block.size)
        self.sums.append(checksum_of(block))

    def close(self) -> None:
        """Finish the file."""
        with self._failing_clearly():
            self._file.close()

    @contextmanager
    def _failing_clearly(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise EarlyJoinError(f"cannot write spill file {str(self._path)!r}: {error}") from error


class BlockReader:
    """Reads blocks in any order."""

    def __init__(self, path: Path, ends: tuple[int, ...], sums: tuple[int, ...]) -> None:
        self._path = path
        self._ends = ends
        self._sums = sums
        with self._failing_clearly():
            self._file = os.open(path, os.O_RDONLY)

    def read(self, number: int) -> pa.Buffer:
        """One block as it was written, or :class:`DamagedFile`."""
        start = self._ends[number - 1] if number else 0
        block = pa.allocate_buffer(self._ends[number] - start)
        with self._failing_clearly():
            got, space = 0, memoryview(block)
            while got < len(space) and (count := os.preadv(self._file, [space[got:]], start + got)):
                got += count
        if got < len(space):
            raise damaged(self._path, f"it ends at byte {start + got:,}, in the middle of a block")
        if checksum_of(block) != self._sums[number]:
            raise damaged(self._path, f"the checksum of the block at byte {start:,} does not match")
        return block

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        if getattr(self, "_file", -1) >= 0:
            self.close()

    @contextmanager
    def _failing_clearly(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise damaged(self._path, f"it cannot be read ({error.strerror})") from error
