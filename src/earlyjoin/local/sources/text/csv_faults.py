"""Where a CSV file is broken: from the record that pyarrow complains about to the physical line.

pyarrow counts records; blank lines and line ends inside quotes make lines differ from that. Only after an error, the
file is scanned once more to find the line.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.local.sources.contents import AS_UTF8
from earlyjoin.local.sources.text.csv_records import SCAN_BYTES, Dialect, Records, is_text, lines_of
from earlyjoin.local.sources.text.faults import first_line

_FIELDS = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_VALUE = re.compile(r"In CSV column #(\d+): Row #(\d+): ")
_INVALID = re.compile(r"(?:invalid value|The string) '(.*)'")
_TOO_LONG = "straddling object"


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
            return InputError(
                f"{file}: line {line}, column {column!r}: the text '{value}' is not valid UTF-8; {AS_UTF8}"
            )
        return _unfit(f"{file}: line {line}", column, f"{value!r} is not a valid {types[column]}", given)
    if _TOO_LONG in message:
        long = _long_record(file, dialect)
        where = "" if long is None else f"line {long} begins "
        return InputError(f"{file}: {where}a record of more than {SCAN_BYTES >> 20} MB; is a quote never closed?")
    return InputError(f"{file}: is not a valid CSV file: {first_line(error)}")


def _unfit(where: str, column: str, what: str, given: Mapping[str, pa.DataType]) -> InputError:
    """A value that does not fit its column, with what to do about it."""
    wrong = f"{where}, column {column!r}: {what}"
    if column in given:
        return InputError(f"{wrong}; the type was given in types=", command=f"{wrong}, the type that was given")
    inferred = "the type was inferred from the first rows"
    return InputError(
        f"{wrong}; {inferred}; pass types={{{column!r}: 'string'}} or another type",
        command=f"{wrong}; {inferred}; give another with --types-left or --types-right {column}=string",
    )


def explain_once(
    name: str,
    error: BaseException,
    dialect: Dialect,
    records_before: int,
    types: Mapping[str, pa.DataType],
    given: Mapping[str, pa.DataType],
) -> InputError:
    """The same for what cannot be read again to find the line: a pipe, read in blocks. Its header is record 1."""
    message = str(error)
    if found := _FIELDS.search(message):
        record, _, got = (int(part) for part in found.groups())
        fields = f"{got} field{'s' * (got != 1)}"
        where = f"{name}: record {records_before + record}"
        return InputError(f"{where} has {fields}, the header has {len(dialect.header)}")
    if found := _VALUE.search(message):
        where, column = f"{name}: record {records_before + int(found[2])}", dialect.header[int(found[1])]
        what = message[found.end() :].splitlines()[0]
        if "invalid UTF8" in what:
            return InputError(f"{where}, column {column!r}: the text is not valid UTF-8; {AS_UTF8}")
        if (value := _INVALID.search(what)) and column in types:
            what = f"{_short(value[1])!r} is not a valid {types[column]}"
        return _unfit(where, column, what, given)
    return InputError(f"{name}: is not valid CSV: {first_line(error)}")


def invalid_text(file: str, dialect: Dialect, column: str) -> InputError:
    """The error for a column that pyarrow took for bytes, because some of its text is not valid UTF-8."""
    index = dialect.header.index(column)
    where, value = "", ""
    with lines_of(file) as (text, _):
        for line, fields in Records(text, dialect.delimiter):
            if index < len(fields) and not is_text(fields[index]):
                where, value = f"line {line}, ", f" '{_short(fields[index])}'"
                break
    return InputError(f"{file}: {where}column {column!r}: the text{value} is not valid UTF-8; {AS_UTF8}")


def unclosed_quote(file: str, dialect: Dialect) -> int | None:
    """The line of the last record when its quote is still open at the end of the file, else None."""
    with lines_of(file) as (text, _):
        records = Records(text, dialect.delimiter)
        last, raw = 0, ""
        for line, _ in records:
            last, raw = line, "".join(records.raw)
    try:
        list(csv.reader(io.StringIO(raw, newline=""), delimiter=dialect.delimiter, strict=True))
    except csv.Error as error:
        return last if "end of data" in str(error) else None
    return None


def _short(text: str, most: int = 60) -> str:
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return text if len(text) <= most else text[: most - 3] + "..."


def _record(file: str, number: int, dialect: Dialect) -> tuple[int, list[str]]:
    """The first physical line and the fields of a record; the header is record 1."""
    with lines_of(file, number) as (text, (lines, records)):
        for seen, (line, fields) in enumerate(Records(text, dialect.delimiter, lines), start=records + 1):
            if seen == number:
                return line, fields
    return lines, []


def _long_record(file: str, dialect: Dialect) -> int | None:
    with lines_of(file) as (text, _):
        records = Records(text, dialect.delimiter)
        return next((line for line, _ in records if sum(map(len, records.raw)) >= SCAN_BYTES), None)
