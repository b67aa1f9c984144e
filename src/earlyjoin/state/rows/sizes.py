"""How much memory Arrow data takes, also where Arrow's own ``nbytes`` counts what slices merely share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.kernels.views import outside_bytes

_FLAT = frozenset(
    type_.id
    for type_ in (
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.decimal128(1), pa.decimal256(1), pa.date32(), pa.date64()),
        *(pa.timestamp("us"), pa.time32("s"), pa.time64("us"), pa.duration("us")),
        *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(1)),
    )
)
"""Types whose own size tells the truth: most columns, so they are asked first."""


LIKELY_NBYTES = b"earlyjoin.likely_nbytes"
"""In the metadata of a field: how large a value is likely to be, where the type does not tell."""


def batch_nbytes(batch: pa.RecordBatch) -> int:
    """Bytes of the rows of a batch: a slice counts for its part, so the slices of a batch add up to about the whole."""
    return sum(map(array_nbytes, batch.columns))


def array_nbytes(values: pa.Array) -> int:
    """Bytes of the values of an array; see :func:`batch_nbytes`."""
    type_ = values.type
    if type_.id in _FLAT:
        return int(values.nbytes)
    if len(values) == 0:
        return 0
    if pa.types.is_string_view(type_) or pa.types.is_binary_view(type_):
        validity, views, *_ = values.buffers()
        first = values.offset
        shared = outside_bytes(np.frombuffer(views, dtype=np.int32), first, first + len(values))
        return 16 * len(values) + shared + (len(values) // 8 if validity is not None else 0)
    if pa.types.is_dictionary(type_):
        # The dictionary is shared by all slices: count at most one entry a row.
        entries = max(1, len(values.dictionary))
        share = min(1.0, len(values) / entries)
        return int(values.indices.nbytes + share * array_nbytes(values.dictionary))
    if isinstance(type_, pa.BaseExtensionType):
        return array_nbytes(values.storage)
    children = _children(values)
    if children is None:
        return int(values.nbytes)
    validity = values.buffers()[0]
    return sum(map(array_nbytes, children)) + (len(values) // 8 if validity is not None else 0)


def _children(values: pa.Array) -> list[pa.Array] | None:
    """What lies inside nested values, offsets included, cut to the rows of a slice; None for flat values."""
    is_, type_ = pa.types, values.type
    if is_.is_struct(type_):
        return [values.field(position) for position in range(type_.num_fields)]
    if is_.is_list(type_) or is_.is_large_list(type_) or is_.is_map(type_):
        offsets = values.offsets
        start, stop = offsets[0].as_py(), offsets[-1].as_py()
        return [offsets, values.values.slice(start, stop - start)]
    if is_.is_fixed_size_list(type_):
        return [values.values.slice(values.offset * type_.list_size, len(values) * type_.list_size)]
    return None


def likely_row_nbytes(schema: pa.Schema) -> int:
    """A guess at the size of a row before any has been seen."""
    sizes = []
    for field in schema:
        try:
            sizes.append(max(1, field.type.bit_width // 8))
        except ValueError:
            sizes.append(int((field.metadata or {}).get(LIKELY_NBYTES, 40)))
    return int(max(1, sum(sizes)))


def wide_row_nbytes(schema: pa.Schema) -> int:
    """A row that is wider than most of its schema: what to be prepared for before any has been seen."""
    return likely_row_nbytes(schema) + 1024 * len(flexible_columns(schema))


def flexible_columns(schema: pa.Schema) -> list[str]:
    """Columns whose values can be of any width."""
    return [field.name for field in schema if not _has_fixed_width(field.type)]


def _has_fixed_width(type_: pa.DataType) -> bool:
    try:
        return bool(type_.bit_width)
    except ValueError:
        return False


def value_sizes(values: pa.Array) -> npt.NDArray[np.int64] | int:
    """Bytes that each value will take in an output; one number, the average, for types that are not measured."""
    type_ = values.type
    if pa.types.is_string_view(type_) or pa.types.is_binary_view(type_):
        lengths = np.frombuffer(values.buffers()[1] or b"", dtype=np.int32)[::4]
        return 16 + lengths[values.offset : values.offset + len(values)].astype(np.int64)
    for test, offset_type in _OFFSET_TYPES:
        if test(type_):
            offsets = np.frombuffer(values.buffers()[1] or b"", dtype=offset_type)
            return 16 + np.diff(offsets[values.offset : values.offset + len(values) + 1]).astype(np.int64)
    return array_nbytes(values) // max(1, len(values)) + 1


_OFFSET_TYPES = (
    (pa.types.is_string, np.int32),
    (pa.types.is_binary, np.int32),
    (pa.types.is_large_string, np.int64),
    (pa.types.is_large_binary, np.int64),
)
