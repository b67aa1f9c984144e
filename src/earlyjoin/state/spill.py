"""Spill runs: Arrow IPC files in a private directory that disappears in every ending.

A directory is held by a lock on a file inside it, which the system drops when the process dies, however it dies.
Whoever starts next in the same place removes the directories that nobody holds any more.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from earlyjoin.errors import EarlyJoinError, InputError
from earlyjoin.state.counters import Counters
from earlyjoin.state.dictionaries import decoded, encoded, plain_type

_PREFIX = "earlyjoin-"
_LOCK = "lock"
_SCHEMA = b"earlyjoin:schema"


class SpillDirectory:
    """A private directory for runs. Use it as a context manager, or call ``close``."""

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self.root = Path(root) if root is not None else Path(tempfile.gettempdir())
        if not self.root.is_dir():
            raise InputError(f"spill directory {str(self.root)!r} does not exist; create it or name another")
        self._path: Path | None = None
        self._lock: int | None = None
        self._owner = os.getpid()
        self._runs = 0

    @property
    def path(self) -> Path:
        """The directory; made when it is first needed, so that a join that never spills leaves no trace."""
        if self._path is None:
            sweep(self.root)
            try:
                self._path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=self.root))
                fresh = self._path / "fresh"
                self._lock = os.open(fresh, os.O_CREAT | os.O_RDWR, 0o600)
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                fresh.rename(self._path / _LOCK)  # visible only once it is held, so no sweep can come in between
            except OSError as error:
                self.close()
                raise InputError(
                    f"cannot spill to {str(self.root)!r}: {error.strerror}; name another directory"
                ) from error
            atexit.register(self.close)
        return self._path

    def new_path(self, suffix: str) -> Path:
        """A path for a new file."""
        self._runs += 1
        return self.path / f"run-{self._runs:06d}{suffix}"

    def close(self) -> None:
        """Remove the directory and everything in it; in a forked child, leave it to the parent."""
        if self._path is not None:
            if os.getpid() == self._owner:
                _remove(self._path)
            self._path = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        atexit.unregister(self.close)

    def __enter__(self) -> SpillDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def sweep(root: Path) -> list[Path]:
    """Remove the spill directories below ``root`` whose processes are gone; returns what was removed."""
    removed = []
    for path in root.glob(f"{_PREFIX}*-*"):
        with contextlib.suppress(OSError):
            handle = os.open(path / _LOCK, os.O_RDWR)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue  # its process is alive
            finally:
                os.close(handle)
            _remove(path)
            removed.append(path)
    return removed


def _remove(path: Path) -> None:
    """Remove a directory, its lock last: should this be interrupted, the next sweep still knows it for abandoned."""
    with contextlib.suppress(OSError):
        for entry in path.iterdir():
            if entry.name != _LOCK:
                entry.unlink()
    shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Run:
    """Rows on disk, in pages (record batches) that can be read one by one."""

    path: Path
    rows: int
    starts: tuple[int, ...]
    """Number of the first row of each page."""
    nbytes: int

    @property
    def pages(self) -> int:
        """Number of pages."""
        return len(self.starts)

    def read(self, counters: Counters) -> RunReader:
        """Open it for reading pages."""
        return RunReader(self, counters)

    def delete(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


class RunWriter:
    """Writes one run, page by page."""

    def __init__(self, path: Path, schema: pa.Schema, counters: Counters) -> None:
        self._path = path
        self._counters = counters
        self._rows = 0
        self._starts: list[int] = []
        self._stored = _stored_schema(schema)
        with self._failing_clearly():
            self._sink = pa.OSFile(str(path), "wb")
            self._writer = pa.ipc.new_file(self._sink, self._stored)

    def write(self, page: pa.RecordBatch) -> None:
        """Add one page."""
        before = self._sink.tell()
        with self._failing_clearly():
            self._writer.write_batch(_plain(page, self._stored))
        self._starts.append(self._rows)
        self._rows += page.num_rows
        self._counters.pages_written += 1
        self._counters.tuples_written += page.num_rows
        self._counters.bytes_written += self._sink.tell() - before

    def close(self) -> Run:
        """Finish the file."""
        with self._failing_clearly():
            self._writer.close()
            size = self._sink.tell()
            self._sink.close()
        return Run(self._path, self._rows, tuple(self._starts), size)

    @contextlib.contextmanager
    def _failing_clearly(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise EarlyJoinError(f"cannot write spill file {str(self._path)!r}: {error}") from error


class RunReader:
    """Reads the pages of one run in any order."""

    def __init__(self, run: Run, counters: Counters) -> None:
        self.run = run
        self._counters = counters
        self._file = pa.OSFile(str(run.path), "rb")
        self._reader = pa.ipc.open_file(self._file)
        self._schema = pa.ipc.read_schema(pa.py_buffer(self._reader.schema.metadata[_SCHEMA]))

    def page(self, number: int) -> pa.RecordBatch:
        """Read one page."""
        before = self._file.tell()
        page = self._reader.get_batch(number)
        self._counters.pages_read += 1
        self._counters.tuples_read += page.num_rows
        self._counters.bytes_read += max(page.nbytes, self._file.tell() - before)
        return _original(page, self._schema)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _stored_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of the file: an Arrow file has one dictionary a column, pages have many, so it holds values."""
    fields = [field.with_type(plain_type(field.type)) for field in schema]
    return pa.schema(fields, metadata={_SCHEMA: schema.remove_metadata().serialize().to_pybytes()})


def _plain(page: pa.RecordBatch, stored: pa.Schema) -> pa.RecordBatch:
    columns = [decoded(column) if pa.types.is_dictionary(column.type) else column for column in page.columns]
    return pa.RecordBatch.from_arrays(columns, schema=stored)


def _original(page: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        encoded(column, field.type) if pa.types.is_dictionary(field.type) else column
        for column, field in zip(page.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
