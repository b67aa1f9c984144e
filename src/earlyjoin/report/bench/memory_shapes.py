"""Inputs whose joins take memory in different ways, as Parquet files that are made once and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_TEXT_COLUMNS = 150
_PIECE_ROWS = 25_000
_USUAL_GROUP = 128 * 1024

Piece = Callable[..., pa.Table]
"""Makes rows: from random numbers, keys, and whether they are the right ones."""


@dataclass(frozen=True, slots=True)
class MemoryShape:
    """Two tables that are joined on ``k``, and how."""

    name: str
    what: str
    rows: int
    """Of each table at scale 1."""
    piece: Piece
    how: str = "inner"
    hot: bool = False
    """Half of the right rows have one key."""
    one_group: bool = False
    """Are all rows of a file in one row group?"""

    def paths(self, directory: Path, scale: float) -> tuple[str, str]:
        """The files, written if they are not there."""
        where = directory / f"memory-{scale:g}"
        where.mkdir(parents=True, exist_ok=True)
        found = []
        for side in ("left", "right"):
            path = where / f"{self.name}-{side}.parquet"
            if not path.exists():
                self._write(path, max(1, int(self.rows * scale)), right=side == "right")
            found.append(str(path))
        return found[0], found[1]

    def _write(self, path: Path, rows: int, *, right: bool) -> None:
        hidden = path.with_suffix(".part")
        pieces = self._pieces(rows, right=right)
        if self.one_group:
            pq.write_table(pa.concat_tables(pieces), hidden, row_group_size=rows)
        else:
            first = next(pieces)
            with pq.ParquetWriter(hidden, first.schema) as writer:
                for table in (first, *pieces):
                    writer.write_table(table, row_group_size=_USUAL_GROUP)
        hidden.replace(path)

    def _pieces(self, rows: int, *, right: bool) -> Iterator[pa.Table]:
        """The rows in random order, a few at a time."""
        rng = np.random.default_rng(int(right))
        keys = rng.permutation(rows)
        if self.hot and right:
            keys[rng.random(rows) < 0.5] = rows // 2
        step = _USUAL_GROUP if self.piece is _numbers else _PIECE_ROWS
        for start in range(0, rows, step):
            yield self.piece(rng, keys[start : start + step], right=right)


def _numbers(rng: np.random.Generator, keys: Any, *, right: bool) -> pa.Table:
    return pa.table({"k": keys, "r" if right else "l": rng.integers(0, 1 << 60, len(keys))})


def _texts(rng: np.random.Generator, keys: Any, *, right: bool, columns: int, length: int) -> pa.Table:
    name = "r" if right else "l"
    letters = pa.py_buffer(rng.integers(97, 123, (columns, len(keys) * length), dtype=np.uint8))
    offsets = pa.py_buffer(np.arange(0, (len(keys) + 1) * length, length, dtype=np.int32))
    arrays = [
        pa.Array.from_buffers(pa.string(), len(keys), [None, offsets, letters.slice(at * len(keys) * length)])
        for at in range(columns)
    ]
    return pa.table([pa.array(keys), *arrays], ["k", *(f"{name}{at}" for at in range(columns))])


NARROW = MemoryShape("narrow", "two columns of numbers", 3_000_000, _numbers)
WIDE = MemoryShape(
    "wide", f"{_TEXT_COLUMNS} columns of text", 60_000, partial(_texts, columns=_TEXT_COLUMNS, length=12)
)
OTHERS = (
    MemoryShape("narrow-left", "two columns of numbers, left join", 3_000_000, _numbers, how="left"),
    MemoryShape("hot", "half of the right rows have one key", 3_000_000, _numbers, hot=True),
    MemoryShape("long", "text of 1 kB", 150_000, partial(_texts, columns=1, length=1000)),
    MemoryShape("one-group", "numbers, all rows in one row group", 3_000_000, _numbers, one_group=True),
    MemoryShape(
        "wide-one-group",
        f"{_TEXT_COLUMNS} columns of text, all rows in one row group",
        60_000,
        partial(_texts, columns=_TEXT_COLUMNS, length=12),
        one_group=True,
    ),
)
