"""The inputs of a command: files, with a simulated network in front of them where one is asked for."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from earlyjoin.cli.conditions import names
from earlyjoin.errors import InputError
from earlyjoin.local.sources import SimulatedSource, Source, open_source, parse_arrivals
from earlyjoin.local.sources.paths import find_files

SIDES = ("left", "right")
_NOT_IN_NAMES = re.compile(r"\W+")


def open_inputs(options: argparse.Namespace) -> list[Source]:
    """All sources, with the options that concern each of them; those after the second have none of their own."""
    settings = vars(options)
    formats = [_format(settings, side, settings[side]) for side in SIDES]
    formats += [_format(settings, "more", path) for path in options.more]
    if options.delimiter is not None and "csv" not in formats:
        raise InputError(f"--delimiter is for CSV inputs; these are {' and '.join(formats)}")
    sources = [_open(settings, number, side, formats[number]) for number, side in enumerate(SIDES)]
    inputs = input_names(options)
    for number, path in enumerate(options.more, start=len(SIDES)):
        delimiter = _delimiter(settings) if formats[number] == "csv" else None
        sources.append(open_source(path, name=inputs[number], format=options.format_more, delimiter=delimiter))
    return sources


def input_names(options: argparse.Namespace) -> list[str]:
    """What to call each input: its file without directory and ending, with a number where that is not enough.

    >>> input_names(argparse.Namespace(left="data/a.csv", right="b.parquet", more=["old/a.csv", "'x y'.csv"]))
    ['a', 'b', 'a_2', 'x_y']
    """
    names: list[str] = []
    for number, path in enumerate([options.left, options.right, *options.more], start=1):
        stem = Path(path).name.split(".")[0]
        plain = _NOT_IN_NAMES.sub("_", stem).strip("_") or f"input_{number}"
        name, times = plain, 1
        while name in names:
            times += 1
            name = f"{plain}_{times}"
        names.append(name)
    return names


def _format(settings: dict[str, Any], side: str, path: str) -> str:
    try:
        return find_files(path, settings[f"format_{side}"]).format
    except InputError as error:
        # The message is written for Python, where the format is an argument.
        raise InputError(str(error).replace("format=", f"--format-{side}")) from error


def _open(settings: dict[str, Any], number: int, side: str, format_: str) -> Source:
    columns = settings[f"{side}_columns"]
    source = open_source(
        settings[side],
        name=side,
        format=settings[f"format_{side}"],
        columns=names(columns, f"--{side}-columns {columns}") if columns is not None else None,
        delimiter=_delimiter(settings) if format_ == "csv" else None,
    )
    arrivals = settings[f"arrivals_{side}"]
    if arrivals is None:
        return source
    # Another seed for the second input, or both would fall silent at the same moments.
    return SimulatedSource(
        source, parse_arrivals(arrivals), rows_per_packet=settings["packet_rows"], seed=2 * settings["seed"] + number
    )


def _delimiter(settings: dict[str, Any]) -> str | None:
    delimiter: str | None = settings["delimiter"]
    return "\t" if delimiter in ("\\t", "tab") else delimiter
