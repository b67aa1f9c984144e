"""Where a result is written to, in Spark's own words: path, format, mode, partitions, options of the format."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import escape as glob_escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from earlyjoin.errors import InputError
from earlyjoin.spark.inputs import FORMATS
from earlyjoin.spark.inspecting.plans import explained

DEFAULT_FORMAT = "parquet"
MODES = ("error", "overwrite", "append", "ignore")
_LOCATION = re.compile(r"Location: \w+(?:\(\d+ paths\))?\[([^\]]*)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A directory that is to be written."""

    path: str
    format: str = DEFAULT_FORMAT
    mode: str = "error"
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        mode: str = "error",
        overwrite: bool = False,
        partition_by: str | Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Target:
        """From what a user says; the end of the path tells the format if nobody else does, else it is Parquet."""
        text = os.fspath(path)
        names = [partition_by] if isinstance(partition_by, str) else list(partition_by or ())
        if not all(isinstance(name, str) for name in names):
            raise InputError(f"partition_by takes the name of a column or a list of names, got {partition_by!r}")
        given = dict(options or {})
        if _suffix(text) == ".tsv" and format is None:
            given.setdefault("sep", "\t")
        return cls(
            path=text,
            format=format or FORMATS.get(_suffix(text), DEFAULT_FORMAT),
            mode=_mode(mode, overwrite=overwrite),
            partition_by=tuple(names),
            options=given,
        )

    @property
    def local(self) -> Path | None:
        """The path on this machine, if that is where it is; a name without a scheme is taken for one."""
        return local_path(self.path)

    @property
    def exists(self) -> bool:
        """Is it known to be there?"""
        return self.local is not None and self.local.exists()

    @property
    def nbytes(self) -> int | None:
        """What was written so far; None where that cannot be seen from here."""
        local = self.local
        if local is None:
            return None
        # A directory that is to be replaced grows beside it, under a hidden name.
        growing = [*local.parent.glob(f".{glob_escape(local.name)}.*.new")] or [local]
        return sum(_size(file) for directory in growing for file in directory.rglob("*"))

    def check(self) -> None:
        """Refuse what cannot be written, before any work is done."""
        local = self.local
        if local is None:
            return
        if self.mode == "error" and local.exists():
            raise InputError(
                f"output {self.path!r} exists; remove it, or say what becomes of it with mode='overwrite', 'append' or "
                "'ignore'",
                command=f"output {self.path!r} exists; remove it, or replace it with --overwrite",
            )
        if local.is_file() and self.mode != "ignore":
            raise InputError(
                f"output {self.path!r} is a file, and Spark writes a directory; remove it or choose another name"
            )

    def check_inputs(self, frames: Iterable[Any]) -> None:
        """Refuse to replace what is being read: a path that is an input's, holds it, or lies inside it."""
        if self.mode != "overwrite":
            return
        target = _place(self.path)
        for side, frame in zip(("left", "right"), frames, strict=True):
            for read, whole in _read_by(frame):
                place = _place(read)
                if place == target or target in place.parents or (whole and place in target.parents):
                    raise InputError(
                        f"output {self.path!r} is where the {side} input is read from ({read!r}), and would be gone "
                        "before it is read; write to another path"
                    )

    def for_columns(self, names: Sequence[str], *, ignore_case: bool) -> Target:
        """The target with partitions as the columns are called.

        Refuses columns that no writer of Spark's takes, and partitions that are not there.
        """
        same = str.lower if ignore_case else str
        folded = [same(name) for name in names]
        counts = Counter(folded)
        alike = [name for name, fold in zip(names, folded, strict=True) if counts[fold] > 1]
        if alike:
            raise InputError(
                f"Spark writes no rows with columns {', '.join(map(repr, alike))}: it takes these names for the same; "
                "rename them in the input"
            )
        missing = [name for name in self.partition_by if same(name) not in folded]
        if missing:
            raise InputError(
                f"partition_by: column {missing[0]!r} is not in the result; columns there: {', '.join(names)}"
            )
        return replace(self, partition_by=tuple(names[folded.index(same(name))] for name in self.partition_by))


def local_path(path: str) -> Path | None:
    """The path on this machine; None for other file systems."""
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    return None if "://" in path else Path(path)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size if file.is_file() else 0
    except OSError:  # moved meanwhile
        return 0


def _suffix(path: str) -> str:
    return Path(path.rstrip("/")).suffix.lower()


def _mode(mode: str, *, overwrite: bool) -> str:
    plain = mode.lower() if isinstance(mode, str) else mode
    plain = {"errorifexists": "error", "default": "error"}.get(plain, plain)
    if plain not in MODES:
        raise InputError(f"unknown mode {mode!r}; choose one of: error (errorifexists), overwrite, append, ignore")
    if overwrite and plain not in ("error", "overwrite"):
        raise InputError(f"overwrite=True and mode={mode!r} contradict each other; leave overwrite out")
    return "overwrite" if overwrite else plain


def _place(path: str) -> Path:
    """A path that can be compared, whatever file system it is on."""
    local = local_path(path)
    return local.resolve() if local is not None else Path(urlsplit(path).path)


def _read_by(frame: Any) -> Iterator[tuple[str, bool]]:
    """What a DataFrame reads: its files, and the paths that were named, where that can be told."""
    files = [unquote(file) for file in frame.inputFiles()]
    yield from ((file, False) for file in files)
    plain = frame.toDF(*(f"c{position}" for position in range(len(frame.columns))))
    plan = explained(plain, how="")
    named = [path.strip() for paths in _LOCATION.findall(plan) for path in paths.split(",")]
    yield from ((unquote(path), True) for path in named if path and "..." not in path)
    if any("..." in path for path in named):  # Spark cuts long paths off
        yield from ((str(directory), True) for directory in _whole_directories(files))


def _whole_directories(files: list[str]) -> Iterator[Path]:
    """Directories on this machine of which every file is read, as if they had been named."""
    places = {_place(file) for file in files if local_path(file) is not None}
    for directory in {place.parent for place in places}:
        if directory.is_dir():
            seen = [one for one in directory.iterdir() if one.is_file() and one.name[0] not in "._"]
            if set(seen) <= places:
                yield directory
