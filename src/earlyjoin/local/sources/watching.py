"""Files as they were when an input was opened: an input that changes is an error that names the file, never a mixture.

*While a file is read*, its size, time of modification and inode are compared at its end, after an error in it, and
once more at the end of the query: some file systems tell late. A file that only grew has changed, too.

*Between pause and resume* a fingerprint decides wherever those numbers or the time of the last change of any kind
differ; the latter cannot be set back. A copy of the same bytes is the same file.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from earlyjoin.errors import EarlyJoinError, SnapshotError, SourceError
from earlyjoin.local.sources.text.faults import opening

_BLOCK_BYTES = 1 << 20
_HASHED_BYTES = 256 << 20
"""So much of an input is hashed for its fingerprint; of more, blocks that are spread evenly."""
_LEAST_BLOCKS = 4


@dataclass(frozen=True, slots=True)
class FileMark:
    """What the file system says of one file."""

    path: str
    size: int
    modified_ns: int
    changed_ns: int
    """Of the content or of anything else about it; nobody can set it back."""
    inode: int
    device: int

    @classmethod
    def of(cls, path: str) -> FileMark | None:
        """The mark of a regular file; None for pipes and the like, which have no size."""
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            return None
        path = os.path.abspath(path)
        return cls(path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)

    def same_content(self, other: FileMark) -> bool:
        """Does nothing speak for other content, as far as one can tell without reading?

        Another file in its place has changed, too; a new inode alone means nothing on some network file systems.
        """
        if self.inode != other.inode and self.changed_ns != other.changed_ns:
            return False
        return (self.size, self.modified_ns) == (other.size, other.modified_ns)

    def untouched(self, other: FileMark) -> bool:
        """Is it certain that nobody has written to it?"""
        return self == other


class WatchedFiles:
    """The files of one input, as they were when it was opened."""

    def __init__(self, files: Sequence[str]) -> None:
        self._marks: dict[str, FileMark] = {}
        for file in files:
            with opening(file, "regular"):
                mark = FileMark.of(file)
            if mark is not None:
                self._marks[file] = mark

    @contextmanager
    def reading(self, file: str) -> Iterator[None]:
        """Around the reading of a file. Where it has changed, that is the error, whatever its reader complained of."""
        self.check(file)
        try:
            yield
        except (EarlyJoinError, pa.ArrowException, OSError) as error:
            if changed := self._changed(file):
                raise changed from error
            raise
        self.check(file)

    def check(self, file: str) -> None:
        """Refuse a file that has changed. One that is gone was read to its end, or will not open."""
        if changed := self._changed(file):
            raise changed

    def check_all(self) -> None:
        """Refuse if any file has changed."""
        for file in self._marks:
            self.check(file)

    def _changed(self, file: str) -> SourceError | None:
        before = self._marks.get(file)
        try:
            now = FileMark.of(file) if before is not None else None
        except OSError:
            return None
        if before is None or (now is not None and before.same_content(now)):
            return None
        return SourceError(
            f"{file}: has changed while it was read ({_difference(before, now)}); "
            "join a copy that nobody writes to, or wait until it is complete"
        )

    def to_values(self) -> list[dict[str, Any]]:
        """Marks and fingerprints, for :func:`compare` in another process. Files that have changed are refused."""
        self.check_all()
        return [
            asdict(mark) | {"fingerprint": fingerprint(mark.path, len(self._marks))} for mark in self._marks.values()
        ]

    def name_of(self, found: os.stat_result) -> str | None:
        """The file among these that the file system knows as ``found``, whatever path led there."""
        same = (mark.path for mark in self._marks.values() if (mark.device, mark.inode) == (found.st_dev, found.st_ino))
        return next(same, None)

    @property
    def paths(self) -> list[str]:
        """The files, by paths that hold in any directory."""
        return [mark.path for mark in self._marks.values()]


def fingerprint(path: str, files: int = 1) -> str:
    """A hash of the content of one of so many files of an input: all of it, or evenly spread blocks with both ends."""
    size = os.path.getsize(path)
    blocks = max(_LEAST_BLOCKS, _HASHED_BYTES // files // _BLOCK_BYTES)
    digest = hashlib.blake2b(str(size).encode(), digest_size=16)
    with open(path, "rb", buffering=0) as file:
        if size <= blocks * _BLOCK_BYTES:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
        else:
            last = size - _BLOCK_BYTES
            for number in range(blocks):
                digest.update(os.pread(file.fileno(), _BLOCK_BYTES, last * number // (blocks - 1)))
    return digest.hexdigest()


def compare(saved: Sequence[Mapping[str, Any]], name: str) -> None:
    """Refuse an input of a paused query whose files are not what they were."""
    for values in saved:
        before, path = _mark(values), values["path"]
        try:
            now = FileMark.of(path)
            same = now is not None and (
                before.untouched(now)
                or (before.size == now.size and fingerprint(path, len(saved)) == values["fingerprint"])
            )
        except FileNotFoundError:
            raise SnapshotError(f"{path}: is gone; input {name!r} had it when the query was paused") from None
        except OSError as error:
            raise SnapshotError(f"{path}: cannot be read: {error.strerror}") from error
        if not same:
            raise _not_the_same(path, before, now)


def compare_moved(saved: Sequence[Mapping[str, Any]], found: WatchedFiles, name: str) -> None:
    """Refuse files that were given in place of those of a paused query, unless they have the same content."""
    compare_lists(saved, found, name, by=os.path.basename)
    for values, path in zip(saved, found.paths, strict=True):
        if fingerprint(path, len(saved)) != values["fingerprint"]:
            raise _not_the_same(path, _mark(values), FileMark.of(path))


def compare_lists(saved: Sequence[Mapping[str, Any]], found: WatchedFiles, name: str, by: Any = str) -> None:
    """Refuse an input with more files, or fewer, than when the query was paused."""
    before, now = [by(values["path"]) for values in saved], [by(path) for path in found.paths]
    if len(before) == len(now) == 1 or before == now:
        return
    added = next((path for path in now if path not in before), None)
    gone = next((path for path in before if path not in now), None)
    what = f"{added} is new" if added is not None else f"{gone} is gone" if gone is not None else "their order differs"
    raise SnapshotError(
        f"input {name!r} has other files than when the query was paused: {what}; "
        "put them back as they were, or start the join again"
    )


def _mark(values: Mapping[str, Any]) -> FileMark:
    return FileMark(**{field: values[field] for field in FileMark.__slots__})


def _not_the_same(path: str, before: FileMark, now: FileMark | None) -> SnapshotError:
    return SnapshotError(
        f"{path}: has changed since the query was paused ({_difference(before, now)}); "
        "put it back as it was, or start the join again"
    )


def _difference(before: FileMark, now: FileMark | None) -> str:
    if now is None:
        return "it is no longer a file"
    if now.size != before.size:
        return f"{now.size:,} bytes instead of {before.size:,}"
    return "it has the same size and other content" if now.inode == before.inode else "another file has taken its place"
