"""Standard input, named pipes and process substitution: bytes that come once, from front to end, when they like.

::

    descriptor ──▶ Pipe ──▶ (decompression) ──▶ Incoming: read ahead for the format and the types ──▶ parser

Nothing can be asked for twice: the format is told by the first bytes, and what was looked at is parsed afterwards.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import pyarrow as pa

from earlyjoin.errors import InputError, SourceError
from earlyjoin.local.sources.contents import COMPRESSIONS, kind_of
from earlyjoin.local.sources.paths import format_of

STANDARD_INPUT = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_READ_BYTES = 1 << 16
_SIGNS_BYTES = 8


def is_pipe(path: str) -> bool:
    """Can it be read only once, from front to end? A regular file behind standard input cannot, if it has a name."""
    try:
        found = os.stat(path)
    except OSError:
        return path in STANDARD_INPUT  # it is closed, which is told when it is opened
    if path in STANDARD_INPUT and stat.S_ISREG(found.st_mode):
        return file_behind(path) is None
    return any(kind(found.st_mode) for kind in (stat.S_ISFIFO, stat.S_ISSOCK, stat.S_ISCHR))


def file_behind(path: str) -> str | None:
    """The file that standard input comes from, if its name tells the format and it is read from its beginning."""
    if path not in STANDARD_INPUT:
        return None
    with contextlib.suppress(OSError):
        real = os.path.realpath(path)
        whole = os.path.samestat(os.stat(real), os.fstat(0)) and os.lseek(0, 0, os.SEEK_CUR) == 0
        if whole and os.path.isfile(real) and format_of(real) is not None:
            return real
    return None


class Pipe(io.RawIOBase):
    """A descriptor that gives what is there. No two of them read from the same pipe at the same time."""

    _open: ClassVar[weakref.WeakValueDictionary[tuple[int, int], Pipe]] = weakref.WeakValueDictionary()

    def __init__(self, path: str, name: str) -> None:
        self._name = name
        self._descriptor: int | None = None  # what was not opened is closed too, when it is collected
        if path in STANDARD_INPUT and sys.stdin is None:
            raise InputError(f"{name}: is closed; send something into it, or name a file")
        try:
            found = os.stat(path)
            self._identity = found.st_dev, found.st_ino
            if self._identity in self._open:
                raise InputError(
                    f"{name}: is read as another input already, and its rows come only once; "
                    "write them to a file, and name that twice"
                )
            # A socket behind standard input cannot be opened by its path.
            self._descriptor = os.dup(0) if path in STANDARD_INPUT else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(f"{name}: cannot be opened: {error.strerror}") from error
        self._open[self._identity] = self

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        data = self.read(len(target))
        target[: len(data)] = data
        return len(data)

    def read(self, most: int = -1) -> bytes:
        """What is there, up to so many bytes; waits when there is nothing, and gives nothing at the end."""
        assert self._descriptor is not None
        try:
            return os.read(self._descriptor, most if most >= 0 else _READ_BYTES)
        except OSError as error:
            raise SourceError(f"{self._name}: could not be read on: {error.strerror}") from error

    def close(self) -> None:
        if not self.closed:
            super().close()
            if self._descriptor is not None:
                self._open.pop(self._identity, None)
                os.close(self._descriptor)
                self._descriptor = None


class Incoming:
    """The content of a pipe for a parser, decompressed, with what was read ahead."""

    def __init__(self, pipe: Pipe) -> None:
        self.closed = False
        self._raw: Any = pipe
        self._ahead = b""
        self._ended = False
        head = self.peek(_SIGNS_BYTES)
        compression = kind_of(head)
        if compression in COMPRESSIONS:
            raw, self._ahead = _Before(self._ahead, pipe), b""
            self._raw, self._ended = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), compression), False

    def peek(self, most: int) -> bytes:
        """The first bytes that are still to come: so many, or all."""
        while len(self._ahead) < most and self._fetch():
            pass
        return self._ahead[:most]

    def peek_while(self, more: Callable[[bytes], bool]) -> bytes:
        """All that has come, after waiting for as long as it is too little and there is more to come."""
        while more(self._ahead) and self._fetch():
            pass
        return self._ahead

    def _fetch(self) -> bool:
        data = b"" if self._ended else self._raw.read(_READ_BYTES)
        self._ended = not data
        self._ahead += data
        return bool(data)

    def read(self, most: int) -> bytes:
        """What is there, up to so many bytes; waits when there is nothing, and gives nothing at the end."""
        if not self._ahead:
            self._fetch()
        data, self._ahead = self._ahead[:most], self._ahead[most:]
        return data

    def close(self) -> None:
        """Nothing more is wanted."""
        self.closed = True
        self._raw.close()


class FullReads(io.RawIOBase):
    """The same content for a parser that takes fewer bytes than it asked for as the end."""

    def __init__(self, incoming: Incoming) -> None:
        self._incoming = incoming

    def readable(self) -> bool:
        return True

    def read(self, most: int = -1) -> bytes:
        parts: list[bytes] = []
        wanted = most if most >= 0 else sys.maxsize
        while wanted and (part := self._incoming.read(wanted)):
            parts.append(part)
            wanted -= len(part)
        return b"".join(parts)


class _Before:
    """Bytes that were read ahead, then the pipe."""

    closed = False

    def __init__(self, head: bytes, pipe: Pipe) -> None:
        self._head = head
        self._pipe = pipe

    def read(self, most: int) -> bytes:
        if self._head:
            data, self._head = self._head[:most], self._head[most:]
            return data
        return self._pipe.read(most)

    def close(self) -> None:
        self._pipe.close()
