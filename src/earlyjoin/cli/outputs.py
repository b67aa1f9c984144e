"""Where the rows of ``earlyjoin join`` go: a file, standard output, a glance on the terminal, or nowhere.

Each output is written to and then ends once: ``finish``, ``keep_partial`` or ``abort``. The first two say in words what
became of the rows.
"""

from __future__ import annotations

import argparse
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from earlyjoin.cli.tables import print_rows
from earlyjoin.errors import InputError, SinkError
from earlyjoin.local.sinks import csv_schema, open_sink

GLANCE_ROWS = 20


def choose_output(options: argparse.Namespace, schema: pa.Schema) -> Output:
    """The output that the options ask for."""
    if options.output is not None:
        return FileOutput(options.output, schema, overwrite=options.overwrite)
    if options.stdout == "arrow":
        return ArrowStream(schema)
    if options.json:
        return Counted()
    if sys.stdout.isatty() and options.limit is None and options.stdout is None:
        return Glance(schema)
    return CsvLines(schema)


class Output(ABC):
    """A place for rows."""

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
        """Do so."""

    def finish(self) -> str:
        """All rows have come."""
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

    def __init__(self, path: str, schema: pa.Schema, *, overwrite: bool) -> None:
        super().__init__()
        self._sink = open_sink(path, schema, overwrite=overwrite)

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


class CsvLines(Output):
    """CSV with a header on standard output, each batch at once."""

    on_standard_output = True

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__()
        self._schema = csv_schema(schema)
        try:
            self._emit(self._schema.empty_table(), header=True)
        except pa.ArrowException as error:
            raise InputError(f"the result cannot be printed as CSV: {error}; write it with -o FILE.parquet") from error

    @property
    def shows(self) -> bool:
        return sys.stdout.isatty()

    def _write(self, batch: Any) -> None:
        self._emit(pa.Table.from_batches([batch]).cast(self._schema), header=False)

    def keep_partial(self) -> str:
        return f"{_count(self.rows)} printed"

    def _emit(self, table: Any, *, header: bool) -> None:
        import pyarrow.csv as csv

        text = pa.BufferOutputStream()
        csv.write_csv(table, text, csv.WriteOptions(include_header=header))
        try:
            sys.stdout.buffer.write(text.getvalue())
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise  # nobody reads any more, which is no failure
        except OSError as error:
            raise SinkError(f"cannot write to standard output: {error.strerror}") from error


class ArrowStream(Output):
    """An Arrow IPC stream on standard output, each batch at once."""

    on_standard_output = True

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__()
        if sys.stdout.isatty():
            raise InputError("--stdout arrow is for another program: send it through a pipe or into a file")
        self._writer = pa.ipc.new_stream(sys.stdout.buffer, schema)

    def _write(self, batch: Any) -> None:
        self._do(lambda: self._writer.write_batch(batch))

    def finish(self) -> str:
        self._do(self._writer.close)
        return super().finish()

    def keep_partial(self) -> str:
        self._do(self._writer.close)
        return super().keep_partial()

    def _do(self, act: Callable[[], None]) -> None:
        try:
            act()
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise  # nobody reads any more, which is no failure
        except OSError as error:
            raise SinkError(f"cannot write to standard output: {error.strerror}") from error


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
