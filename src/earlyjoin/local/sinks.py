"""Where results go: files that appear under their name only when they are complete.

Rows are written to a hidden file beside the target. ``commit`` moves it to its name; ``keep_partial`` moves it to
``NAME.partial.EXT`` after an interruption, a valid file that does not look complete; ``abort`` removes it.
"""

from __future__ import annotations

import base64
import contextlib
import math
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import pyarrow as pa

from earlyjoin.errors import InputError, SinkError

FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}


class Sink(ABC):
    """A file being written."""

    def __init__(self, target: Path, schema: pa.Schema) -> None:
        self.target = target
        self.schema = schema
        self._hidden = target.with_name(f".{target.name}.{os.getpid()}.part")
        self._open = True
        try:
            self._writer = self._start()
        except BaseException:
            self._hidden.unlink(missing_ok=True)
            raise

    @abstractmethod
    def _start(self) -> Any:
        """Open the hidden file for writing."""

    @abstractmethod
    def _write(self, batch: pa.RecordBatch) -> None:
        """Write one batch."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        try:
            self._write(batch)
        except (OSError, pa.ArrowException) as error:
            raise SinkError(f"cannot write {str(self.target)!r}: {error}") from error

    def commit(self) -> Path:
        """Finish the file under its name."""
        return self._finish(self.target)

    def keep_partial(self) -> Path:
        """Finish the file with what there is, under a name that says so."""
        return self._finish(self.target.with_name(f"{self.target.stem}.partial{self.target.suffix}"))

    def abort(self) -> None:
        """Leave nothing behind. Nothing happens after ``commit`` or ``keep_partial``."""
        if self._open:
            self._open = False
            # The file is going away: what it failed to write is of no interest.
            with contextlib.suppress(OSError, pa.ArrowException):
                self._writer.close()
            self._hidden.unlink(missing_ok=True)

    def _finish(self, path: Path) -> Path:
        try:
            self._writer.close()
            self._hidden.replace(path)
        except (OSError, pa.ArrowException) as error:
            self.abort()
            raise SinkError(f"cannot finish {str(path)!r}: {error}") from error
        self._open = False
        return path


class ParquetSink(Sink):
    """Apache Parquet."""

    def _start(self) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetWriter(self._hidden, self.schema, compression="snappy")

    def _write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)


class CsvSink(Sink):
    """Comma-separated values with a header."""

    def _start(self) -> Any:
        import pyarrow.csv as csv

        return csv.CSVWriter(self._hidden, csv_schema(self.schema))

    def _write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch.cast(csv_schema(self.schema)))


def csv_schema(schema: pa.Schema) -> pa.Schema:
    """The schema as Arrow can write it as CSV: without string views and binary views."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return pa.schema([field.with_type(plain.get(field.type, field.type)) for field in schema])


class ArrowSink(Sink):
    """Arrow IPC file."""

    def _start(self) -> Any:
        return pa.ipc.new_file(str(self._hidden), self.schema)

    def _write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)


class JsonLinesSink(Sink):
    """One JSON object a line; dates, times and decimals as text, bytes in base64, NaN and infinities as null."""

    def _start(self) -> Any:
        return self._hidden.open("w", encoding="utf-8")

    def _write(self, batch: pa.RecordBatch) -> None:
        import json

        rows = ({name: _json_number(value) for name, value in row.items()} for row in batch.to_pylist())
        self._writer.writelines(json.dumps(row, default=_json_text) + "\n" for row in rows)


def _json_number(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json_text(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


_SINKS: dict[str, type[Sink]] = {"parquet": ParquetSink, "csv": CsvSink, "arrow": ArrowSink, "jsonl": JsonLinesSink}


def check_target(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Refuse a target that cannot be written, before any work is done."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise InputError(f"cannot tell the format of {str(target)!r}; end it with one of: {', '.join(FORMATS)}")
    if not target.parent.is_dir():
        raise InputError(f"directory {str(target.parent)!r} does not exist; create it or name another output")
    if target.is_dir():
        raise InputError(f"output {str(target)!r} is a directory; name a file in it")
    if target.exists() and not overwrite:
        raise InputError(f"output {str(target)!r} exists; remove it, or overwrite it with --overwrite (overwrite=True)")
    return target


def open_sink(path: str | os.PathLike[str], schema: pa.Schema, *, overwrite: bool = False) -> Sink:
    """A sink for the path; its extension tells the format."""
    target = check_target(path, overwrite=overwrite)
    try:
        return _SINKS[FORMATS[target.suffix.lower()]](target, schema)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot write {str(target)!r}: {error}") from error
