"""Rows on their way from tasks to this process, as files where both see the same directory.

Spark hands over a partition in one piece, which its Java process holds several times: iterating over one large
partition, as a hot key makes it, would end that process and every session in it. So a task sends its first rows as
messages, which is all there is of a small result, and puts the others into files of bounded size, of which it sends
the names. Where a task cannot see the directory, on another machine, all rows are sent, and
``spark.driver.maxResultSize`` is the bound.

A task that fails is run again and writes other files: what counts is which names arrive. Nobody removes a file but
whoever reads it, and the directory goes in every ending.
"""

from __future__ import annotations

import contextlib
import shutil
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from earlyjoin.state.disk.checked_files import damaged
from earlyjoin.state.disk.spill import SpillDirectory

INLINE_NBYTES = 2**20
"""What a task sends as messages before it writes files."""
FILE_NBYTES = 8 * 2**20
SENT = "message binary, file string, checksum long"
"""What tasks give, as Spark writes schemas: a message, or the name of a file of batches."""
_REMOVE_S, _LOOK_S = 2.0, 0.02


def packing(
    token: str | None = None,
    inline_nbytes: int = INLINE_NBYTES,
    file_nbytes: int = FILE_NBYTES,
    most: int | None = None,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does with its batches. Files are for tasks that find the ``token``, and go beside it.

    A task ends when it has sent so many rows as are wanted at ``most``, whatever it could still compute.
    """

    # A function inside a function travels as code: executors need Arrow, and nothing of this package.
    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import uuid
        import zlib

        import pyarrow

        def is_shared() -> bool:
            return token is not None and os.path.exists(token) and os.stat(token).st_uid == os.geteuid()

        def packed(waiting: list[pa.RecordBatch]) -> Any:
            message = pyarrow.BufferOutputStream()
            with pyarrow.ipc.new_stream(message, waiting[0].schema) as writer:
                for batch in waiting:
                    writer.write_batch(batch)
            return message.getvalue()

        def row(message: bytes | None, name: str | None, checksum: int | None) -> pa.RecordBatch:
            columns = [
                pyarrow.array([message], pyarrow.binary()),
                pyarrow.array([name], pyarrow.string()),
                pyarrow.array([checksum], pyarrow.int64()),
            ]
            return pyarrow.RecordBatch.from_arrays(columns, ["message", "file", "checksum"])

        def written(waiting: list[pa.RecordBatch]) -> pa.RecordBatch:
            name, message = uuid.uuid4().hex, packed(waiting)
            with open(os.path.join(os.path.dirname(str(token)), name), "xb") as file:
                file.write(message)
            return row(None, name, zlib.crc32(message))

        def wanted() -> Iterator[pa.RecordBatch]:
            left = most
            for batch in batches:
                yield batch if left is None else batch.slice(0, left)
                left = None if left is None else left - batch.num_rows
                if left is not None and left <= 0:
                    return

        sent = nbytes = 0
        shared = is_shared()
        waiting: list[pa.RecordBatch] = []
        for batch in wanted():
            if not shared or sent + batch.nbytes <= inline_nbytes:
                sent += batch.nbytes
                yield row(packed([batch]).to_pybytes(), None, None)
                continue
            sent = inline_nbytes  # from here on everything goes into files
            waiting.append(batch)
            nbytes += batch.nbytes
            if nbytes >= file_nbytes:
                yield written(waiting)
                waiting, nbytes = [], 0
        if waiting:
            yield written(waiting)

    return pack


class Spool:
    """The directory into which tasks put rows. A context manager: what is left goes at the end."""

    def __init__(self, inline_nbytes: int = INLINE_NBYTES, file_nbytes: int = FILE_NBYTES) -> None:
        self._spill = SpillDirectory()
        self._directory = self._spill.path
        self._token = self._directory / uuid.uuid4().hex
        self._token.touch(mode=0o600)
        self._sizes = inline_nbytes, file_nbytes

    def sent(self, frame: Any, most: int | None = None) -> Any:
        """The rows of a DataFrame as tasks send them; of each task at ``most`` so many."""
        return frame.mapInArrow(packing(str(self._token), *self._sizes, most), SENT)

    def batches(self, row: Any) -> Iterator[pa.RecordBatch]:
        """What was sent in one row. A file can be read once."""
        message, name, checksum = row
        yield from pa.ipc.open_stream(message if name is None else self._read(self._directory / name, checksum))

    def _read(self, path: Path, checksum: int) -> pa.Buffer:
        try:
            with pa.OSFile(str(path)) as file:
                message = file.read_buffer()
        except OSError as error:
            raise damaged(path, f"it cannot be read ({error})") from error
        path.unlink(missing_ok=True)
        if zlib.crc32(message) != checksum:
            raise damaged(path, "its checksum does not match")
        return message

    def close(self) -> None:
        """Remove the directory. A task that was cancelled may still put a last file there."""
        self._token.unlink(missing_ok=True)
        self._spill.close()
        end = time.monotonic() + _REMOVE_S
        while self._directory.exists() and time.monotonic() < end:
            time.sleep(_LOOK_S)
            shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.close()
