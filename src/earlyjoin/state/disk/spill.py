"""The private directory of spill files, which disappears in every ending.

A directory is held by a lock on a file inside it, which the system drops when the process dies, however it dies.
The next process that starts in the same place removes the directories that nobody holds, whether it spills or not.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import threading
from pathlib import Path

from earlyjoin.errors import InputError, SpillClosed
from earlyjoin.state.disk.owned_files import is_held

_PREFIX = "earlyjoin-"
_LOCK = "lock"
_REMOVALS = 3
"""A reader that was given a path before may put its file there while the directory is being removed."""


class SpillDirectory:
    """A private directory for runs. Use it as a context manager, or call ``close``."""

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self.root = Path(root) if root is not None else Path(tempfile.gettempdir())
        if not self.root.is_dir():
            raise InputError(f"spill directory {str(self.root)!r} does not exist; create it or name another")
        sweep(self.root)
        self._path: Path | None = None
        self._lock: int | None = None
        self._owner = os.getpid()
        self._runs = 0
        self._closed = False
        # Readers of inputs put files here too, and may outlive the query; who collects garbage may close it meanwhile.
        self._changing = threading.RLock()

    @property
    def path(self) -> Path:
        """The directory; made when it is first needed, so that a join that never spills leaves no trace.

        After ``close`` there is none: :class:`~earlyjoin.errors.SpillClosed`.
        """
        with self._changing:
            if self._closed:
                raise SpillClosed(f"the spill directory below {str(self.root)!r} is gone, because the query has ended")
            if self._path is None:
                try:
                    self._path = self._make()
                except OSError as error:
                    self._give_up()
                    raise InputError(
                        f"cannot spill to {str(self.root)!r}: {error.strerror}; name another directory"
                    ) from error
                atexit.register(self.close)
            return self._path

    @property
    def closed(self) -> bool:
        """Is it gone for good?"""
        return self._closed

    def new_path(self, suffix: str) -> Path:
        """A path for a new file; see ``path``."""
        with self._changing:
            self._runs += 1
            return self.path / f"run-{self._runs:06d}{suffix}"

    def close(self) -> None:
        """Remove the directory and all in it, for good; in a forked child, leave it to the parent. Idempotent."""
        # In a child, a thread that held the lock at the fork never lets go of it.
        with self._changing if os.getpid() == self._owner else contextlib.nullcontext():
            self._closed = True
            self._give_up()
        atexit.unregister(self.close)

    def _make(self) -> Path:
        path = self._path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=self.root))
        fresh = path / "fresh"
        self._lock = os.open(fresh, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        fresh.rename(path / _LOCK)  # visible only once it is held, so no sweep can come in between
        return path

    def _give_up(self) -> None:
        if self._path is not None:
            if os.getpid() == self._owner:
                _remove(self._path)
            self._path = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> SpillDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def sweep(root: Path) -> list[Path]:
    """Remove this user's spill directories below ``root`` whose processes are gone; returns what was removed."""
    removed = []
    for path in root.glob(f"{_PREFIX}*-*"):
        with contextlib.suppress(OSError):
            found = path.lstat()  # a link could lead to what is not ours
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not is_held(path / _LOCK):
                _remove(path)
                removed.append(path)
    return removed


def _remove(path: Path) -> None:
    """Remove a directory, its lock last: should this be interrupted, the next sweep still knows it for abandoned."""
    with contextlib.suppress(OSError):
        for entry in path.iterdir():
            if entry.name != _LOCK:
                entry.unlink()
    for _ in range(_REMOVALS):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
