"""The same table as whatever an input may be: in memory, in files, through a pipe."""

from __future__ import annotations

import contextlib
import io
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

import earlyjoin as ej
from earlyjoin.predicates.encoding.carried import empty_table
from earlyjoin.report.fuzz.cases import IN_FILES
from earlyjoin.report.fuzz.columns import Rng
from earlyjoin.state.rows.inner_views import without_inner_views


@dataclass(slots=True)
class Given:
    """An input as it is handed over."""

    table: pa.Table
    """Its rows."""
    data: Any
    """What is handed to ``join``: a path, a table, an iterator, …"""
    form: str
    files: list[Path] = field(default_factory=list)
    feeder: threading.Thread | None = None
    pipe: Path | None = None

    @property
    def in_memory(self) -> bool:
        """Must it be given again to ``resume``?"""
        return not self.files

    def finish(self) -> None:
        """Let the writer of a pipe end, also if nobody has read it."""
        if self.feeder is not None and self.pipe is not None:
            with contextlib.suppress(OSError):
                os.close(os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK))
            self.feeder.join(10)


def give(table: pa.Table, form: str, directory: Path, letter: str, rng: Rng) -> Given:
    """The table in a form; a format that cannot hold its types becomes a table in memory."""
    if form == "jsonl" and table.num_rows == 0:
        return Given(table, table, "table (jsonl without rows has no columns)")
    if form in IN_FILES:
        try:
            return _in_files(table, form, directory, letter, rng)
        except (pa.ArrowException, NotImplementedError, TypeError):
            return Given(table, table, f"table ({form} cannot hold it)")
    if form in ("pipe", "csv pipe"):
        return _piped(table, form, directory / f"{letter}.pipe")
    if form == "iterator":
        return Given(table, _batches(table, int(rng.integers(1, 1000))), form)
    if form == "reader":
        return Given(table, pa.RecordBatchReader.from_batches(table.schema, table.to_batches(200)), form)
    pieces = [table.slice(at, 300) for at in range(0, table.num_rows, 300)] if rng.random() < 0.3 else []
    return Given(table, pa.concat_tables(pieces) if pieces else table, "table")


def write(table: pa.Table, path: Path, rng: Rng) -> None:
    """Into a file of the format that its name tells."""
    if path.suffix == ".parquet":
        group = int(rng.choice([3, 100, 1000, 100_000])) if table.num_rows < 5000 else 20_000
        dictionary = bool(rng.random() < 0.5)
        try:
            pq.write_table(table, path, row_group_size=group, use_dictionary=dictionary)
        except pa.ArrowNotImplementedError:  # Arrow cannot cut views inside other values
            types = [without_inner_views(type_) if pa.types.is_nested(type_) else type_ for type_ in table.schema.types]
            plain = pa.schema([field.with_type(type_) for field, type_ in zip(table.schema, types, strict=True)])
            pq.write_table(table.cast(plain), path, row_group_size=group, use_dictionary=dictionary)
    elif path.suffix == ".csv":
        pcsv.write_csv(table, path)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=int(rng.integers(1, 2000)))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def _batches(table: pa.Table, rows: int) -> Iterator[pa.RecordBatch]:
    yield from table.to_batches(rows) or [_no_rows(table.schema)]


def _in_files(table: pa.Table, form: str, directory: Path, letter: str, rng: Rng) -> Given:
    suffix, _, several = form.rpartition(" ")
    suffix = suffix or "parquet"
    if several == "partitions":
        return _partitioned(table, form, suffix, directory / letter, rng)
    if several != "files":
        path = directory / f"{letter}.{form}"
        write(table, path, rng)
        return Given(table, _typed(path, form, table), form, [path])
    cuts = np.sort(rng.integers(0, table.num_rows + 1, int(rng.integers(1, 4)))).tolist()
    paths = []
    for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, table.num_rows], strict=True)):
        paths.append(directory / f"{letter}-{number}.{suffix}")
        write(table.slice(start, stop - start), paths[-1], rng)
    data: Any = [str(path) for path in paths] if rng.random() < 0.5 else str(directory / f"{letter}-*.{suffix}")
    return Given(table, _typed(data, suffix, table), form, paths)


def _typed(data: Any, suffix: str, table: pa.Table, format: str | None = None) -> Any:
    """Text files do not tell the types of columns that are all null, or of whole floats."""
    if suffix not in ("csv", "jsonl"):
        return data
    return ej.source(data, format=format, types={column.name: column.type for column in table.schema})


def _partitioned(table: pa.Table, form: str, suffix: str, directory: Path, rng: Rng) -> Given:
    if table.num_rows == 0:
        return Given(table, table, "table (no rows for partitions)")
    name = f"{directory.name}part"
    values = pa.array(rng.integers(0, 4, table.num_rows))
    paths = []
    for value in sorted(set(values.to_pylist())):
        inside = directory / f"{name}={value}"
        inside.mkdir(parents=True)
        paths.append(inside / f"part-0.{suffix}")
        write(table.filter(pa.compute.equal(values, value)), paths[-1], rng)
    return Given(table.append_column(name, values), _typed(directory, suffix, table), form, paths)


def _piped(table: pa.Table, form: str, path: Path) -> Given:
    os.mkfifo(path)
    content = io.BytesIO()
    if form == "csv pipe":
        pcsv.write_csv(table, content)
    else:
        with pa.ipc.new_stream(content, table.schema) as writer:
            writer.write_table(table, max_chunksize=300)

    def feed() -> None:
        with contextlib.suppress(OSError), path.open("wb") as file:
            file.write(content.getvalue())

    feeder = threading.Thread(target=feed, name="fuzz-feeder", daemon=True)
    feeder.start()
    data = _typed(str(path), "csv", table, "csv") if form == "csv pipe" else str(path)
    return Given(table, data, form, feeder=feeder, pipe=path)


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """Arrow makes no empty arrays of unions by itself."""
    columns = [column.combine_chunks() for column in empty_table(schema).columns]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
