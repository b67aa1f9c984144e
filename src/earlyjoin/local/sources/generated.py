"""Made-up data for demonstrations and tests: any number of rows, the same ones every time, made when they are read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.local.sources.base import BatchSizes, Source
from earlyjoin.local.sources.slicing import Cutter

BLOCK_ROWS = 16384
"""Rows made from one seed. Part of what the rows are: another number here would change them all."""

SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64()),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
        pa.field("note", pa.string(), nullable=False),
    ]
)


class GeneratedSource(Source):
    """What :func:`generated` returns."""

    def __init__(
        self, rows: int, keys: int, *, skew: float, seed: int, payload_bytes: int, null_fraction: float, name: str
    ) -> None:
        if rows < 0 or keys < 1 or skew < 0 or payload_bytes < 0 or not 0 <= null_fraction <= 1:
            raise InputError(
                f"{name}: need rows >= 0, keys >= 1, skew >= 0, payload_bytes >= 0 and 0 <= null_fraction <= 1; got "
                f"{rows=}, {keys=}, {skew=}, {payload_bytes=}, {null_fraction=}"
            )
        self.name = name
        self.schema = SCHEMA
        self.rows_hint = rows
        self.bytes_hint = rows * (28 + payload_bytes)
        self._rows = rows
        self._keys = keys
        self._skew = skew
        self._seed = seed
        self._payload_bytes = payload_bytes
        self._null_fraction = null_fraction

    def batches(self, size: BatchSizes, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows from ``start_row`` on; blocks before it are not made."""
        cutter = Cutter(size, start_row)
        first = start_row // BLOCK_ROWS
        cutter.skipped(first * BLOCK_ROWS)
        for block in range(first, -(-self._rows // BLOCK_ROWS)):
            yield from cutter.cut(self._block(block))

    @cached_property
    def _distribution(self) -> npt.NDArray[np.float64]:
        return np.cumsum(np.arange(1, self._keys + 1, dtype=np.float64) ** -self._skew)

    def _block(self, block: int) -> pa.RecordBatch:
        start = block * BLOCK_ROWS
        rows = min(BLOCK_ROWS, self._rows - start)
        # one stream of random numbers a column, so that no option changes the values of the other columns
        keys_rng, nulls_rng, values_rng, notes_rng = np.random.default_rng([self._seed, block]).spawn(4)
        return pa.RecordBatch.from_arrays(
            [
                _array(self._draw_keys(keys_rng, rows), self._draw_nulls(nulls_rng, rows)),
                _array(np.arange(start, start + rows, dtype=np.int64)),
                _array(values_rng.random(rows)),
                self._draw_notes(notes_rng, rows),
            ],
            schema=SCHEMA,
        )

    def _draw_keys(self, rng: np.random.Generator, rows: int) -> npt.NDArray[np.int64]:
        if self._skew == 0:
            return rng.integers(0, self._keys, rows)
        ends = self._distribution
        ranks = np.searchsorted(ends, rng.random(rows) * ends[-1], side="right")
        keys: npt.NDArray[np.int64] = np.minimum(ranks, self._keys - 1).astype(np.int64)
        return keys

    def _draw_nulls(self, rng: np.random.Generator, rows: int) -> npt.NDArray[np.bool_] | None:
        return rng.random(rows) < self._null_fraction if self._null_fraction else None

    def _draw_notes(self, rng: np.random.Generator, rows: int) -> pa.Array:
        width = self._payload_bytes
        letters = rng.integers(ord("a"), ord("z"), rows * width, dtype=np.uint8, endpoint=True)
        offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
        return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters))


def _array(
    values: npt.NDArray[np.int64] | npt.NDArray[np.float64], nulls: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """As ``pyarrow.array``, which would import pandas to ask whether this is a pandas object."""
    valid = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [valid, pa.py_buffer(values)])


def generated(
    rows: int,
    keys: int,
    *,
    skew: float = 0.0,
    seed: int = 0,
    payload_bytes: int = 32,
    null_fraction: float = 0.0,
    name: str = "generated",
) -> GeneratedSource:
    """Rows with a key ``k`` in 0..keys-1, a row number ``id``, a ``value`` in 0..1 and a ``note`` of random letters.

    With ``skew`` the keys follow a Zipf law with that exponent, key 0 being the most frequent; this takes 8 bytes of
    memory a key. ``null_fraction`` of the keys are null. The rows depend on the arguments alone, never on batch size.

    >>> source = generated(10, keys=3, seed=1)
    >>> next(source.batches(BatchSizes(first=4))).num_rows
    4
    """
    return GeneratedSource(
        rows, keys, skew=skew, seed=seed, payload_bytes=payload_bytes, null_fraction=null_fraction, name=name
    )
