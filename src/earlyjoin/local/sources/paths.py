"""Which files an input means: a file, a directory, a glob or a list of them, and the one format they share."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass

from earlyjoin.errors import InputError
from earlyjoin.local.sources.partition_names import Partition, is_partition, partition_of

SUFFIXES: dict[str, tuple[str, ...]] = {
    "parquet": (".parquet", ".parq", ".pq"),
    "csv": (".csv", ".tsv"),
    "arrow": (".arrow", ".arrows", ".ipc", ".feather"),
    "json": (".jsonl", ".ndjson", ".json"),
}
"""The formats, by the names that the ``format`` option takes, and the file names that mean them."""

COMPRESSED = (".gz", ".zst", ".bz2")
"""May follow the suffix of a text format."""

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class DataFiles:
    """The files of one input, in reading order, all of one format."""

    format: str
    files: tuple[str, ...]
    partitions: tuple[Partition, ...] = ()
    """The partition of each file, where directories tell one."""


def known_formats() -> str:
    """For messages: every suffix that says what a file is."""
    texts = [f"{name} ({', '.join(suffixes)})" for name, suffixes in SUFFIXES.items()]
    return f"{', '.join(texts)}; csv and json also with {', '.join(COMPRESSED)}"


def format_of(file: str) -> str | None:
    """The format that the name of a file tells, or None."""
    stem, suffix = os.path.splitext(file.lower())
    compressed = suffix in COMPRESSED
    if compressed:
        suffix = os.path.splitext(stem)[1]
    for name, suffixes in SUFFIXES.items():
        if suffix in suffixes and not (compressed and name not in ("csv", "json")):
            return name
    return None


def find_files(paths: PathLike | Sequence[PathLike], format: str | None = None) -> DataFiles:
    """The data files behind a path or several, sorted within each directory and glob."""
    if format is not None and format not in SUFFIXES:
        raise InputError(f"unknown format {format!r}: choose one of {', '.join(SUFFIXES)}")
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not several:
        raise InputError("an empty list of paths was given as input")
    files: list[str] = []
    partitions: list[Partition] = []
    for path in several:
        found_here = _expand(_local(path), format)
        files += found_here
        partitions += [partition_of(file, _root(_local(path))) for file in found_here]
    by_format: dict[str, str] = {}
    for file in files:
        found = format or format_of(file)
        if found is None:
            unknown = f"{file}: its name does not tell the format; known are {known_formats()}"
            raise InputError(f"{unknown}. Or pass format=", command=f"{unknown}. Or give --format-SIDE")
        by_format.setdefault(found, file)
    if len(by_format) > 1:
        examples = ", ".join(f"{name} ({file})" for name, file in sorted(by_format.items()))
        mixed = f"{_shown(several)}: files of several formats: {examples}"
        raise InputError(
            f"{mixed}. Pass format= to read one of them", command=f"{mixed}. Read one of them with --format-SIDE"
        )
    return DataFiles(next(iter(by_format)), tuple(files), tuple(partitions) if any(partitions) else ())


def absolute_path(path: PathLike) -> str:
    """The path as it can be opened again from another directory."""
    return os.path.abspath(_local(path))


def _shown(paths: Sequence[PathLike]) -> str:
    return os.fspath(paths[0]) if len(paths) == 1 else f"{len(paths)} paths"


def _local(path: PathLike) -> str:
    text = os.fspath(path)
    scheme, separator, rest = text.partition("://")
    if separator and scheme == "file":
        return rest
    if separator and scheme.isalnum():
        local = f"{text}: only local files are read here; for {scheme}:// use"
        raise InputError(f"{local} engine='spark', or pass a reader", command=f"{local} --engine spark")
    return os.path.expanduser(text)


def _expand(path: str, format: str | None) -> list[str]:
    if os.path.isdir(path):
        return _in_directory(path, format)
    if os.path.isfile(path):
        return [path]
    if os.path.exists(path):
        raise InputError(f"{path}: is neither a file nor a directory; a pipe must be an input of its own")
    if glob.has_magic(path):
        found = [file for file in glob.glob(path, recursive=True) if os.path.isfile(file) and not _hidden(file)]
        if not found:
            raise InputError(f"{path}: no file matches this pattern")
        return sorted(found)
    raise InputError(_missing(path))


def _root(path: str) -> str:
    """Where the directories begin whose names may be partitions: below what was named, or at the first wildcard."""
    if os.path.isdir(path):
        return path
    parts = path.split(os.sep)
    fixed = next((number for number, part in enumerate(parts) if glob.has_magic(part)), None)
    if fixed is None:
        return os.path.dirname(path)
    return os.sep.join(parts[:fixed]) or (os.sep if path.startswith(os.sep) else "")


def _hidden(file: str) -> bool:
    """Markers and temporary files (``_SUCCESS``, ``.part-0.crc``) that lie beside the data."""
    return os.path.basename(file).startswith((".", "_"))


def _in_directory(directory: str, format: str | None) -> list[str]:
    names = sorted(name for name in os.listdir(directory) if not _hidden(name))
    files = [file for file in (os.path.join(directory, name) for name in names) if os.path.isfile(file)]
    wanted = [file for file in files if (format_of(file) is not None if format is None else format_of(file) == format)]
    if not wanted and format is not None:  # the caller knows better than names without a suffix, such as part-0000
        wanted = [file for file in files if format_of(file) is None]
    below = [name for name in names if os.path.isdir(os.path.join(directory, name))]
    partitions = [name for name in below if is_partition(name)]
    if partitions:
        others = wanted + [name for name in below if name not in partitions]
        return _in_partitions(directory, partitions, others, format)
    if wanted:
        return wanted
    if below:
        hint = f"; sub-directories are not entered, a pattern such as {os.path.join(directory, '**', '*.parquet')} is"
    else:
        hint = f"; known are {known_formats()}" if format is None else ""
    raise InputError(f"{directory}: no {format or 'data'} file in this directory{hint}")


def _in_partitions(directory: str, partitions: list[str], others: list[str], format: str | None) -> list[str]:
    if others:
        raise InputError(
            f"{directory}: has partitions such as {partitions[0]}, and beside them {os.path.basename(others[0])}; "
            "move one of them to a directory of its own"
        )
    files: list[str] = []
    for name in partitions:
        inner = os.path.join(directory, name)
        if any(not _hidden(entry) for entry in os.listdir(inner)):  # a partition may be empty
            files += _in_directory(inner, format)
    if not files:
        raise InputError(f"{directory}: no {format or 'data'} file in any of its partitions")
    return files


def _missing(path: str) -> str:
    parent, name = os.path.split(path)
    if not os.path.isdir(parent or "."):
        return f"{path}: no such file; the directory {parent} does not exist either"
    close = difflib.get_close_matches(name, os.listdir(parent or "."), n=1)
    return f"{path}: no such file" + (f"; did you mean {os.path.join(parent, close[0])}?" if close else "")
