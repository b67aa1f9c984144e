"""Texts of many columns in one value a row, and back into columns; who packs knows their lengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.kernels.side_by_side import put_texts, take_texts
from earlyjoin.predicates.encoding.buffers import byte_strings, validity

TEXTS = frozenset((pa.string(), pa.large_string(), pa.binary(), pa.large_binary()))
"""What can lie side by side: bytes of any length, in one buffer."""
Lengths = npt.NDArray[np.uint32]
"""Of texts: a row for each row, a column for each text."""


def text_lengths(texts: Sequence[pa.Array]) -> Lengths:
    """A row for each text, a column for each row; nulls have no length, whatever lies under them."""
    lengths = np.zeros((len(texts), len(texts[0]) if texts else 0), dtype=np.uint32)
    for text, length in zip(texts, lengths, strict=True):
        length[:] = np.diff(byte_strings(text).offsets)
        valid = validity(text)
        if valid is not None:
            length[~valid] = 0
    return lengths


def side_by_side(texts: Sequence[pa.Array], lengths: Lengths) -> pa.Array:
    """The texts of each row in one value; here ``lengths`` has a row for each text."""
    rows = lengths.shape[1]
    offsets = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(lengths.sum(axis=0, dtype=np.int64), out=offsets[1:])
    data, ends = np.empty(int(offsets[-1]), dtype=np.uint8), offsets[:-1].copy()
    for text, length in zip(texts, lengths, strict=True):
        held = byte_strings(text)
        put_texts(held.data, held.offsets[:-1], length, data, ends)
    return pa.Array.from_buffers(pa.large_binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def apart(
    packed: pa.Array,
    lengths: Lengths,
    chosen: Sequence[int],
    columns: Sequence[tuple[pa.DataType, pa.Buffer | None]],
) -> list[pa.Array]:
    """The chosen texts, by number, as columns of the types and with the validity that are given."""
    rows, held = len(packed), byte_strings(packed)
    slots = np.full(lengths.shape[1], -1, dtype=np.int64)
    slots[list(chosen)] = np.arange(len(chosen))
    ends = np.zeros((len(chosen), rows + 1), dtype=np.int64)
    np.cumsum(lengths[:, list(chosen)].T, axis=1, out=ends[:, 1:])
    starts = np.concatenate(([0], np.cumsum(ends[:, -1])))
    out = np.empty(int(starts[-1]), dtype=np.uint8)
    take_texts(held.data, held.offsets[:-1], lengths, slots, out, starts[:-1].copy())
    data, wide, narrow = pa.py_buffer(out), pa.py_buffer(ends), pa.py_buffer(ends.astype(np.int32))
    arrays = []
    for at, (type_, valid) in enumerate(columns):
        offsets = wide if type_ in _LARGE else narrow
        step, start, stop = offsets.size // max(1, len(chosen)), int(starts[at]), int(starts[at + 1])
        buffers = [valid, offsets.slice(at * step, step), data.slice(start, stop - start)]
        arrays.append(pa.Array.from_buffers(type_, rows, buffers))
    return arrays


_LARGE = frozenset((pa.large_string(), pa.large_binary()))
