"""What the names of directories tell of the files in them: ``year=2024``."""

from __future__ import annotations

import os
from urllib.parse import unquote

NULL = "__HIVE_DEFAULT_PARTITION__"

Partition = tuple[tuple[str, str | None], ...]
"""Names and values of the directories around a file, the outermost first; None is null."""


def is_partition(directory: str) -> bool:
    """Does the name of a directory tell the value of a column?"""
    name, sign, _ = directory.partition("=")
    return bool(name and sign)


def partition_of(file: str, root: str) -> Partition:
    """The partition of a file below a directory.

    >>> partition_of("sales/year=2024/city=New%20York/part-0.parquet", "sales")
    (('year', '2024'), ('city', 'New York'))
    """
    between = os.path.relpath(os.path.dirname(file) or ".", root or ".").split(os.sep)
    pairs = (part.partition("=") for part in between if is_partition(part))
    return tuple((unquote(name), None if value == NULL else unquote(value)) for name, _, value in pairs)
