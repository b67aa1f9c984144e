"""Small tables as text: with Rich where it is installed, plain where it is not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Any

from earlyjoin.cli.speaking import standard_output

_WIDEST = 40
_LEAST_COLUMN = 12


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Rows in columns two spaces apart, the columns numbered in ``right`` aligned to the right.

    >>> print(aligned(["name", "rows"], [["a", "1"], ["b", "20"]], right=[1]))
    name  rows
    ----  ----
    a        1
    b       20
    """
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(
            text.rjust(width) if i in right else text.ljust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def print_rows(table: Any) -> None:
    """Print an Arrow table of a few rows to standard output; columns that do not fit are only counted."""
    fitting = max(1, shutil.get_terminal_size().columns // _LEAST_COLUMN)
    shown = list(range(min(table.num_columns, fitting)))
    header = [table.schema.field(i).name for i in shown]
    columns = [[_text(value) for value in table.column(i).to_pylist()] for i in shown]
    rows = [list(row) for row in zip(*columns, strict=True)]
    numbers = [i for i in shown if _is_number(str(table.schema.field(i).type))]
    with standard_output():
        _print(table, shown, header, rows, numbers)


def _print(
    table: Any, shown: Sequence[int], header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int]
) -> None:
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        print(aligned(header, rows, right=numbers))
    else:
        drawn = Table()
        for i, name in enumerate(header):
            drawn.add_column(Text(name), justify="right" if i in numbers else "left", overflow="ellipsis", no_wrap=True)
        for row in rows:
            drawn.add_row(*map(Text, row))
        Console(file=sys.stdout).print(drawn)
    if table.num_columns > len(shown):
        rest = [field.name for field in table.schema][len(shown) :]
        print(f"and {len(rest)} more columns: {', '.join(rest)}")


def _text(value: object) -> str:
    text = "null" if value is None else str(value).replace("\n", "⏎")
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _is_number(type_: str) -> bool:
    return type_.startswith(("int", "uint", "float", "double", "halffloat", "decimal"))
