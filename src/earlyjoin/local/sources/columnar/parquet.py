"""Parquet files, read lazily by row group.

Measured on 2 cores with TPC-H orders and lineitem in the page cache. Opening lineitem and reading its first 4096 rows
takes 8 to 13 ms, and does not grow with the row group, because columns are read through buffers: ``pre_buffer`` fetches
whole row groups first (15 ms for one of 60 MB) and gains no throughput. Two sources read by two threads at once take
about 1.0 s with ``use_threads`` and 1.3 s without. Memory mapping gains nothing, and a file that shrinks under a map
kills the process.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby, repeat
from operator import itemgetter
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.local.sources.base import BatchSizes, Source
from earlyjoin.local.sources.columnar.wide_groups import WideGroup, column_parts
from earlyjoin.local.sources.schemas import conform, merged, project
from earlyjoin.local.sources.slicing import Cutter, gather
from earlyjoin.local.sources.text.faults import opening, reading
from earlyjoin.local.sources.watching import WatchedFiles
from earlyjoin.state.disk.spill import SpillDirectory

BUFFER_BYTES = 1 << 20
"""Read at a time from each column, at most."""

BUFFERS_BYTES = 8 << 20
"""What the buffers of all columns may take together: 1 MB each would be 150 MB for 150 columns, outside any budget."""

_LEAST_BUFFER_BYTES = 16 << 10

SAMPLED_GROUPS = 8
"""Row groups looked at for ``bytes_hint``: a few tell enough, and a file can have very many."""

Order = Literal["stored", "shuffled"]

_MOST_CHUNKS = 4000
"""Looked at in a file."""
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "FIXED_LEN_BYTE_ARRAY": 16}
_OFFSET_BYTES = 8


class ParquetSource(Source):
    """Rows of Parquet files with the same columns.

    ``columns`` reads only some columns, in that order. ``order="shuffled"`` reads the row groups of all files in a
    random order fixed by ``seed`` (rows keep their order inside a row group); ``start_row`` then counts in that order.
    """

    files: WatchedFiles

    def __init__(
        self,
        files: Sequence[str],
        *,
        name: str,
        columns: Sequence[str] | None = None,
        order: Order = "stored",
        seed: int = 0,
    ) -> None:
        if order not in ("stored", "shuffled"):
            raise InputError(f"{name}: order must be 'stored' or 'shuffled', got {order!r}")
        self.name = name
        self._files = list(files)
        self.files = WatchedFiles(files)
        self._order = order
        self._seed = seed
        self._footers: list[Any] = []
        schemas = []
        for file in self._files:
            footer, schema = _footer(file)
            self._footers.append(footer)
            schemas.append((file, project(schema, columns, file)))
        self.schema = merged(schemas, name)
        self._columns = None if columns is None else list(columns)
        self.rows_hint = sum(footer.num_rows for footer in self._footers)

    @cached_property
    def bytes_hint(self) -> int | None:  # type: ignore[override]
        """Rough size in memory, from a sample of the row groups: uncompressed pages, but at least the fixed widths."""
        floors = {field.name: _floor_bytes(field.type) for field in self.schema}
        total = 0.0
        for footer in self._footers:
            groups = footer.num_row_groups
            step = max(1, groups // SAMPLED_GROUPS)
            sampled_rows = sampled_bytes = 0
            for group in (footer.row_group(i) for i in range(0, groups, step)):
                sampled_rows += group.num_rows
                for chunk in (group.column(i) for i in range(group.num_columns)):
                    floor = floors.get(_top_name(chunk.path_in_schema, floors))
                    if floor is not None:
                        sampled_bytes += max(chunk.total_uncompressed_size, floor * group.num_rows)
            total += sampled_bytes / sampled_rows * footer.num_rows if sampled_rows else 0
        return int(total)

    def most(self) -> tuple[int, int] | None:
        """From the footers: texts that are stored once count with twice the longest that statistics tell of."""
        nbytes = 0.0
        names = set(self.schema.names)
        for footer in self._footers:
            groups = footer.num_row_groups
            step = max(1, groups // SAMPLED_GROUPS, footer.num_columns * groups // _MOST_CHUNKS)
            rows = held = 0
            for group in (footer.row_group(i) for i in range(0, groups, step)):
                rows += group.num_rows
                for chunk in (group.column(i) for i in range(group.num_columns)):
                    if _top_name(chunk.path_in_schema, names) in names:
                        held += _most_nbytes(chunk)
            nbytes += held / rows * footer.num_rows if rows else 0
        return int(nbytes), self.rows_hint or 0

    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows from ``start_row`` on; whole row groups before it are skipped by their metadata."""
        cutter = Cutter(size, start_row)
        units = self._from_row(cutter)
        first = next(units, None)
        if first is None:
            return
        reader = _Reader(self._files, self._footers, self._columns, self.files, size.spill)
        try:
            read = reader.read(first[0], [first[1]], size.first, early=True)
            pieces = (cut for piece in read for cut in cutter.cut(piece))
            for batch in gather(pieces, size):
                yield conform(batch, self.schema, self.name)
            for file, run in groupby(units, key=itemgetter(0)):
                for batch in reader.read(file, [group for _, group in run], size.most):
                    if batch.num_rows:
                        yield conform(batch, self.schema, self.name)
        finally:
            reader.close()

    def shuffled_blocks(self) -> tuple[list[int], int] | None:
        """The row groups of a source that is read in shuffled order."""
        if self._order != "shuffled":
            return None
        return [self._rows(file, group) for file, group in self._units()], self._seed

    def _units(self) -> Iterator[tuple[int, int]]:
        """(file, row group) in reading order."""
        counts = [footer.num_row_groups for footer in self._footers]
        if self._order == "stored":
            return chain.from_iterable(zip(repeat(i), range(count), strict=False) for i, count in enumerate(counts))
        ends = np.cumsum(counts)
        shuffled = np.random.default_rng(self._seed).permutation(int(ends[-1]))
        files = np.searchsorted(ends, shuffled, side="right")
        groups = shuffled - (ends - np.asarray(counts))[files]
        return zip(files.tolist(), groups.tolist(), strict=True)

    def _from_row(self, cutter: Cutter) -> Iterator[tuple[int, int]]:
        """The units from the one that holds the start row; the cutter is left to skip inside that one."""
        units = self._units()
        for file, group in units:
            rows = self._rows(file, group)
            if rows > cutter.skip_rows:
                return chain([(file, group)], units)
            cutter.skipped(rows)
        return iter(())

    def _rows(self, file: int, group: int) -> int:
        return int(self._footers[file].row_group(group).num_rows)


class _Reader:
    """Keeps the file that is being read open, with the footer that is known already."""

    def __init__(
        self,
        files: list[str],
        footers: list[Any],
        columns: list[str] | None,
        watched: WatchedFiles,
        spill: SpillDirectory | None,
    ) -> None:
        self._files = files
        self._footers = footers
        self._columns = columns
        self._watched = watched
        self._spill = spill
        self._at: int | None = None
        self._open: Any = None

    def read(self, file: int, groups: list[int], rows: int, *, early: bool = False) -> Iterator[pa.RecordBatch]:
        """The rows of some row groups; ``early`` hurries with the first ones."""
        name = self._files[file]
        with self._watched.reading(name), reading(name, "Parquet"):
            if self._at != file:
                self._turn_to(file)
            for parts, run in groupby(groups, key=self._parts):
                if parts is None or self._spill is None:
                    yield from self._side_by_side(list(run), rows)
                    continue
                for group in run:
                    yield from WideGroup(self._open, group, parts, rows).read(self._spill, early=early)

    def _side_by_side(self, groups: list[int], rows: int) -> Iterator[pa.RecordBatch]:
        for batch in self._open.iter_batches(rows, row_groups=groups, columns=self._columns, use_threads=True):
            # pyarrow keeps the order of the file, and takes "a.b" for a part of column "a"
            yield batch if self._columns is None else batch.select(self._columns)

    def _parts(self, group: int) -> list[list[str]] | None:
        """Columns that may be read together; None: all."""
        if self._spill is None:
            return None
        names = self._open.schema_arrow.names if self._columns is None else self._columns
        return column_parts(self._open.metadata.row_group(group), names)

    def _turn_to(self, file: int) -> None:
        import pyarrow.parquet as pq

        self.close()
        footer = self._footers[file]
        share = BUFFERS_BYTES // max(1, footer.num_columns)
        buffer_bytes = min(BUFFER_BYTES, max(_LEAST_BUFFER_BYTES, share))
        self._open = pq.ParquetFile(self._files[file], metadata=footer, pre_buffer=False, buffer_size=buffer_bytes)
        self._at = file

    def close(self) -> None:
        if self._open is not None:
            self._open.close(force=True)
        self._open = self._at = None


def _footer(file: str) -> tuple[Any, pa.Schema]:
    import pyarrow.parquet as pq

    with opening(file, "Parquet"), pq.ParquetFile(file, pre_buffer=False) as opened:
        return opened.metadata, opened.schema_arrow


def _top_name(path: str, names: Container[str]) -> str:
    """The column a Parquet leaf such as ``tags.list.element`` belongs to."""
    return path if path in names else path.split(".", 1)[0]


def _most_nbytes(chunk: Any) -> int:
    """Of the values of a column in a row group, when they are in memory."""
    values, physical = int(chunk.num_values), chunk.physical_type
    if physical != "BYTE_ARRAY":
        return max(int(chunk.total_uncompressed_size), int(values) * _WIDTHS.get(physical, 0))
    if not any("DICTIONARY" in encoding for encoding in chunk.encodings):
        return int(chunk.total_uncompressed_size) + _OFFSET_BYTES * values
    statistics = chunk.statistics
    ends = (statistics.min_raw, statistics.max_raw) if statistics is not None and statistics.has_min_max else ()
    # Statistics leave long texts out: then one may be as long as all that is stored.
    longest = max((2 * len(end) for end in ends), default=int(chunk.total_uncompressed_size))
    return int(max(chunk.total_uncompressed_size, (longest + _OFFSET_BYTES) * values))


def _floor_bytes(type_: pa.DataType) -> int:
    """What a value takes in memory at least: a dictionary-encoded page can be far smaller."""
    try:
        return max(1, int(type_.bit_width) // 8)
    except ValueError:
        return 16 if type_ in (pa.string_view(), pa.binary_view()) else 8
