"""Where a CSV file is broken: from the record that pyarrow complains about to the physical line.

pyarrow counts records; blank lines and line ends inside quotes make lines differ from that. Only after an error, the
file is scanned once more to find the line.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.local.sources.faults import first_line

SCAN_BYTES = 1 << 20

_FIELDS = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_VALUE = re.compile(r"In CSV column #(\d+): Row #(\d+): ")
_TOO_LONG = "straddling object"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one file is written: its delimiter and the names in its header."""

    delimiter: str
    header: tuple[str, ...]


def explain(
    file: str,
    error: BaseException,
    dialect: Dialect,
    types: Mapping[str, pa.DataType],
    given: Mapping[str, pa.DataType],
) -> InputError:
    """The error to raise for what pyarrow said about ``file``, read with ``types``, some ``given`` by the caller."""
    message = str(error)
    if found := _FIELDS.search(message):
        record, _, got = (int(part) for part in found.groups())
        line, fields = _record(file, record, dialect)
        text = dialect.delimiter.join(fields)
        names = len(dialect.header)
        return InputError(
            f"{file}: line {line} has {got} field{'s' * (got != 1)}, the header has {names}: {_short(text)}"
        )
    if found := _VALUE.search(message):
        index, record = int(found[1]), int(found[2])
        line, fields = _record(file, record, dialect)
        column = dialect.header[index]
        value = _short(fields[index]) if index < len(fields) else ""
        if "invalid UTF8" in message:
            return InputError(f"{file}: line {line}, column {column!r}: the text {value!r} is not valid UTF-8")
        reason = (
            "the type was given in types="
            if column in given
            else f"the type was inferred from the first rows; pass types={{{column!r}: 'string'}} or another type"
        )
        return InputError(f"{file}: line {line}, column {column!r}: {value!r} is not a valid {types[column]}; {reason}")
    if _TOO_LONG in message:
        long = _long_record(file, dialect)
        where = "" if long is None else f"line {long} begins "
        return InputError(f"{file}: {where}a record of more than {SCAN_BYTES >> 20} MB; is a quote never closed?")
    return InputError(f"{file}: is not a valid CSV file: {first_line(error)}")


def unclosed_quote(file: str, dialect: Dialect) -> int | None:
    """The line of the last record when its quote is still open at the end of the file, else None."""
    with _text(file) as (text, _):
        records = _Records(text, dialect.delimiter)
        last, raw = 0, ""
        for line, _ in records:
            last, raw = line, "".join(records.raw)
    try:
        list(csv.reader(io.StringIO(raw, newline=""), delimiter=dialect.delimiter, strict=True))
    except csv.Error as error:
        return last if "end of data" in str(error) else None
    return None


def _short(text: str, most: int = 60) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= most else text[: most - 3] + "..."


class _Records:
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


def _record(file: str, number: int, dialect: Dialect) -> tuple[int, list[str]]:
    """The first physical line and the fields of a record; the header is record 1."""
    with _text(file, number) as (text, (lines, records)):
        for seen, (line, fields) in enumerate(_Records(text, dialect.delimiter, lines), start=records + 1):
            if seen == number:
                return line, fields
    return lines, []


def _long_record(file: str, dialect: Dialect) -> int | None:
    with _text(file) as (text, _):
        records = _Records(text, dialect.delimiter)
        return next((line for line, _ in records if sum(map(len, records.raw)) >= SCAN_BYTES), None)


@contextmanager
def _text(file: str, skip_to_record: int = 0) -> Iterator[tuple[io.TextIOBase, tuple[int, int]]]:
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
