"""Files must be what they were: rows of a file given out early and rows of its successor do not make one result.

Size and modification time of every file are remembered before the early phase reads it, and compared before rows of the
bulk go out and once more at the end. Spark's own listing is of no use: a DataFrame keeps the one that it was made with.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote, urlsplit

from earlyjoin.errors import SourceError
from earlyjoin.spark.jobs import Jobs

Stamp = tuple[int, int] | None
"""Size and modification time; None for a file that is not there."""


class Unchanged:
    """Remembers files and notices when one of them has changed."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._seen: dict[str, Stamp] = {}
        self._lock = threading.Lock()

    def remember(self, paths: Iterable[str]) -> None:
        """These are about to be read."""
        with self._lock:
            fresh = [path for path in paths if path not in self._seen]
            self._seen.update(self._stamps(fresh))

    def check(self) -> None:
        """Raise SourceError if a file that was read early is not what it was."""
        with self._lock:
            for path, now in self._stamps(list(self._seen)).items():
                if now != self._seen[path]:
                    what = "was removed" if now is None else "has changed"
                    raise SourceError(
                        f"{_shown(path)!r} {what} since its first rows were joined: rows of both would be mixed; "
                        "read the input again and start a new join"
                    )

    def _stamps(self, paths: list[str]) -> dict[str, Stamp]:
        # Behind Spark Connect files are those of the server, wherever it is.
        here = [] if self._jobs.connect else [path for path in paths if local_path(path) is not None]
        stamps: dict[str, Stamp] = {path: _stat(local_path(path) or "") for path in here}
        elsewhere = [path for path in paths if path not in stamps]
        if elsewhere:
            stamps |= self._jobs.tagged(lambda: _listed(self._jobs.session, elsewhere))
        return stamps


def _stat(path: str) -> Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _listed(session: Any, paths: list[str]) -> dict[str, Stamp]:
    """The same by a new listing of Spark's; the contents are not read."""
    reader = session.read.format("binaryFile").option("ignoreMissingFiles", "true")
    patterns = [_pattern(path) for path in paths]
    try:
        rows = _rows(reader, patterns)
    except Exception as error:
        if not _is_missing(error):
            raise
        rows = [row for pattern in patterns for row in _one(reader, pattern)]
    by_path = {_plain(row["path"]): (int(row["length"]), int(row["time"])) for row in rows}
    return {path: by_path.get(_plain(unquote(path))) for path in paths}


def _one(reader: Any, path: str) -> list[Any]:
    try:
        return _rows(reader, [path])
    except Exception as error:
        if not _is_missing(error):
            raise
        return []


def _rows(reader: Any, paths: list[str]) -> list[Any]:
    time = "unix_micros(modificationTime) AS time"
    found: list[Any] = reader.load(paths).selectExpr("path", "length", time).collect()
    return found


def _is_missing(error: Exception) -> bool:
    return "PATH_NOT_FOUND" in str(error) or "FileNotFound" in str(error)


def local_path(path: str) -> str | None:
    """Where a file of Spark's is on this machine; None when it is elsewhere."""
    parts = urlsplit(path)
    return unquote(parts.path) if parts.scheme == "file" and not parts.netloc else None


def local_files(frame: Any) -> list[str] | None:
    """The files of a DataFrame; None when there are none, or they are not all on this machine."""
    files = [local_path(uri) for uri in frame.inputFiles()]
    here = [file for file in files if file is not None and os.path.exists(file)]
    return here if here and len(here) == len(files) else None


def nbytes_of(file: str) -> int:
    """The size of a file; 0 when it has gone."""
    stamp = _stat(file)
    return stamp[0] if stamp is not None else 0


def _pattern(path: str) -> str:
    """What Spark takes for this file alone: its readers expand patterns, and know no encoded signs."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", unquote(path))


def _plain(path: str) -> str:
    """One spelling of a path without encoded signs: Spark has ``file:/a`` here and ``file:///a`` there."""
    scheme, colon, rest = path.partition(":")
    host, slash, name = rest[2:].partition("/") if rest.startswith("//") else ("", "/", rest.lstrip("/"))
    return f"{scheme}{colon}//{host}{slash}{name.lstrip('/')}"


def _shown(path: str) -> str:
    return local_path(path) or path
