"""JSON lines, read in blocks of whole lines.

Cutting the blocks here, rather than in ``pyarrow.json.open_json``, costs a quarter of the speed and gives what that
cannot: the line of an error, lines of any length, and a look at a single block to find out what broke.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.local.sources.base import BatchSizes, Source
from earlyjoin.local.sources.paths import COMPRESSED
from earlyjoin.local.sources.schemas import conform, nulls_as_text, parse_types, plain, project
from earlyjoin.local.sources.slicing import Cutter
from earlyjoin.local.sources.text.faults import opening, reading
from earlyjoin.local.sources.text.jsonl_faults import explain
from earlyjoin.local.sources.text.jsonl_parser import LineParser
from earlyjoin.local.sources.text.text_sizes import most_of_text
from earlyjoin.local.sources.watching import WatchedFiles

BLOCK_BYTES = 1 << 20
"""Read and parsed at a time; the columns and their types are inferred from the first block."""


class JsonLinesSource(Source):
    """Rows of files that hold one JSON object a line; blank lines are passed over.

    Columns and types are inferred from the first block of the first file with rows and imposed on all the rest:
    a field that is missing is null, one that is new or of another type is an error. ``types`` overrides types and names
    fields that come later. ``start_row`` has to parse what it skips.
    """

    files: WatchedFiles

    def __init__(
        self,
        files: Sequence[str],
        *,
        name: str,
        types: Mapping[str, object] | None = None,
        columns: Sequence[str] | None = None,
        like: pa.Schema | None = None,
    ) -> None:
        """``like`` has the fields that other files of the same input have told: nothing is inferred then."""
        self.name = name
        self._files = list(files)
        self.files = WatchedFiles(files)
        self._given = parse_types(types)
        self.inferred = self._infer() if like is None else like
        self._parser = LineParser(self.inferred, "error")
        self.schema = project(self._parser.schema, columns, name)
        if not any(file.lower().endswith(COMPRESSED) for file in self._files):
            self.bytes_hint = sum(os.path.getsize(file) for file in self._files)

    def most(self) -> tuple[int, int] | None:
        """Told from the lengths of the files and of their first lines."""
        return most_of_text(self._files, self.schema)

    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows from ``start_row`` on."""
        cutter = Cutter(size, start_row)
        for file in self._files:
            lines = 0
            with self.files.reading(file), reading(file, "JSON"):
                for block in _blocks(file):
                    batches = self._parsed(file, lines, block).to_batches() if block.strip() else []
                    lines += block.count(b"\n")
                    for batch in batches:
                        yield from cutter.cut(conform(batch.select(self.schema.names), self.schema, file))

    def _infer(self) -> pa.Schema:
        parser = LineParser(pa.schema(list(self._given.items())), "infer")
        for file in self._files:
            lines = 0
            with opening(file, "JSON"):
                for block in _blocks(file):
                    if block.strip():
                        try:
                            return nulls_as_text(plain(parser.parse(block).schema))
                        except pa.ArrowException as error:
                            raise explain(file, lines, block, error, parser, self._given) from error
                    lines += block.count(b"\n")
        raise InputError(f"{self.name}: is empty: no line to tell the columns by")

    def _parsed(self, file: str, lines_before: int, block: bytes) -> pa.Table:
        try:
            return self._parser.parse(block)
        except pa.ArrowException as error:
            raise explain(file, lines_before, block, error, self._parser, self._given) from error


def _blocks(file: str) -> Iterator[bytes]:
    """A file in blocks that end at a line end."""
    with pa.input_stream(file) as raw:
        binary: Any = io.BufferedReader(raw, BLOCK_BYTES)
        while block := binary.read(BLOCK_BYTES):
            yield block + binary.readline()
