"""The records of a CSV file and the physical lines they stand on, told by Python's own reader.

Used for the header, and after an error: pyarrow parses the data, but says nothing about lines.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.local.sources.contents import AS_UTF8, HEAD_BYTES, no_text

SCAN_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one file is written: its delimiter and the names in its header."""

    delimiter: str
    header: tuple[str, ...]
    bare: bool = False
    """Nothing follows the header, not even a line end; pyarrow refuses to open that."""


def read_header(file: str, delimiter: str) -> Dialect | None:
    """The column names of a file, or None when there is nothing in it."""
    with pa.input_stream(file) as raw:
        if why := no_text(raw.read(HEAD_BYTES)):
            raise InputError(f"{file}: {why}")
    with lines_of(file) as (text, _):
        return header_of(text, file, delimiter)


def header_of(text: Iterable[str], name: str, delimiter: str) -> Dialect | None:
    """The column names at the beginning of a text, or None when there is nothing in it."""
    records = Records(text, delimiter)
    try:
        header = next((fields for _, fields in records), None)
    except csv.Error as error:
        raise InputError(f"{name}: the header line is broken: {error}") from error
    if header is None:
        return None
    bare = not records.raw[-1].endswith(("\n", "\r"))
    if broken := next((column for column in header if not is_text(column)), None):
        shown = broken.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        raise InputError(f"{name}: the column name '{shown}' in the header is not valid UTF-8; {AS_UTF8}")
    twice = next((column for column, count in Counter(header).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{name}: the header names column {twice!r} twice")
    return Dialect(delimiter, tuple(header), bare)


def is_text(value: str) -> bool:
    """Was it valid UTF-8?"""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


class Records:
    """(first line, fields) of every record; ``raw`` holds the lines of the current one."""

    def __init__(self, text: Iterable[str], delimiter: str, lines_before: int = 0) -> None:
        self.raw: list[str] = []
        self._lines_before = lines_before
        self._reader = csv.reader(self._kept(text), delimiter=delimiter)

    def _kept(self, text: Iterable[str]) -> Iterator[str]:
        for line in text:
            self.raw.append(line)
            yield line

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        while True:
            self.raw.clear()
            line = self._lines_before + self._reader.line_num + 1
            try:
                fields = next(self._reader)
            except StopIteration:
                return
            if fields:  # pyarrow does not count blank lines either
                yield line, fields


@contextmanager
def lines_of(file: str, skip_to_record: int = 0) -> Iterator[tuple[io.TextIOBase, tuple[int, int]]]:
    """The lines of a file, from a little before the record on, and how many lines and records came before.

    While no quote has been seen, records are lines, and whole blocks can be skipped by counting line ends.
    """
    limit = csv.field_size_limit(sys.maxsize)
    try:
        with pa.input_stream(file) as raw, io.BufferedReader(raw, SCAN_BYTES) as binary:
            lines = records = 0
            block = b""
            while skip_to_record and (block := binary.read(SCAN_BYTES)):
                block += binary.readline()
                plain = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                count = plain.count(b"\n")
                blank = sum(map(len, re.findall(rb"(?:^|(?<=\n))\n+", plain)))
                last = not plain.endswith(b"\n")
                if last or b'"' in block or records + count - blank >= skip_to_record:
                    break
                lines, records = lines + count, records + count - blank
            rest = io.BufferedReader(_Rest(block, binary), SCAN_BYTES)  # type: ignore[type-var]
            with io.TextIOWrapper(rest, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
                yield text, (lines, records)
    finally:
        csv.field_size_limit(limit)


class _Rest(io.RawIOBase):
    """A block that was read ahead, and then what follows it."""

    def __init__(self, block: bytes, binary: io.BufferedReader) -> None:
        self._block = block
        self._binary = binary

    def readable(self) -> bool:
        return True

    def readinto(self, target: bytearray) -> int:  # type: ignore[override]
        if not self._block:
            return self._binary.readinto(target)
        part, self._block = self._block[: len(target)], self._block[len(target) :]
        target[: len(part)] = part
        return len(part)
