"""Directories that are partitioned as Hive does it: ``sales/year=2024/month=1/part-0.parquet``.

The names of the directories are columns, behind those of the files. Their types are told from all values together:
whole numbers, dates, or else text. A column of that name in the files gives way to the directory, as in Spark and
DuckDB.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import Any

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.local.sources.base import BatchSizes, Source
from earlyjoin.local.sources.partition_names import Partition
from earlyjoin.local.sources.schemas import merged, parse_types, project
from earlyjoin.local.sources.slicing import Cutter, gather
from earlyjoin.local.sources.watching import WatchedFiles

_WHOLE = re.compile(r"[+-]?\d{1,19}")


def common_names(partitions: Mapping[str, Partition], where: str) -> tuple[str, ...]:
    """The columns that the directories of all files name; an error names the file that differs."""
    first, expected = next(iter(partitions.items()))
    names = tuple(name for name, _ in expected)
    for file, partition in partitions.items():
        found = tuple(name for name, _ in partition)
        if found != names:
            raise InputError(
                f"{where}: {file} lies in {_path(found)}, and {first} in {_path(names)}; all files of one input need "
                "the same partition columns"
            )
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{where}: {first} lies in two directories that give a value for {twice!r}")
    return names


class PartitionedSource(Source):
    """Rows of the files of all partitions, one partition after the other, with the partition's columns."""

    files: WatchedFiles

    def __init__(
        self,
        partitions: Mapping[str, Partition],
        opener: Callable[[Sequence[str], Mapping[str, Any]], Source],
        *,
        name: str,
        columns: Sequence[str] | None = None,
        types: Mapping[str, object] | None = None,
        order: str = "stored",
        **options: Any,
    ) -> None:
        if order != "stored":
            raise InputError(f"{name}: order={order!r} is not for partitioned directories; leave it out")
        self.name = name
        names = common_names(partitions, name)
        given = dict(types or {})
        own = parse_types({column: given.pop(column) for column in names if column in given})
        if given:
            options["types"] = given
        stored = None if columns is None else [column for column in columns if column not in names]
        if stored:
            options["columns"] = stored
        self._values: list[dict[str, pa.Scalar]] = []
        fields = [_field(column, number, partitions.values(), own, name) for number, column in enumerate(names)]
        groups: list[list[str]] = []
        for partition, group in groupby(partitions.items(), key=lambda item: item[1]):
            groups.append([file for file, _ in group])
            self._values.append(
                {field.name: _scalar(value, field.type) for (_, value), field in zip(partition, fields, strict=True)}
            )
        self._parts = _opened(groups, opener, options)
        typed = [part for part in self._parts if not part.untyped]
        of_files = merged([(part.name, part.schema) for part in typed or self._parts], name)
        whole = pa.schema([*(field for field in of_files if field.name not in names), *fields])
        self.schema = project(whole, columns, name)
        self.untyped = not typed
        self.files = WatchedFiles(list(partitions))
        hints = [part.rows_hint for part in self._parts]
        self.rows_hint = None if None in hints else sum(hint or 0 for hint in hints)

    @cached_property
    def bytes_hint(self) -> int | None:  # type: ignore[override]
        """Rough size in memory, where all partitions tell theirs."""
        hints = [part.bytes_hint for part in self._parts]
        return (
            None
            if None in hints
            else sum(hint or 0 for hint in hints) + 8 * len(self._values[0]) * (self.rows_hint or 0)
        )

    def most(self) -> tuple[int, int] | None:
        """Of all partitions, with a value of each partition column a row."""
        parts = [part.most() for part in self._parts]
        if None in parts:
            return None
        nbytes, rows = (sum(part[at] for part in parts if part is not None) for at in (0, 1))
        return nbytes + rows * sum(_value_nbytes(self._values, name) for name in self._values[0]), rows

    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows from ``start_row`` on; partitions before it whose length is known are not read."""
        return gather(self._pieces(size, Cutter(size, start_row)), size)

    def _pieces(self, size: BatchSizes, cutter: Cutter) -> Iterator[pa.RecordBatch]:
        for part, values in zip(self._parts, self._values, strict=True):
            start = 0
            if part.rows_hint is not None:
                start = min(cutter.skip_rows, part.rows_hint)
                cutter.skipped(start)
                if start == part.rows_hint:
                    continue
            for batch in part.batches(size, start):
                size = replace(size, first=size.most)  # only the very first batches are small
                yield from cutter.cut(self._completed(batch, values))

    def _completed(self, batch: pa.RecordBatch, values: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
        """A batch with the columns of its partition."""
        columns = [
            pa.repeat(values[name], batch.num_rows) if name in values else batch.column(name)
            for name in self.schema.names
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _value_nbytes(partitions: Sequence[Mapping[str, pa.Scalar]], name: str) -> int:
    """Of the longest value of a partition column."""
    return 8 + max(len(str(values[name].as_py())) for values in partitions)


def _opened(
    groups: Sequence[Sequence[str]],
    opener: Callable[[Sequence[str], Mapping[str, Any]], Source],
    options: Mapping[str, Any],
) -> list[Source]:
    """The files of every partition; types that rows have to tell are those of the first one where they do."""
    parts: list[Source] = []
    inferred: pa.Schema | None = None
    for files in groups:
        parts.append(opener(files, options if inferred is None else {**options, "like": inferred}))
        if inferred is None and parts[-1].inferred is not None:
            inferred = parts[-1].inferred
            parts[:-1] = [opener(earlier, {**options, "like": inferred}) for earlier in groups[: len(parts) - 1]]
    return parts


def _field(column: str, number: int, partitions: Any, given: Mapping[str, pa.DataType], where: str) -> pa.Field:
    texts = {partition[number][1] for partition in partitions} - {None}
    type_ = given.get(column) or _type_of(texts)
    for text in texts:
        try:
            _scalar(text, type_)
        except pa.ArrowInvalid as error:
            raise InputError(f"{where}: the directory {column}={text} is not a valid {type_}") from error
    return pa.field(column, type_)


def _type_of(texts: set[str]) -> pa.DataType:
    """The type that fits all values."""
    if texts and all(_WHOLE.fullmatch(text) and -(2**63) <= int(text) < 2**63 for text in texts):
        return pa.int64()
    if texts and all(map(_is_date, texts)):
        return pa.date32()
    return pa.string()


def _is_date(text: str) -> bool:
    try:
        return len(text) == 10 and datetime.date.fromisoformat(text) is not None
    except ValueError:
        return False


def _scalar(text: str | None, type_: pa.DataType) -> pa.Scalar:
    if text is not None and pa.types.is_integer(type_) and _WHOLE.fullmatch(text):
        return pa.scalar(int(text), type_)
    return pa.scalar(text, pa.string()).cast(type_)


def _path(names: Sequence[str]) -> str:
    return "/".join(f"{name}=…" for name in names) or "no partition"
