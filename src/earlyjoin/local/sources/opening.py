"""``open_source``: from whatever the user has to a :class:`Source`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.local.sources.base import Source
from earlyjoin.local.sources.iterators import IteratorSource, from_stream
from earlyjoin.local.sources.memory import TableSource, table_of
from earlyjoin.local.sources.paths import PathLike, absolute_path, find_files
from earlyjoin.local.sources.piping.pipes import STANDARD_INPUT, file_behind, is_pipe
from earlyjoin.query.query import Query
from earlyjoin.state.frames import as_table, made_by

ACCEPTED = (
    "a path, directory or glob of Parquet, CSV, Arrow IPC or JSON lines files (or a list of paths), "
    "a pyarrow Table, RecordBatch, RecordBatchReader or list of batches, a pandas or Polars frame, "
    "another query, an object with __arrow_c_stream__, or an iterator of batches"
)

_FILE_OPTIONS: dict[str, tuple[str, ...]] = {
    "parquet": ("columns", "order", "seed"),
    "csv": ("columns", "delimiter", "types"),
    "arrow": ("columns",),
    "json": ("columns", "types"),
}


def open_source(data: Any, *, name: str, **options: Any) -> Source:
    """The source for ``data``; ``name`` is what messages call it where it has no path of its own.

    Options: ``columns`` for all; ``format`` for files whose names do not tell it; ``delimiter`` and ``types`` for CSV,
    ``types`` for JSON lines; ``order`` and ``seed`` for Parquet; ``schema`` for lists and iterators of batches. An
    option that is None counts as not given.

    >>> import pyarrow as pa
    >>> open_source(pa.table({"k": [1, 2]}), name="left").rows_hint
    2
    """
    options = {option: value for option, value in options.items() if value is not None}
    if isinstance(data, Source):
        _only(options, (), name, "a source that is already open")
        return data
    if isinstance(data, str | os.PathLike):
        if is_pipe(os.fspath(data)):
            _only(options, ("columns", "format", "delimiter", "types"), name, "a pipe")
            return _open_pipe(os.fspath(data), options)
        return _open_files(file_behind(os.fspath(data)) or data, os.fspath(data), options)
    if made_by(data, "pyspark"):
        raise InputError(f"{name}: a PySpark {type(data).__name__} is joined by the Spark engine, not by the local one")
    if isinstance(data, list | tuple):
        return _open_list(data, name, options)
    table = as_table(data, name, options.get("columns"))
    if table is not None:
        _only(options, ("columns",), name, "data in memory")
        return TableSource(table, name=name, **options)
    if isinstance(data, Query):
        _only(options, ("columns",), name, "a query")
        return IteratorSource(data, name=name, schema=data.schema, origin=data, **options)
    if isinstance(data, pa.RecordBatchReader) or hasattr(data, "__arrow_c_stream__"):
        _only(options, ("columns",), name, "an Arrow stream")
        return from_stream(data, name=name, **options)
    if isinstance(data, Iterable) and not isinstance(data, Mapping | bytes | bytearray | set | frozenset | pa.Array):
        _only(options, ("columns", "schema"), name, "an iterator of batches")
        return IteratorSource(data, name=name, **options)
    hint = ". For a mapping of columns write pyarrow.table(...)" if isinstance(data, Mapping) else ""
    raise InputError(f"{name}: cannot read a {type(data).__name__}; accepted are {ACCEPTED}{hint}")


def _open_pipe(path: str, options: dict[str, Any]) -> Source:
    from earlyjoin.local.sources.piping.piped import PipedSource

    return PipedSource(path, name="standard input" if path in STANDARD_INPUT else path, **options)


def _open_files(paths: PathLike | Sequence[PathLike], name: str, options: dict[str, Any]) -> Source:
    several = not isinstance(paths, str | os.PathLike)
    absolute = [absolute_path(path) for path in _as_list(paths)]
    reopening = {"data": absolute if several else absolute[0], "name": name, **options}
    source = _open_found(paths, name, options)
    source.reopening = reopening
    return source


def _as_list(paths: PathLike | Sequence[PathLike]) -> Sequence[PathLike]:
    return [paths] if isinstance(paths, str | os.PathLike) else paths


def _open_found(paths: PathLike | Sequence[PathLike], name: str, options: dict[str, Any]) -> Source:
    found = find_files(paths, options.pop("format", None))
    _only(options, _FILE_OPTIONS[found.format], name, f"{found.format} files")
    if not found.partitions:
        return _open_format(found.format, found.files, name, options)
    from earlyjoin.local.sources.partitions import PartitionedSource

    def open_part(files: Sequence[str], given: Mapping[str, Any]) -> Source:
        return _open_format(found.format, files, os.path.dirname(files[0]), given)

    return PartitionedSource(dict(zip(found.files, found.partitions, strict=True)), open_part, name=name, **options)


def _open_format(format: str, files: Sequence[str], name: str, options: Mapping[str, Any]) -> Source:
    # each format is imported when it is used: together they would double the time to start
    if format == "parquet":
        from earlyjoin.local.sources.columnar.parquet import ParquetSource

        return ParquetSource(files, name=name, **options)
    if format == "csv":
        from earlyjoin.local.sources.text.csv import CsvSource

        return CsvSource(files, name=name, **options)
    if format == "arrow":
        from earlyjoin.local.sources.columnar.ipc import IpcSource

        return IpcSource(files, name=name, **options)
    from earlyjoin.local.sources.text.jsonl import JsonLinesSource

    return JsonLinesSource(files, name=name, **options)


def _open_list(data: Sequence[Any], name: str, options: dict[str, Any]) -> Source:
    """A list of paths, or of tables, batches and frames."""
    if data and all(isinstance(item, str | os.PathLike) for item in data):
        return _open_files(data, name, options)
    _only(options, ("columns", "schema"), name, "a list of batches")
    tables = []
    for item in data:
        table = as_table(item, name)
        if table is None:
            raise InputError(f"{name}: a list must hold only paths or only batches; it has a {type(item).__name__}")
        tables.append(table)
    schema = options.pop("schema", None)
    return TableSource(table_of(tables, name, schema), name=name, **options)


def _only(options: Mapping[str, Any], allowed: Sequence[str], name: str, kind: str) -> None:
    for option in options:
        if option not in allowed:
            takes = f"it takes {', '.join(allowed)}" if allowed else "it takes no options"
            raise InputError(f"{name}: {kind} does not take the option {option!r}; {takes}")
