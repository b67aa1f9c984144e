"""The inputs of a command: files, with a simulated network in front of them where one is asked for."""

from __future__ import annotations

import argparse
from typing import Any

from earlyjoin.cli.conditions import names
from earlyjoin.errors import InputError
from earlyjoin.local.sources import SimulatedSource, Source, open_source, parse_arrivals
from earlyjoin.local.sources.paths import find_files

SIDES = ("left", "right")


def open_inputs(options: argparse.Namespace) -> list[Source]:
    """Both sources, with the options that concern each of them."""
    settings = vars(options)
    formats = [_format(settings, side) for side in SIDES]
    if options.delimiter is not None and "csv" not in formats:
        raise InputError(f"--delimiter is for CSV inputs; these are {formats[0]} and {formats[1]}")
    return [_open(settings, number, side, formats[number]) for number, side in enumerate(SIDES)]


def _format(settings: dict[str, Any], side: str) -> str:
    try:
        return find_files(settings[side], settings[f"format_{side}"]).format
    except InputError as error:
        # The message is written for Python, where the format is an argument.
        raise InputError(str(error).replace("format=", f"--format-{side}")) from error


def _open(settings: dict[str, Any], number: int, side: str, format_: str) -> Source:
    columns = settings[f"{side}_columns"]
    delimiter = settings["delimiter"] if format_ == "csv" else None
    source = open_source(
        settings[side],
        name=side,
        format=settings[f"format_{side}"],
        columns=names(columns, f"--{side}-columns {columns}") if columns is not None else None,
        delimiter="\t" if delimiter in ("\\t", "tab") else delimiter,
    )
    arrivals = settings[f"arrivals_{side}"]
    if arrivals is None:
        return source
    # Another seed for the second input, or both would fall silent at the same moments.
    return SimulatedSource(
        source, parse_arrivals(arrivals), rows_per_packet=settings["packet_rows"], seed=2 * settings["seed"] + number
    )
