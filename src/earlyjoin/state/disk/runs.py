"""Spill runs: rows on disk in pages that can be read one by one, each with a checksum.

The first block of a file is the schema, every other one a page, as Arrow's IPC format has them; where they lie is known
in memory alone. A page is one write and one read, however many columns it has: Arrow's own files take one a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa

from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.checked_files import BlockReader, BlockWriter, link_file
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.rows.dictionaries import decoded, encoded, plain_type
from earlyjoin.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Run:
    """Rows on disk, in pages (record batches) that can be read one by one. Sealed: nobody writes to it any more."""

    path: Path
    rows: int
    starts: tuple[int, ...]
    """Number of the first row of each page."""
    ends: tuple[int, ...]
    """Where in the file the schema ends, and each page."""
    sums: tuple[int, ...]
    """Their checksums."""

    @property
    def pages(self) -> int:
        """Number of pages."""
        return len(self.starts)

    @property
    def nbytes(self) -> int:
        """Size of the file."""
        return self.ends[-1]

    def read(self, counters: Counters) -> RunReader:
        """Open it for reading pages."""
        return RunReader(self, counters)

    def delete(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)

    @property
    def id(self) -> str:
        """Says what the run holds: runs of the same rows in the same pages have the same, in every process."""
        return blake2b(repr((self.ends, self.sums)).encode(), digest_size=16).hexdigest()

    def save(self, snapshot: Snapshot) -> dict[str, Any]:
        """Put it into a snapshot; returns the plain values that ``load`` needs."""
        snapshot.blocks[self.id] = self.path
        places = {"starts": list(self.starts), "ends": list(self.ends), "sums": list(self.sums)}
        return {"block": self.id, "rows": self.rows} | places

    @classmethod
    def load(cls, snapshot: Snapshot, values: dict[str, Any], directory: SpillDirectory) -> Run:
        """Take it out of a snapshot, which can be restored again: its file gets another name in the directory."""
        path = directory.new_path(".pages")
        link_file(snapshot.blocks[values["block"]], path)
        return cls(path, values["rows"], *(tuple(values[name]) for name in ("starts", "ends", "sums")))


class PageFormat:
    """How rows of a schema are written as blocks: a block is a page, without its schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._stored = _stored_schema(schema)
        self._streams = _has_dictionaries(self._stored)

    def block(self, page: pa.RecordBatch) -> pa.Buffer:
        """The bytes of a page."""
        return _serialized(_plain(page, self._stored), stream=self._streams)

    def page(self, block: pa.Buffer) -> pa.RecordBatch:
        """The page that a block holds."""
        return _original(_deserialized(block, self._stored, stream=self._streams), self._schema)


class RunWriter:
    """Writes one run, page by page."""

    def __init__(self, path: Path, schema: pa.Schema, counters: Counters) -> None:
        self._path = path
        self._counters = counters
        self._rows = 0
        self._starts: list[int] = []
        self._format = PageFormat(schema)
        self._blocks = BlockWriter(path)
        self._blocks.write(schema.remove_metadata().serialize())

    def write(self, page: pa.RecordBatch) -> None:
        """Add one page."""
        before = self._blocks.size
        self._blocks.write(self._format.block(page))
        self._starts.append(self._rows)
        self._rows += page.num_rows
        self._counters.pages_written += 1
        self._counters.tuples_written += page.num_rows
        self._counters.bytes_written += self._blocks.size - before

    def close(self) -> Run:
        """Finish the file."""
        self._blocks.close()
        return Run(self._path, self._rows, tuple(self._starts), tuple(self._blocks.ends), tuple(self._blocks.sums))


class RunReader:
    """Reads the pages of one run in any order."""

    def __init__(self, run: Run, counters: Counters) -> None:
        self.run = run
        self._counters = counters
        self._blocks = BlockReader(run.path, run.ends, run.sums)
        self._format = PageFormat(pa.ipc.read_schema(self._blocks.read(0)))

    def page(self, number: int) -> pa.RecordBatch:
        """Read one page."""
        block = self._blocks.read(number + 1)
        page = self._format.page(block)
        self._counters.pages_read += 1
        self._counters.tuples_read += page.num_rows
        self._counters.bytes_read += block.size
        return page

    def close(self) -> None:
        """Close the file."""
        self._blocks.close()


def _stored_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of the pages: they hold values instead of dictionaries."""
    return pa.schema([field.with_type(plain_type(field.type)) for field in schema])


def _plain(page: pa.RecordBatch, stored: pa.Schema) -> pa.RecordBatch:
    columns = [decoded(column) if pa.types.is_dictionary(column.type) else column for column in page.columns]
    return pa.RecordBatch.from_arrays(columns, schema=stored) if columns else page


def _original(page: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        encoded(column, field.type) if pa.types.is_dictionary(field.type) else column
        for column, field in zip(page.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema) if columns else page


def _serialized(page: pa.RecordBatch, *, stream: bool) -> pa.Buffer:
    """A single message, or a whole stream where dictionaries inside other values need messages of their own."""
    if not stream:
        return page.serialize()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, page.schema) as writer:
        writer.write_batch(page)
    return sink.getvalue()


def _deserialized(block: pa.Buffer, schema: pa.Schema, *, stream: bool) -> pa.RecordBatch:
    if not stream:
        return pa.ipc.read_record_batch(block, schema)
    with pa.ipc.open_stream(block) as reader:
        return reader.read_next_batch()


def _has_dictionaries(schema: pa.Schema) -> bool:
    return any(_holds_dictionary(field.type) for field in schema)


def _holds_dictionary(type_: pa.DataType) -> bool:
    if isinstance(type_, pa.BaseExtensionType):
        return _holds_dictionary(type_.storage_type)
    if pa.types.is_dictionary(type_):
        return True
    return any(_holds_dictionary(type_.field(number).type) for number in range(type_.num_fields))
