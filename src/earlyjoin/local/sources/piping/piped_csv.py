"""CSV that comes through a pipe: parsed record by record as it comes, in blocks of whatever is there."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.kernels.csv_records import whole_records
from earlyjoin.local.sources.contents import AS_UTF8, HEAD_BYTES, no_text
from earlyjoin.local.sources.piping.pipes import Incoming
from earlyjoin.local.sources.schemas import nulls_as_text, plain, unknown_column
from earlyjoin.local.sources.text.csv_faults import explain_once
from earlyjoin.local.sources.text.csv_options import BLOCK_BYTES, checked_delimiter, converting, parsing
from earlyjoin.local.sources.text.csv_records import Dialect, header_of

_MARK = b"\xef\xbb\xbf"


def open_csv(
    name: str, incoming: Incoming, delimiter: str, given: Mapping[str, pa.DataType]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch] | None]:
    """The columns and the rows to come; None instead of rows when it is known that there are none."""
    checked_delimiter(delimiter, name)
    parser = _RecordParser(name, delimiter, given)
    blocks = _Records(name, incoming, delimiter)
    parser.header = blocks.header()
    for column in given:
        if column not in parser.header:
            raise InputError(unknown_column(column, parser.header, f"{name}: types"))
    if len(given) < len(parser.header):
        incoming.peek(BLOCK_BYTES)  # as much as the types of a file are told from
    first = blocks.next()
    if first is None:
        return pa.schema([(column, given.get(column, pa.null())) for column in parser.header]), None
    return parser.begin(first), parser.rows(first, blocks)


class _Records:
    """Blocks of whole records, as they come."""

    def __init__(self, name: str, incoming: Incoming, delimiter: str) -> None:
        self._name = name
        self._incoming = incoming
        self._delimiter = delimiter
        self._rest = b""

    def header(self) -> tuple[str, ...]:
        """The first record, taken away."""
        head = self._incoming.peek_while(lambda head: not self._header_bytes(head) and len(head) < BLOCK_BYTES)
        if why := no_text(head[:HEAD_BYTES]):
            raise InputError(f"{self._name}: {why}")
        taken = self._header_bytes(head) or len(head)
        text = io.StringIO(head[:taken].decode("utf-8-sig", "surrogateescape"), newline="")
        dialect = header_of(text, self._name, self._delimiter)
        if dialect is None:
            raise InputError(f"{self._name}: is empty: CSV needs at least a header line")
        self._incoming.read(taken)
        return dialect.header

    def _header_bytes(self, head: bytes) -> int:
        """Bytes up to the end of the first record, 0 when it is not there yet."""
        start = len(_MARK) if head.startswith(_MARK) else 0
        end, records, _ = self._scan(head[start:], most=1)
        return start + end if records else 0

    def next(self) -> bytes | None:
        """The next block with records, None at the end."""
        while data := self._incoming.read(BLOCK_BYTES):
            self._rest += data
            end, records, _ = self._scan(self._rest)
            if records:
                block, self._rest = self._rest[:end], self._rest[end:]
                return block
            if len(self._rest) > BLOCK_BYTES:
                raise InputError(
                    f"{self._name}: a record has more than {BLOCK_BYTES >> 20} MB; is a quote never closed?"
                )
        block, self._rest = self._rest, b""
        if self._scan(block)[2]:
            raise InputError(f"{self._name}: the last record opens a quote that is never closed")
        return block if block.strip(b"\r\n") else None

    def _scan(self, data: bytes, most: int = sys.maxsize) -> tuple[int, int, bool]:
        end, records, quoted = whole_records(np.frombuffer(data, np.uint8), ord(self._delimiter), most)
        return int(end), int(records), bool(quoted)


class _RecordParser:
    """Blocks of records to batches; the types of the first block are imposed on the others."""

    def __init__(self, name: str, delimiter: str, given: Mapping[str, pa.DataType]) -> None:
        self._name = name
        self._delimiter = delimiter
        self._given = given
        self._types = dict(given)
        self._before = 1  # records, of which the header is the first
        self.header: Sequence[str] = ()

    def begin(self, block: bytes) -> pa.Schema:
        """The columns, from the first block."""
        schema = plain(self._parsed(block).schema)
        for field in schema:
            if pa.types.is_binary(field.type) and field.name not in self._given:
                raise InputError(f"{self._name}: column {field.name!r}: its text is not valid UTF-8; {AS_UTF8}")
        schema = nulls_as_text(schema)
        self._types = {field.name: field.type for field in schema}
        return schema

    def rows(self, first: bytes, blocks: _Records) -> Iterator[pa.RecordBatch]:
        """The rows of the first block and of all that follow."""
        block: bytes | None = first
        while block is not None:
            table = self._parsed(block)
            yield from table.to_batches()
            self._before += table.num_rows
            block = blocks.next()

    def _parsed(self, block: bytes) -> pa.Table:
        import pyarrow.csv as pacsv

        try:
            return pacsv.read_csv(
                pa.BufferReader(block),
                read_options=pacsv.ReadOptions(
                    use_threads=False, block_size=len(block) + 1, column_names=list(self.header)
                ),
                **parsing(self._delimiter),
                **converting(self._types),
            )
        except pa.ArrowInvalid as error:
            dialect = Dialect(self._delimiter, tuple(self.header))
            raise explain_once(self._name, error, dialect, self._before, self._types, self._given) from error
