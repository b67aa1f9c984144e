"""What an input is to the local runtime: a schema, some hints, and batches from any row on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from earlyjoin.local.sources.watching import WatchedFiles
from earlyjoin.state.disk.spill import SpillDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSizes:
    """How many rows a batch may have: small at first, so that the first results come soon, then ``most``."""

    first: int = 4096
    most: int = 65536
    spill: SpillDirectory | None = None
    """Where a reader may leave what it had to decode before its turn; None: nowhere, it has to hold it."""

    def __post_init__(self) -> None:
        if not 0 < self.first <= self.most:
            raise ValueError(f"need 0 < first <= most, got first={self.first}, most={self.most}")


class Source(ABC):
    """One input of a join. Opening it twice gives the same rows in the same order, unless ``replayable`` is False."""

    name: str
    """What the user called it: a path, or "left"/"right" for data in memory. Messages use it."""
    schema: pa.Schema
    rows_hint: int | None = None
    """Number of rows, where it is known without reading them."""
    bytes_hint: int | None = None
    """Rough size of all rows in memory, where it can be told cheaply."""
    live: bool = False
    """True when arrival is outside our control (a network, an iterator that may wait): drive it by push."""
    replayable: bool = True
    """False when the rows can be read only once (an iterator): a resumed query must be given the rest."""

    files: WatchedFiles | None = None
    """The files it comes from, as they were when it was opened."""
    inferred: pa.Schema | None = None
    """All columns, where their types were told from rows: other files of the same input are read with them."""
    untyped: bool = False
    """True when there are no rows, so that columns of type null may become any type."""

    reopening: dict[str, Any] | None = None
    """Arguments for ``open_source`` that open it again in another process; None when only the caller can."""

    @property
    def read_once(self) -> object | None:
        """What reading uses up: two sources with the same one would take rows from each other. None: nothing."""
        return None if self.replayable else self

    def used_up(self) -> bool:
        """Has somebody begun to read the data, which can be read only once?"""
        return False

    def shuffled_blocks(self) -> tuple[list[int], int] | None:
        """Rows of each block, in the order of reading, and the seed of that order; None unless it is a random one."""
        return None

    def most(self) -> tuple[int, int] | None:
        """Bytes that all rows take in memory, and rows, rather too many than too few; None when nobody knows.

        A join that cannot spill is for what certainly fits; ``bytes_hint`` may be too small by any factor.
        """
        return None if self.bytes_hint is None or self.rows_hint is None else (self.bytes_hint, self.rows_hint)

    @abstractmethod
    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows from ``start_row`` on, in non-empty batches of ``schema`` that keep to ``size``."""
