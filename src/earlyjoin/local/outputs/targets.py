"""Whether a result may be written where it is asked for: decided before any work is done."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from earlyjoin.errors import InputError
from earlyjoin.local.outputs.writers import FORMATS, SUFFIXES
from earlyjoin.local.sources.base import Source
from earlyjoin.local.sources.paths import format_of


def check_target(
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    format: str | None = None,
    inputs: Sequence[Source] = (),
) -> tuple[Path, str]:
    """The target and its format; refuses one that cannot be written, and one that is an input.

    So is one whose rows would replace an input after an interruption.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"output {str(target)!r} is a directory; name a file in it")
    format = _format(target, format)
    if not target.parent.is_dir():
        raise InputError(f"directory {str(target.parent)!r} does not exist; create it or name another output")
    partial = partial_path(target)
    for source in inputs:
        _refuse_input(target, f"output {str(target)!r}", source)
        _refuse_input(partial, f"{str(partial)!r}, where an interruption leaves the rows found so far,", source)
    if target.exists() and not target.is_file():
        raise InputError(
            f"output {str(target)!r} is no regular file and cannot be replaced by one",
            command=f"output {str(target)!r} is no regular file; write to it with -o - > {target}",
        )
    if target.exists() and not overwrite:
        exists = f"output {str(target)!r} exists; remove it, or replace it with"
        raise InputError(f"{exists} overwrite=True", command=f"{exists} --overwrite")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise InputError(f"directory {str(target.parent)!r} cannot be written into; name another output")
    return target, format


def partial_path(target: Path, number: int = 1) -> Path:
    """Where rows are kept that were found before an interruption; other numbers are for when that name is taken."""
    what = "partial" if number == 1 else f"partial-{number}"
    return target.with_name(f"{target.stem}.{what}{target.suffix}")


def refuse_same_file(found: os.stat_result, what: str, source: Source) -> None:
    """Refuse to write into a file that an input is read from, under whatever name."""
    if not stat.S_ISREG(found.st_mode) or source.files is None:
        return
    same = source.files.name_of(found)
    if same is not None:
        raise InputError(f"{what} is the input {same!r}, which it would destroy; name another output")


def _format(target: Path, given: str | None) -> str:
    if given is not None:
        if given not in FORMATS:
            raise InputError(f"unknown output format {given!r}: choose one of {', '.join(FORMATS)}")
        return given
    format = SUFFIXES.get(target.suffix.lower())
    if format is None:
        unknown = f"cannot tell the format of {str(target)!r}; end it with one of: {', '.join(SUFFIXES)}"
        raise InputError(f"{unknown}, or pass format=", command=f"{unknown}, or give --output-format")
    return format


def _refuse_input(target: Path, what: str, source: Source) -> None:
    try:
        found = os.stat(target)
    except OSError:
        pass  # it is not there yet
    else:
        refuse_same_file(found, what, source)
    for given in _given(source):
        if _within(os.path.realpath(target.parent), target.name, given):
            raise InputError(f"{what} would become a part of the input {given!r}; write it to another place")


def _given(source: Source) -> list[str]:
    data = [] if source.reopening is None else source.reopening["data"]
    return [data] if isinstance(data, str) else [one for one in data if isinstance(one, str)]


def _within(directory: str, name: str, given: str) -> bool:
    """Would a new file be read as a part of what was given: a directory or a pattern?"""
    if name.startswith((".", "_")):
        return False
    if os.path.isdir(given):
        root = os.path.realpath(given)
        between = os.path.relpath(directory, root).split(os.sep)
        # only directories of partitions are entered
        return format_of(name) is not None and all(part == "." or "=" in part for part in between)
    if not glob.has_magic(given):
        return False
    fixed, pattern = _split(given)
    root = os.path.realpath(fixed)
    inside = os.path.relpath(os.path.join(directory, name), root)
    return not inside.startswith("..") and _matches(inside.split(os.sep), pattern)


def _split(pattern: str) -> tuple[str, list[str]]:
    """The directories before the first wildcard, and the parts from there on."""
    parts = pattern.split(os.sep)
    first = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    return os.sep.join(parts[:first]) or os.sep, parts[first:]


def _matches(parts: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(parts[skip:], pattern[1:]) for skip in range(len(parts) + 1))
    return bool(parts) and fnmatch.fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])
