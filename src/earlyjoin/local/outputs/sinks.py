"""Where results go: files that appear under their name only when they are complete.

Rows are written to a hidden file beside the target. ``commit`` moves it to its name; ``keep_partial`` moves it to
``NAME.partial.EXT`` after an interruption, a valid file that does not look complete; ``abort`` removes it. A file that
has that name already stays, unless the target may be overwritten: then the name is ``NAME.partial-2.EXT``, and so on.
What a killed process left is removed by the next one that writes into the same directory.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pyarrow as pa

from earlyjoin.errors import InputError, SinkError
from earlyjoin.local.outputs.targets import check_target, partial_path
from earlyjoin.local.outputs.writers import Writer, open_writer
from earlyjoin.local.sources.base import Source
from earlyjoin.local.sources.text.faults import reason
from earlyjoin.state.disk.owned_files import claim, remove_abandoned

_HIDDEN = re.compile(r"\.earlyjoin-\d+-[0-9a-f]{8}\.part")


class Sink:
    """A file that is written under a hidden name and gets its own when it is complete."""

    def __init__(self, target: Path, format: str, schema: pa.Schema, *, overwrite: bool = False) -> None:
        self.target = target
        self._overwrite = overwrite
        sweep(target.parent)
        self._hidden, self._lock = claim(self._hidden_path)
        self._open = True
        self._stream: pa.NativeFile = None
        self._writer: Writer | None = None
        try:
            self._stream = pa.OSFile(str(self._hidden), "wb")
            self._writer = open_writer(format, self._stream, schema)
        except BaseException:
            self.abort()
            raise

    def _hidden_path(self) -> Path:
        return self.target.with_name(f".earlyjoin-{os.getpid()}-{uuid.uuid4().hex[:8]}.part")

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch, or raise SinkError."""
        assert self._writer is not None
        try:
            self._writer.write(batch)
        except (OSError, pa.ArrowException) as error:
            raise SinkError(f"cannot write {str(self.target)!r}: {reason(error)}") from error

    def commit(self) -> Path:
        """Finish the file under its name."""
        return self._finish(self.target)

    def keep_partial(self) -> Path:
        """Finish the file with what there is, under a name that says so; returns it."""
        path = partial_path(self.target)
        if self._overwrite and path.is_file():
            return self._finish(path)
        try:
            path = _taken(self.target)
        except OSError as error:
            self.abort()
            raise SinkError(f"cannot finish {str(path)!r}: {reason(error)}") from error
        try:
            return self._finish(path)
        except SinkError:
            path.unlink(missing_ok=True)
            raise

    def abort(self) -> None:
        """Leave nothing behind. Nothing happens after ``commit`` or ``keep_partial``."""
        if self._open:
            self._open = False
            # The file is going away: what it failed to write is of no interest.
            with contextlib.suppress(OSError, pa.ArrowException):
                if self._writer is not None:
                    self._writer.abandon()
                elif self._stream is not None:
                    self._stream.close()
            self._hidden.unlink(missing_ok=True)
            self._give_up()

    def _close(self) -> None:
        try:
            if self._writer is not None:
                self._writer.close()
        finally:
            if self._stream is not None:
                self._stream.close()

    def _finish(self, path: Path) -> Path:
        try:
            self._close()
            self._hidden.replace(path)
        except (OSError, pa.ArrowException) as error:
            self.abort()
            raise SinkError(f"cannot finish {str(path)!r}: {reason(error)}") from error
        self._open = False
        self._give_up()
        return path

    def _give_up(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def open_sink(
    path: str | os.PathLike[str],
    schema: pa.Schema,
    *,
    overwrite: bool = False,
    format: str | None = None,
    inputs: Sequence[Source] = (),
) -> Sink:
    """A sink for the path; its extension tells the format, unless one is given. It must be none of the ``inputs``."""
    target, format = check_target(path, overwrite=overwrite, format=format, inputs=inputs)
    try:
        return Sink(target, format, schema, overwrite=overwrite)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot write {str(target)!r}: {reason(error)}") from error


def _taken(target: Path) -> Path:
    """A name for partial rows that no file had: an empty file has it now, so that nobody else takes it."""
    for number in count(1):
        path = partial_path(target, number)
        with contextlib.suppress(FileExistsError):
            path.touch(exist_ok=False)
            return path
    raise AssertionError("there is always another number")


def sweep(directory: Path) -> list[Path]:
    """Remove the hidden files in a directory whose processes are gone; returns what was removed."""
    try:
        found = [entry.name for entry in os.scandir(directory) if _HIDDEN.fullmatch(entry.name)]
    except OSError:
        return []  # it cannot be listed, which writing into it does not need
    return [path for name in found if remove_abandoned(path := directory / name)]
