"""Which engine runs ``earlyjoin join``, and what is special about Spark on the command line."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from earlyjoin.cli.conditions import condition_of, names, split
from earlyjoin.cli.inputs import delimiter_of, path_of
from earlyjoin.cli.outputs import Output, check_output
from earlyjoin.cli.speaking import tell
from earlyjoin.errors import InputError
from earlyjoin.local.sources.paths import find_files
from earlyjoin.local.sources.piping.pipes import is_pipe
from earlyjoin.query.query import Query
from earlyjoin.spark.inputs import FORMATS, format_of
from earlyjoin.spark.session import INSTALL, missing_java
from earlyjoin.spark.writing.targets import Target
from earlyjoin.state.budget import format_bytes

SMALL_BYTES = 256 * 2**20
"""Inputs up to this size are joined in one process before Spark would have started."""
FEW_ROWS = 100_000
"""So many rows of files on this machine, however large, are likely to be found before Spark would have started."""
_LOCAL_OPTIONS: dict[str, object] = {
    "algorithm": "auto",
    "reading": "auto",
    "driving": "auto",
    "wait": "25ms",
    "spill_dir": None,
    "batch_rows": 65536,
    "types_left": None,
    "types_right": None,
    "arrivals_left": None,
    "arrivals_right": None,
    "aggregate": None,
    "estimator": "honest",
    "option": [],
}
"""Options of the local engine alone, and their defaults."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine and why it was taken."""

    name: str
    reason: str
    said: bool = False
    """Is it worth a line on standard error?"""


def choose_engine(options: argparse.Namespace) -> Engine:
    """What was asked for; else Spark, unless something is for the local engine alone."""
    local_only = _local_only(options)
    if options.engine == "local":
        if options.master is not None:
            raise InputError(f"--master {options.master} is for Spark; leave it out, or leave --engine local out")
        return Engine("local", "as asked")
    if options.engine == "spark":
        missing = local_only or _missing(options)
        if missing is not None:
            raise InputError(f"--engine spark: {missing}; leave --engine out for the local engine")
        return Engine("spark", "as asked")
    if local_only is not None and options.master is None:
        return Engine("local", local_only)
    if options.master is not None:
        missing = local_only or _missing(options)
        if missing is not None:
            raise InputError(f"--master {options.master}: {missing}")
        return Engine("spark", "--master was given")
    size = _size(options)
    if size is not None and size <= SMALL_BYTES:
        return Engine("local", f"inputs of {format_bytes(size)} are joined before Spark would have started")
    if size is not None and options.limit is not None and options.limit <= FEW_ROWS:
        return Engine("local", f"{options.limit:,} rows are found before Spark would have started")
    missing = _missing(options)
    if missing is not None:
        return Engine("local", f"{missing}; --engine local does without", said=True)
    return Engine("spark", "the default for large inputs", said=True)


def spark_query(options: argparse.Namespace) -> Query:
    """The query on Spark, in a session of its own unless one is there."""
    from earlyjoin.spark.inputs import open_frame
    from earlyjoin.spark.options import SparkOptions
    from earlyjoin.spark.query import SparkQuery
    from earlyjoin.spark.session import active_session, start_session

    settings: dict[str, Any] = {"how": options.how, "memory": options.memory, "seed": options.seed}
    if options.suffixes is not None:
        settings["suffixes"] = tuple(split(options.suffixes, ","))
    how = SparkOptions(**settings)
    condition = condition_of(options)
    if not options.explain:
        if writes_directory(options):
            Target.of(options.output, format=options.output_format, overwrite=options.overwrite).check()
        else:
            check_output(options)
    if not options.quiet and not options.json and active_session() is None:
        tell("earlyjoin: starting Spark ...")
    session = start_session(options.master, quiet=os.environ.get("EARLYJOIN_DEBUG", "0") in ("", "0"))
    frames = []
    for side, name in enumerate(("left", "right")):
        given = vars(options)
        frame = open_frame(
            given[name], session, side, format=given[f"format_{name}"], delimiter=delimiter_of(given, name)
        )
        columns = given[f"{name}_columns"]
        if columns is not None:
            frame = frame.select(*names(columns, f"--{name}-columns {columns}"))
        frames.append(frame)
    return SparkQuery(frames[0], frames[1], condition, how)


def writes_directory(options: argparse.Namespace) -> bool:
    """Does Spark write the output by itself? Other formats, and a few rows, come through this process into a file."""
    if options.output in (None, "-") or options.limit is not None:
        return False
    if options.output_format is not None:
        return options.output_format in FORMATS.values()
    ending = Path(options.output.rstrip("/")).suffix.lower()
    return not ending or ending in FORMATS


class SparkDirectory(Output):
    """A directory that Spark's own writers fill."""

    def __init__(self, query: Query, options: argparse.Namespace) -> None:
        super().__init__()
        self._query = query
        self._path = options.output
        self._overwrite = options.overwrite
        self._format = options.output_format

    def write_all(self) -> None:
        """All rows of the query."""
        self.rows = self._query.write(self._path, format=self._format, overwrite=self._overwrite)

    def _write(self, batch: Any) -> None:
        raise NotImplementedError("Spark writes all rows by itself")

    def finish(self) -> str:
        return f"{self.rows:,} rows written to {self._path!r}"

    def keep_partial(self) -> str:
        kept = f"; {self._path!r} is as it was before" if self._overwrite and Path(self._path).exists() else ""
        return f"Spark had not written all rows, and nothing of them was kept{kept}"


def _local_only(options: argparse.Namespace) -> str | None:
    """What only the local engine can do, of all that was asked."""
    given = vars(options)
    if options.more:
        return "joins of more than two inputs are for the local engine"
    for name, default in _LOCAL_OPTIONS.items():
        if given[name] != default:
            return f"--{name.replace('_', '-')} is for the local engine"
    for side in ("left", "right"):
        if is_pipe(path_of(given[side])):
            return "standard input and pipes are for the local engine"
        format_ = given[f"format_{side}"] or format_of(given[side])
        if format_ is None and Path(given[side]).exists():
            return f"{given[side]!r} has a format that Spark does not read"
        if format_ is not None and format_ not in FORMATS.values():
            return f"Spark does not read {format_} files"
    return None


def _missing(options: argparse.Namespace) -> str | None:
    if find_spec("pyspark") is None:
        return f"PySpark is not installed ({INSTALL})"
    if options.master is not None and options.master.startswith("sc://"):
        return None
    return missing_java()


def _size(options: argparse.Namespace) -> int | None:
    """Bytes of both inputs, None where they cannot be told: on other file systems."""
    total = 0
    for side in ("left", "right"):
        value = vars(options)[side]
        if "://" in value:
            return None
        try:
            files = find_files(path_of(value), vars(options)[f"format_{side}"])
        except InputError:
            return 0  # a path that is wrong is the local engine's to report, in its own words
        total += sum(Path(path).stat().st_size for path in files.files)
    return total
