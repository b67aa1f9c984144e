"""Which line of a block of JSON lines is broken, and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.local.sources.text.faults import first_line
from earlyjoin.local.sources.text.jsonl_parser import LineParser

_OPTIONS = "--types-left or --types-right"


def explain(
    file: str,
    lines_before: int,
    block: bytes,
    error: BaseException,
    parser: LineParser,
    given: Mapping[str, pa.DataType],
) -> InputError:
    """The error to raise for a block that does not parse; ``lines_before`` lines of the file came before it."""
    lines = [line + b"\n" for line in block.split(b"\n")]
    at = _first_broken(lines, parser)
    if at is None:
        return InputError(f"{file}: the JSON content is broken: {first_line(error)}")
    before = b"".join(lines[:at])
    schema = parser.parse(before).schema if before.strip() else parser.schema  # what was inferred up to that line
    what, advice = _wrong(lines[at], schema, parser, given)
    where = f"{file}: line {lines_before + at + 1} {what}"
    return InputError(f"{where}{advice}", command=f"{where}{advice}".replace("types=", _OPTIONS))


def _first_broken(lines: list[bytes], parser: LineParser) -> int | None:
    """By bisection: the shortest prefix that does not parse ends with the broken line."""
    good, broken = 0, len(lines)
    if _parses(lines, parser):
        return None
    while broken - good > 1:
        middle = (good + broken) // 2
        if _parses(lines[:middle], parser):
            good = middle
        else:
            broken = middle
    return broken - 1


def _parses(lines: list[bytes], parser: LineParser) -> bool:
    block = b"".join(lines)
    if not block.strip():
        return True
    try:
        parser.parse(block)
    except pa.ArrowException:
        return False
    return True


def _wrong(line: bytes, schema: pa.Schema, parser: LineParser, given: Mapping[str, pa.DataType]) -> tuple[str, str]:
    """What is wrong with a line, and what can be done about it in Python."""
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return f"is not valid UTF-8 at byte {error.start + 1}", ""
    except json.JSONDecodeError as error:
        return f"is not one JSON object: {error.msg} at character {error.pos + 1}: {_short(line)}", ""
    if not isinstance(row, dict):
        return f"is not one JSON object but a {_kind(row)}: {_short(line)}", ""
    types = {field.name: field.type for field in schema}
    for column, value in row.items():
        if column not in types:
            if parser.unexpected == "error":
                return f"has a field {column!r} that the first rows do not have", "; name it in types= to read it"
        elif not _fits(column, value, types[column], parser):
            wrong = f"field {column!r}: {_short(json.dumps(value).encode())} is not a valid {types[column]}, the type"
            if column in given:
                return f"{wrong} given in types=", ""
            return f"{wrong} inferred from the first rows", "; pass types= to change it"
    return f"does not fit the lines before it: {_short(line)}", ""


def _fits(column: str, value: object, type_: pa.DataType, parser: LineParser) -> bool:
    try:
        parser.parse(json.dumps({column: value}).encode(), pa.schema([(column, type_)]))
    except pa.ArrowException:
        return False
    return True


def _kind(value: object) -> str:
    names = {list: "list", str: "text", bool: "true or false", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _short(line: bytes, most: int = 60) -> str:
    text = line.decode("utf-8", "backslashreplace").strip()
    return text if len(text) <= most else text[: most - 3] + "..."
