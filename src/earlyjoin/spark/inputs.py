"""Inputs of a join on Spark: DataFrames as they are, paths and names of tables opened, tables in memory handed over."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from earlyjoin.errors import InputError
from earlyjoin.spark.session import active_session, first_line, is_dataframe, session_of, start_session
from earlyjoin.state.frames import as_table

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
}
"""What Spark reads and writes, by the end of the name."""
_NAMES = ("left", "right")


def session_for(inputs: Sequence[Any], master: str | None = None) -> Any:
    """The session of the DataFrames among the inputs, else the active one, else a new one."""
    sessions = [session_of(one) for one in inputs if is_dataframe(one)]
    if not sessions:
        return (active_session() if master is None else None) or start_session(master)
    if any(one is not sessions[0] and type(one) is not type(sessions[0]) for one in sessions):
        raise InputError("the two DataFrames belong to different kinds of Spark sessions; make both in one session")
    return sessions[0]


def open_frame(value: Any, session: Any, side: int, *, format: str | None = None, delimiter: str | None = None) -> Any:
    """A DataFrame for whatever was given as an input."""
    if is_dataframe(value):
        return value
    if isinstance(value, (str, os.PathLike)):
        return _open_named(os.fspath(value), session, side, format, delimiter)
    table = as_table(value, _NAMES[side])
    if table is None:
        raise InputError(
            f"the {_NAMES[side]} input is a {type(value).__name__}; on Spark it may be a DataFrame, a path, the name "
            "of a table, or an Arrow, pandas or Polars table"
        )
    return session.createDataFrame(table)


def format_of(path: str) -> str | None:
    """The format that a path's name tells, looking into a directory if it has to; None when it does not."""
    suffixes = [Path(path.rstrip("/")).suffix.lower()]
    local = Path(path)
    if suffixes[0] not in FORMATS and local.is_dir():
        suffixes = [one.suffix.lower() for one in sorted(local.rglob("*")) if one.is_file() and one.name[0] not in "._"]
    return next((FORMATS[suffix] for suffix in suffixes if suffix in FORMATS), None)


def _open_named(name: str, session: Any, side: int, format: str | None, delimiter: str | None) -> Any:
    kind = format or format_of(name)
    try:
        if kind is None and _may_be_table(name):
            return session.table(name)
        if kind is None:
            raise InputError(
                f"cannot tell the format of the {_NAMES[side]} input {name!r}; Spark reads names that end with "
                f"{', '.join(FORMATS)}, directories of such files, and tables by name"
            )
        reader = session.read.format(kind)
        if kind == "csv":
            separator = delimiter or ("\t" if name.lower().endswith(".tsv") else ",")
            reader = reader.option("header", "true").option("inferSchema", "true").option("sep", separator)
        return reader.load(name)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"Spark cannot open the {_NAMES[side]} input {name!r}: {first_line(error)}") from error


def _may_be_table(name: str) -> bool:
    return not any(sign in name for sign in "/\\*?") and not Path(name).exists()
