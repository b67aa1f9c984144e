"""Rows that come through a pipe: CSV, JSON lines and Arrow IPC, parsed as they come.

The types of CSV and JSON lines are told from the first block, as those of files are, so that the same rows mean the
same through a pipe. A slow pipe has to send that much before its first row is joined, unless it is CSV and all types
are given; Arrow IPC brings its types along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.local.sources.contents import HEAD_BYTES, kind_of, no_text
from earlyjoin.local.sources.iterators import IteratorSource
from earlyjoin.local.sources.paths import known_formats
from earlyjoin.local.sources.piping.piped_csv import open_csv
from earlyjoin.local.sources.piping.pipes import FullReads, Incoming, Pipe
from earlyjoin.local.sources.schemas import nulls_as_text, parse_types, plain
from earlyjoin.local.sources.text import jsonl_faults
from earlyjoin.local.sources.text.csv_options import BLOCK_BYTES
from earlyjoin.local.sources.text.faults import opening, reading
from earlyjoin.local.sources.text.jsonl_parser import LineParser

_SIGNS_BYTES = 8
FORMATS = ("csv", "json", "arrow")


class PipedSource(IteratorSource):
    """Rows of a pipe. They come once: the query cannot be paused, and no other input can have them, too."""

    def __init__(
        self,
        path: str,
        *,
        name: str,
        format: str | None = None,
        columns: Sequence[str] | None = None,
        delimiter: str | None = None,
        types: Mapping[str, object] | None = None,
    ) -> None:
        given = parse_types(types)
        pipe = Pipe(path, name)
        try:
            with opening(name, "compressed"):
                incoming = Incoming(pipe)
                kind = _format(name, format, incoming)
            if kind == "csv":
                schema, batches = open_csv(name, incoming, delimiter or ",", given)
            elif kind == "json":
                schema, batches = _json(name, incoming, given)
            else:
                schema, batches = _arrow(name, incoming)
        except BaseException:
            pipe.close()
            raise
        if batches is None:  # no rows: the columns take the types of what they are joined with
            self.untyped, self.rows_hint = True, 0
        super().__init__(_closing(pipe, batches or ()), name=name, schema=schema, columns=columns, origin=pipe)


def _closing(pipe: Pipe, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches; then the pipe is free for others, who wait for another writer."""
    try:
        yield from batches
    finally:
        pipe.close()


def _format(name: str, format: str | None, incoming: Incoming) -> str:
    """What was said, or what the first bytes say."""
    head = incoming.peek_while(lambda head: len(head) < _SIGNS_BYTES or (len(head) < HEAD_BYTES and not head.strip()))
    head = head[:HEAD_BYTES]
    kind = kind_of(head)
    if "parquet" in (format, kind):
        raise InputError(
            f"{name}: Parquet is read from its end, which a pipe cannot do; write it to a file, or send CSV, "
            "JSON lines or Arrow IPC"
        )
    if format is not None:
        if format not in FORMATS:
            raise InputError(f"unknown format {format!r}: through a pipe come {', '.join(FORMATS)}")
        return format
    if not head:
        raise InputError(f"{name}: is empty: nothing came through it")
    if kind in ("arrow file", "arrow stream"):
        return "arrow"
    if why := no_text(head):
        raise InputError(f"{name}: {why}; known are {known_formats()}")
    return "json" if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") else "csv"


def _json(name: str, incoming: Incoming, given: Mapping[str, pa.DataType]) -> Any:
    first = LineParser(pa.schema(list(given.items())), "infer")
    blocks = _lines(incoming)
    block = next((block for block in blocks if block.strip()), None)
    if block is None:
        raise InputError(f"{name}: is empty: no line to tell the columns by")
    table = _parsed(name, first, 0, block, given)
    schema = nulls_as_text(plain(table.schema))
    return schema, _json_batches(name, LineParser(schema, "error"), block, blocks, given)


def _json_batches(
    name: str, parser: LineParser, first: bytes, rest: Iterator[bytes], given: Mapping[str, pa.DataType]
) -> Iterator[pa.RecordBatch]:
    lines, block = 0, first
    while True:
        if block.strip():
            yield from _parsed(name, parser, lines, block, given).to_batches()
        lines += block.count(b"\n")
        following = next(rest, None)
        if following is None:
            return
        block = following


def _parsed(name: str, parser: LineParser, lines: int, block: bytes, given: Mapping[str, pa.DataType]) -> pa.Table:
    try:
        return parser.parse(block)
    except pa.ArrowException as error:
        raise jsonl_faults.explain(name, lines, block, error, parser, given) from error


def _lines(incoming: Incoming) -> Iterator[bytes]:
    """Blocks of whole lines: the first as large as those of files, the others as they come."""
    incoming.peek(BLOCK_BYTES)
    rest = b""
    while data := incoming.read(BLOCK_BYTES):
        whole, end, begun = data.rpartition(b"\n")
        if end:
            yield rest + whole + end
            rest = begun
        else:
            rest += data
    if rest:
        yield rest


def _arrow(name: str, incoming: Incoming) -> Any:
    if kind_of(incoming.peek(8)) == "arrow file":
        incoming.read(8)  # behind its first bytes a file is a stream
    elif kind_of(incoming.peek(8)) != "arrow stream":
        # opening anything else as a stream would take its first bytes for a length, and allocate that
        raise InputError(f"{name}: is not valid Arrow IPC: it does not begin like it")
    with opening(name, "Arrow IPC"):
        reader = pa.ipc.open_stream(pa.PythonFile(FullReads(incoming), mode="r"))
    return reader.schema, _arrow_batches(name, reader)


def _arrow_batches(name: str, reader: Any) -> Iterator[pa.RecordBatch]:
    with reading(name, "Arrow IPC"):
        yield from reader
