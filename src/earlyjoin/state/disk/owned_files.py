"""Files that belong to a living process.

A lock says so, which the system drops when the process dies, however it dies. A file whose lock can be had belongs to
nobody. Where a file system has no locks nothing can be told, and so nothing counts as abandoned.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path


def claim(new_path: Callable[[], Path]) -> tuple[Path, int | None]:
    """Create a file under a new path and hold it: the path, and a handle to close when it is no longer ours.

    A sweep may come between creating and locking, and take the file: then another one is made. The handle is None
    where the file system has no locks.
    """
    while True:
        path = new_path()
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)  # a sweep looks at it just now, and removes it
            continue
        except OSError:
            os.close(handle)
            return path, None
        if _still_there(path, handle):
            return path, handle
        os.close(handle)


def remove_abandoned(path: Path) -> bool:
    """Remove a file of this user that no process holds; False when it stays."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                return False
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _still_there(path, handle):
                path.unlink()
                return True
        finally:
            os.close(handle)
    return False


def is_held(path: Path) -> bool:
    """Does a process hold this file? Also True when nothing can be told."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _still_there(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(handle))
    except FileNotFoundError:
        return False
