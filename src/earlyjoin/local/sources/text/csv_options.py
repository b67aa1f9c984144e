"""What CSV means here, in files and in pipes: the delimiter, quotes, what is null, and how much is read at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.local.sources.text.csv_records import SCAN_BYTES

BLOCK_BYTES = SCAN_BYTES
"""Read and parsed at a time; the types of the columns are inferred from the first block."""


def checked_delimiter(delimiter: str, name: str) -> str:
    """The delimiter, or an InputError that names the input."""
    if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
        raise InputError(
            f"{name}: the delimiter must be one ASCII character, no quote and no line end; got {delimiter!r}"
        )
    return delimiter


def parsing(delimiter: str) -> dict[str, Any]:
    """How records are told apart, as an argument for pyarrow."""
    import pyarrow.csv as pacsv

    return {"parse_options": pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True)}


def converting(types: Mapping[str, pa.DataType], columns: Sequence[str] | None = None) -> dict[str, Any]:
    """What the fields mean: an empty one is null in every column, a quoted empty one is an empty string."""
    import pyarrow.csv as pacsv

    return {
        "convert_options": pacsv.ConvertOptions(
            column_types=types,
            include_columns=columns,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
    }
