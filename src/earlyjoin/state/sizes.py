"""How much memory Arrow data takes, also where Arrow's own ``nbytes`` counts what slices merely share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_INLINE = 12
"""Bytes that a string view holds itself; longer ones lie in a data buffer."""


def batch_nbytes(batch: pa.RecordBatch) -> int:
    """Bytes of the rows of a batch: a slice counts for its part, so the slices of a batch add up to about the whole."""
    return sum(map(array_nbytes, batch.columns))


def array_nbytes(values: pa.Array) -> int:
    """Bytes of the values of an array; see :func:`batch_nbytes`."""
    type_ = values.type
    if pa.types.is_string_view(type_) or pa.types.is_binary_view(type_):
        validity, views, *_ = values.buffers()
        lengths = np.frombuffer(views, dtype=np.int32)[::4][values.offset : values.offset + len(values)]
        shared = int(lengths[lengths > _INLINE].sum(dtype=np.int64))
        return 16 * len(values) + shared + (len(values) // 8 if validity is not None else 0)
    if pa.types.is_dictionary(type_):
        # The dictionary is shared by all slices: count at most one entry a row.
        entries = max(1, len(values.dictionary))
        share = min(1.0, len(values) / entries)
        return int(values.indices.nbytes + share * array_nbytes(values.dictionary))
    return int(values.nbytes)


def likely_row_nbytes(schema: pa.Schema) -> int:
    """A guess at the size of a row before any has been seen."""
    sizes = []
    for field in schema:
        try:
            sizes.append(max(1, field.type.bit_width // 8))
        except ValueError:
            sizes.append(40)
    return int(max(1, sum(sizes)))
