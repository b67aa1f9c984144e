"""A batch on its way into the table.

::

    rows with null keys out ──▶ take a piece ──▶ probe the other side's memory parts ──▶ rows that need not be kept:
                                    ▲                                                    unmatched ones out
                                    │                                                          │
                                    └───────── insert into memory, or spool if frozen ◀────────┘
                                                 └ memory full: flush victims, then go on

A piece is as long as memory has room for, so that with memory counted in rows the flush comes before exactly the row
that does not fit: batches change nothing but speed. Stamps are given when a piece begins. A flush between probing and
inserting does no harm: what left had been probed, and nothing of the other side can have come in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.hash_join.table.partitioning import Numbers, Piece
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state.hash_index import Cursor
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.rows.store import BatchRows
from earlyjoin.state.snapshot import Snapshot


class Stage(StrEnum):
    """What is being done with the piece in hand."""

    PROBE = "probe"
    PASS = "pass"
    """Rows that need not be kept and have no match go out."""
    INSERT = "insert"
    FLUSH = "flush"


@dataclass(slots=True)
class Arriving:
    """A batch whose rows before ``offset`` are done."""

    side: int
    batch: pa.RecordBatch
    keys: Keys | None = None
    """None before the batch is prepared."""
    numbers: Numbers | None = None
    unmatched: pa.RecordBatch | None = None
    """Rows whose key matches nothing, still to go out."""
    offset: int = 0
    piece: Piece | None = None
    stage: Stage = Stage.PROBE
    partition: int = 0
    row: int = 0
    """Rows of the present partition that are inserted, or rows of the piece that have passed."""
    cursor: Cursor = field(default_factory=Cursor)
    matched: Bool | None = None
    """Flags of the rows of the piece, when they are needed."""
    complete: Bool | None = None
    """For each partition: has the other side ended, all of it in memory? Then rows need not be kept."""
    length: int = 0
    """Rows of the piece in hand."""
    first_tick: int = 0
    piece_nbytes: int = 0

    @property
    def rows_left(self) -> int:
        """Rows that may not be in the table yet."""
        return int(self.batch.num_rows) - self.offset

    @property
    def nbytes(self) -> int:
        """Bytes really held, the batch itself left out: the input buffer counts it."""
        held = sum(part.nbytes for part in (self.keys, self.numbers) if part is not None)
        if self.piece is not None:
            held += self.piece.keys.nbytes + batch_nbytes(self.piece.batch) + self.piece.arrivals.nbytes
        return held

    def next_stage(self, stage: Stage) -> None:
        """Begin a stage from the first partition on."""
        self.stage, self.partition, self.row, self.cursor = stage, 0, 0, Cursor()

    def save(self, saved: Snapshot) -> dict[str, Any]:
        """Put it into a snapshot; the piece is made again from the batch."""
        saved.tables["arriving"] = pa.Table.from_batches([self.batch])
        if self.unmatched is not None:
            saved.tables["arriving-unmatched"] = pa.Table.from_batches([self.unmatched])
        if self.matched is not None:
            saved.arrays["arriving-matched"] = self.matched.copy()
        if self.complete is not None:
            saved.arrays["arriving-complete"] = self.complete.copy()
        place = {"offset": self.offset, "partition": self.partition, "row": self.row, "length": self.length}
        cursor = {"cursor": [int(self.cursor.row), int(self.cursor.node)], "first_tick": self.first_tick}
        state = {"stage": self.stage.value, "prepared": self.keys is not None, "in_hand": self.piece is not None}
        return {"side": self.side} | state | place | cursor


def cut(room: int | None, needs: Bool) -> int:
    """Length of the next piece: rows before the first that has no room; at least one."""
    if room is None:
        return len(needs)
    fitting = int(np.searchsorted(np.cumsum(needs), room, side="right"))
    return max(1, fitting)


def chosen_rows(piece: Piece, start: int, stop: int, keep: Int64 | None) -> tuple[pa.RecordBatch, Keys, Int64]:
    """Rows ``start`` to ``stop`` of a piece, or those of them that ``keep`` numbers."""
    if keep is None or len(keep) == stop - start:
        return piece.batch.slice(start, stop - start), piece.keys.slice(start, stop), piece.arrivals[start:stop]
    batch = pa.RecordBatch.from_arrays(BatchRows(piece.batch).take(keep), schema=piece.batch.schema)
    return batch, piece.keys.take(keep), piece.arrivals[keep]
