"""Inputs whose rows are packed when they are read; see :mod:`earlyjoin.state.rows.packed`."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from earlyjoin.local.sources.base import BatchSizes, Source
from earlyjoin.local.sources.columnar.widening import Converted
from earlyjoin.state.rows.packed import RowPacking


class PackedSource(Converted):
    """The rows of a source, packed."""

    def __init__(self, inner: Source, packing: RowPacking) -> None:
        super().__init__(inner, packing.packed_schema)
        self._packing = packing

    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        """The batches of the source, each packed as it comes."""
        return map(self._packing.pack, self._inner.batches(size, start_row))
