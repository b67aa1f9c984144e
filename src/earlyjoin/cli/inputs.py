"""The inputs of a command: files and pipes, with a simulated network in front of them where one is asked for."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from earlyjoin.cli.conditions import names, split
from earlyjoin.errors import InputError
from earlyjoin.local.sources import SimulatedSource, Source, open_source, parse_arrivals
from earlyjoin.local.sources.paths import find_files
from earlyjoin.local.sources.piping.pipes import file_behind, is_pipe

SIDES = ("left", "right")
_STANDARD_INPUT = "/dev/stdin"
_NOT_IN_NAMES = re.compile(r"\W+")


def open_inputs(options: argparse.Namespace) -> list[Source]:
    """All sources, with the options that concern each of them; those after the second share theirs."""
    settings = vars(options)
    paths = [(side, path_of(settings[side])) for side in SIDES] + [("more", path_of(path)) for path in options.more]
    formats = [_format(settings, side, path) for side, path in paths]
    if options.delimiter is not None and not {"csv", None} & set(formats):
        raise InputError(f"--delimiter is for CSV inputs; these are {' and '.join(map(str, formats))}")
    called = input_names(options) if options.more else list(SIDES)
    sources = []
    for number, ((side, path), format_) in enumerate(zip(paths, formats, strict=True)):
        with _in_words_of(side):
            source = open_source(path, name=called[number], **_options(settings, side, format_))
        sources.append(_arriving(source, settings, side, number))
    return sources


def path_of(text: str) -> str:
    """The path that an argument means: ``-`` is standard input, or the file that it was redirected from."""
    path = _STANDARD_INPUT if text == "-" else text
    return file_behind(path) or path


def input_names(options: argparse.Namespace) -> list[str]:
    """What to call each input: its file without directory and ending, with a number where that is not enough.

    >>> input_names(argparse.Namespace(left="data/a.csv", right="b.parquet", more=["old/a.csv", "'x y'.csv"]))
    ['a', 'b', 'a_2', 'x_y']
    """
    names: list[str] = []
    for number, path in enumerate([options.left, options.right, *options.more], start=1):
        stem = Path(path_of(path)).name.split(".")[0]
        plain = _NOT_IN_NAMES.sub("_", stem).strip("_") or f"input_{number}"
        name, times = plain, 1
        while name in names:
            times += 1
            name = f"{plain}_{times}"
        names.append(name)
    return names


def delimiter_of(settings: dict[str, Any], side: str) -> str | None:
    """The delimiter that was given for an input, or for all of them."""
    own: str | None = settings[f"delimiter_{side}"]
    delimiter: str | None = own if own is not None else settings["delimiter"]
    return "\t" if delimiter in ("\\t", "tab") else delimiter


def _format(settings: dict[str, Any], side: str, path: str) -> str | None:
    """The format of an input; None for a pipe whose first bytes will tell."""
    if is_pipe(path):
        given: str | None = settings[f"format_{side}"]
        return given
    with _in_words_of(side):
        return find_files(path, settings[f"format_{side}"]).format


@contextmanager
def _in_words_of(side: str) -> Iterator[None]:
    """Messages name the options of the input that they are about."""
    try:
        yield
    except InputError as error:
        if error.command is None:
            raise
        raise type(error)(str(error), command=error.command.replace("-SIDE", f"-{side}")) from error


def _options(settings: dict[str, Any], side: str, format_: str | None) -> dict[str, Any]:
    """Arguments for ``open_source``, with the options that are for this format."""
    options: dict[str, Any] = {"format": settings[f"format_{side}"]}
    columns, types = settings.get(f"{side}_columns"), settings[f"types_{side}"]
    if columns is not None:
        options["columns"] = names(columns, f"--{side}-columns {columns}")
    if settings[f"delimiter_{side}"] is not None and format_ not in ("csv", None):
        raise InputError(f"--delimiter-{side} is for CSV; this input is {format_}")
    if format_ in ("csv", None):
        options["delimiter"] = delimiter_of(settings, side)
    if types is not None:
        if format_ not in ("csv", "json", None):
            raise InputError(f"--types-{side} is for CSV and JSON lines; this input is {format_} and has its own types")
        options["types"] = _types(types, f"--types-{side} {types}")
    return options


def _types(text: str, option: str) -> dict[str, str]:
    types = {}
    for part in split(text, ","):
        column, *type_ = split(part, "=")
        if len(type_) != 1 or not type_[0].strip():
            raise InputError(f"{option}: write COLUMN=TYPE, such as id=int64,name=string,day=date32")
        types[names(column, option)[0]] = type_[0].strip()
    return types


def _arriving(source: Source, settings: dict[str, Any], side: str, number: int) -> Source:
    arrivals = settings.get(f"arrivals_{side}")
    if arrivals is None:
        return source
    # Another seed for the second input, or both would fall silent at the same moments.
    return SimulatedSource(
        source, parse_arrivals(arrivals), rows_per_packet=settings["packet_rows"], seed=2 * settings["seed"] + number
    )
