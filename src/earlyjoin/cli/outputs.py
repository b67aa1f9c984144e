"""Where the rows of ``earlyjoin join`` go: a file, standard output, a glance on the terminal, or nowhere.

Each output is written to and then ends once: ``finish``, ``keep_partial`` or ``abort``. The first two say in words what
became of the rows.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from earlyjoin.cli.speaking import standard_output
from earlyjoin.cli.tables import print_rows
from earlyjoin.errors import InputError
from earlyjoin.local.outputs.sinks import open_sink
from earlyjoin.local.outputs.targets import check_target, refuse_same_file
from earlyjoin.local.outputs.writers import open_writer
from earlyjoin.local.sources import Source

GLANCE_ROWS = 20
_BINARY = ("arrow", "parquet")


def choose_output(options: argparse.Namespace, schema: pa.Schema, inputs: Sequence[Source] = ()) -> Output:
    """The output that the options ask for."""
    if options.output not in (None, "-"):
        return FileOutput(options, schema, inputs)
    if options.json:
        return Counted()
    asked = options.output is not None or options.output_format is not None or options.limit is not None
    if not asked and sys.stdout is not None and sys.stdout.isatty():
        return Glance(schema)
    return StandardOutput(options.output_format or "csv", schema)


def check_output(options: argparse.Namespace, inputs: Sequence[Source] = ()) -> None:
    """Refuse an output that cannot be, before rows are read; called again when the inputs are known."""
    on_standard_output = options.output == "-" or (options.output is None and options.output_format is not None)
    if options.json and on_standard_output:
        raise InputError(
            "--json and rows on standard output exclude each other: leave --json out, or write the rows with -o FILE"
        )
    if options.output in (None, "-"):
        if sys.stdout is not None and not options.json:
            _check_standard_output(inputs)
        return
    # Whether it exists is of interest only if it is none of the inputs.
    overwrite = options.overwrite or not inputs
    check_target(options.output, overwrite=overwrite, format=options.output_format, inputs=inputs)


def _check_standard_output(inputs: Sequence[Source]) -> None:
    try:
        found = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        return  # it is no file
    for source in inputs:
        refuse_same_file(found, "standard output", source)


class Output(ABC):
    """Where the rows of a result go: a file, standard output, or nowhere but a count."""

    on_standard_output = False

    def __init__(self) -> None:
        self.rows = 0

    @property
    def shows(self) -> bool:
        """Will the next rows appear on the terminal?"""
        return False

    def write(self, batch: Any) -> None:
        """Add the rows of a record batch."""
        self._write(batch)
        self.rows += batch.num_rows

    @abstractmethod
    def _write(self, batch: Any) -> None:
        """What ``write`` does with them."""

    def finish(self) -> str:
        """All rows have come: complete the output, and say where it is."""
        return f"{_count(self.rows)} found"

    def keep_partial(self) -> str:
        """The join was interrupted: what came stays valid."""
        return f"{_count(self.rows)} found"

    def abort(self) -> None:  # noqa: B027 (most outputs have nothing to remove)
        """The join failed: leave nothing. Nothing happens after ``finish`` or ``keep_partial``."""


class Counted(Output):
    """Rows that are only counted."""

    def _write(self, batch: Any) -> None:
        pass


class FileOutput(Output):
    """A file that appears under its name when it is complete."""

    def __init__(self, options: argparse.Namespace, schema: pa.Schema, inputs: Sequence[Source]) -> None:
        super().__init__()
        self._sink = open_sink(
            options.output, schema, overwrite=options.overwrite, format=options.output_format, inputs=inputs
        )

    def _write(self, batch: Any) -> None:
        self._sink.write(batch)

    def finish(self) -> str:
        return f"{_count(self.rows)} written to {str(self._sink.commit())!r}"

    def keep_partial(self) -> str:
        if self.rows == 0:
            self._sink.abort()
            return "no row had been found, and nothing was written"
        return f"{_count(self.rows)} found so far are kept in {str(self._sink.keep_partial())!r}"

    def abort(self) -> None:
        self._sink.abort()


class StandardOutput(Output):
    """Rows on standard output in any format, each batch at once."""

    on_standard_output = True

    def __init__(self, format: str, schema: pa.Schema) -> None:
        super().__init__()
        with standard_output():
            if format in _BINARY and sys.stdout.isatty():
                raise InputError(f"{format} is for programs, not for a terminal: use a pipe, or -o FILE")
            self._writer = open_writer(format, pa.PythonFile(_Unclosed(), mode="w"), schema, read_at_once=True)
        self._open = True

    @property
    def shows(self) -> bool:
        return sys.stdout.isatty()

    def _write(self, batch: Any) -> None:
        with standard_output():
            self._writer.write(batch)

    def finish(self) -> str:
        self._close()
        return super().finish()

    def keep_partial(self) -> str:
        self._close()
        return f"{_count(self.rows)} printed"

    def abort(self) -> None:
        if self._open:
            self._open = False
            # What went wrong has its own message; that of a closed output would hide it.
            with contextlib.suppress(OSError, pa.ArrowException):
                self._writer.abandon()

    def _close(self) -> None:
        with standard_output():
            self._writer.close()
        self._open = False


class _Unclosed(io.RawIOBase):
    """Standard output for a writer that would close it."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return sys.stdout.buffer.write(data)


class Glance(Output):
    """The first rows as a table on the terminal as soon as they are there; the rest is counted."""

    on_standard_output = True

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__()
        self._schema = schema
        self._held: list[Any] | None = []

    @property
    def shows(self) -> bool:
        return self._held is not None

    def _write(self, batch: Any) -> None:
        if self._held is not None:
            self._held.append(batch.slice(0, GLANCE_ROWS))
            if sum(held.num_rows for held in self._held) >= GLANCE_ROWS:
                self._show()

    def finish(self) -> str:
        self._show()
        more = "" if self.rows <= GLANCE_ROWS else f", the first {GLANCE_ROWS} shown (all of them: -o FILE)"
        return f"{_count(self.rows)}{more}"

    def keep_partial(self) -> str:
        self._show()
        return super().keep_partial()

    def _show(self) -> None:
        if self._held is not None:
            print_rows(pa.Table.from_batches(self._held, schema=self._schema).slice(0, GLANCE_ROWS))
            self._held = None


def _count(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"
