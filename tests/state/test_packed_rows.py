"""Columns that travel side by side come out as they went in: types, nulls, slices, some or all of them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from earlyjoin.state.rows.packed import LEAST_COLUMNS, PACKED, PACKED_TEXTS, RowPacking, UnpackedRows
from earlyjoin.state.rows.sizes import array_nbytes, likely_row_nbytes
from earlyjoin.state.rows.store import BatchRows

_ROWS = 21
_COLUMNS = {
    "b": pa.array([n % 3 == 0 for n in range(_ROWS)]),
    "i1": pa.array(range(_ROWS), pa.int8()),
    "i2": pa.array([None, *range(1, _ROWS)], pa.int16()),
    "i4": pa.array([None] * _ROWS, pa.uint32()),
    "f2": pa.array(np.arange(_ROWS, dtype=np.float16)),
    "f8": pa.array([n / 7 if n % 2 else None for n in range(_ROWS)]),
    "day": pa.array([dt.date(2020, 1, 1 + n) for n in range(_ROWS)]),
    "at": pa.array([dt.datetime(2020, 1, 1, n % 24) for n in range(_ROWS)], pa.timestamp("us", "UTC")),
    "price": pa.array([Decimal(n) / 100 for n in range(_ROWS)], pa.decimal128(20, 2)),
    "large": pa.array([Decimal(n) if n % 5 else None for n in range(_ROWS)], pa.decimal256(50, 0)),
    "tag": pa.array([bytes([n, n, n]) for n in range(_ROWS)], pa.binary(3)),
    "text": pa.array([None if n % 6 == 1 else "é" * (n % 4) for n in range(_ROWS)]),
    "long_text": pa.array([str(n) * n for n in range(_ROWS)], pa.large_string()),
    "bytes": pa.array([None] * _ROWS, pa.binary()),
    "long_bytes": pa.array([bytes(n) if n % 2 else None for n in range(_ROWS)], pa.large_binary()),
    "null_b": pa.array([None if n % 4 else True for n in range(_ROWS)], pa.bool_()),
}


def _wide() -> pa.RecordBatch:
    columns = {f"{name}_{number}": column for number in range(3) for name, column in _COLUMNS.items()}
    key, view = pa.array(range(_ROWS)), pa.array([str(n) for n in range(_ROWS)], pa.string_view())
    return pa.RecordBatch.from_pydict({"k": key, **columns, "view": view})


def _packing() -> RowPacking:
    packing = RowPacking.of(_wide().schema, {"k"})
    assert packing is not None
    return packing


@pytest.mark.parametrize(("start", "rows"), [(0, _ROWS), (3, 10), (5, 1), (4, 0)])
def test_columns_come_out_as_they_went_in(start: int, rows: int) -> None:
    batch, packing = _wide().slice(start, rows), _packing()
    packed = packing.pack(batch)
    assert packed.schema.names == ["k", "view", PACKED, PACKED_TEXTS]
    columns = UnpackedRows(BatchRows(packed), packing).take(np.arange(rows))
    for column, expected in zip(columns, batch.columns, strict=True):
        column.validate(full=True)
        assert column.equals(expected)


def test_some_columns_of_some_rows() -> None:
    batch, packing = _wide(), _packing()
    rows, wanted, index = (
        UnpackedRows(BatchRows(packing.pack(batch)), packing),
        [30, 2, 0, 6, 13, 16, 48],
        np.array([7, 3, 3, 0]),
    )
    taken = rows.take(index, wanted)
    assert [column.to_pylist() for column in taken] == [
        batch.column(p).take(pa.array(index)).to_pylist() for p in wanted
    ]
    assert all(size <= rows.widest(wanted) for size in rows.sizes(index, wanted))


def test_a_slice_of_packed_rows() -> None:
    batch, packing = _wide(), _packing()
    sliced = packing.pack(batch).slice(6, 9)
    taken = UnpackedRows(BatchRows(sliced), packing).take(np.arange(9), [5, 6])
    assert [column.equals(batch.column(p).slice(6, 9)) for column, p in zip(taken, [5, 6], strict=True)] == [True] * 2


def test_few_columns_and_repeated_names_travel_as_they_are() -> None:
    few = pa.schema([(f"c{n}", pa.int64()) for n in range(LEAST_COLUMNS)])
    assert RowPacking.of(few, {"c0"}) is None
    assert RowPacking.of(few, ()) is not None
    assert RowPacking.of(pa.schema([*few, ("c1", pa.int64())]), ()) is None


def test_texts_under_nulls_do_not_travel() -> None:
    texts = pa.array(["kept", "hidden", "kept too"])
    hidden = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x05"), *texts.buffers()[1:]])
    batch = pa.record_batch({f"c{n}": hidden for n in range(LEAST_COLUMNS)})
    packing = RowPacking.of(batch.schema, ())
    assert packing is not None
    packed = packing.pack(batch)
    assert b"hidden" not in packed.column(PACKED_TEXTS).buffers()[2].to_pybytes()
    columns = UnpackedRows(BatchRows(packed), packing).take(np.arange(3))
    assert [column.to_pylist() for column in columns] == [["kept", None, "kept too"]] * LEAST_COLUMNS


def test_sizes_are_no_less_than_what_rows_take() -> None:
    batch, packing = _wide(), _packing()
    rows = UnpackedRows(BatchRows(packing.pack(batch)), packing)
    index = np.arange(_ROWS)
    taken = rows.take(index)
    assert rows.sizes(index).sum() >= sum(array_nbytes(column) for column in taken)


def test_packed_texts_are_likely_to_be_as_wide_as_their_columns() -> None:
    batch, packing = _wide(), _packing()
    assert likely_row_nbytes(packing.packed_schema) >= 0.9 * likely_row_nbytes(batch.schema)
