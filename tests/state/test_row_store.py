"""Rows by number, for every Arrow type: what went in comes out, and the books are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from earlyjoin.errors import BudgetExceeded
from earlyjoin.state.budget import Account, Budget, MemoryLimit
from earlyjoin.state.rows.storage import column_for, contiguous, take_array
from earlyjoin.state.rows.store import BatchRows, RowStore, empty_columns, one_batch
from state.arrow_columns import COLUMNS, without_nulls

relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck))
every_type = pytest.mark.parametrize("name", COLUMNS)


def account(bytes_: int = 10**8) -> Account:
    return Budget(MemoryLimit(bytes=bytes_)).account("payload")


def batch_of(*arrays: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(arrays), names=[f"c{i}" for i in range(len(arrays))])


def numbers(*rows: int) -> np.ndarray[Any, Any]:
    return np.asarray(rows, dtype=np.int64)


def check_equal(taken: pa.Array, type_: pa.DataType, values: list[Any]) -> None:
    taken.validate(full=True)
    assert taken.type == type_
    assert taken.to_pylist() == values


@every_type
def test_append_and_take_equal_concatenation(name: str) -> None:
    array = COLUMNS[name]
    store = RowStore(batch_of(array).schema, account())
    # A whole, slices with offsets, empty batches, nulls only late: the first parts are without.
    parts = [without_nulls(array), array.slice(3, 0), array.slice(3, 2), array, array.slice(1, 5), array.slice(6)]
    values: list[Any] = []
    for part in parts:
        assert store.append(batch_of(part)) == len(values)
        values += part.to_pylist()
        assert len(store) == len(values)
        assert store.nbytes == store._account.bytes
        assert store._account.rows == len(values)
    order = np.random.default_rng(5).integers(0, len(values), 40)
    for index in (numbers(), numbers(0), np.arange(len(values)), order, order[::-1].copy()):
        check_equal(store.take(index)[0], array.type, [values[i] for i in index])
    arrow = pa.concat_arrays([part for part in parts if len(part)])
    if not _has_views(array.type):
        assert store.take(order)[0].to_pylist() == arrow.take(pa.array(order)).to_pylist()
    store.clear()
    assert (len(store), store.nbytes, store._account.bytes, store._account.rows) == (0, 0, 0, 0)
    store.append(batch_of(array))
    check_equal(store.take(numbers(6, 1))[0], array.type, [array[6].as_py(), None])


def _has_views(type_: pa.DataType) -> bool:
    return "view" in str(type_) or "earlyjoin" in str(type_)


@every_type
def test_batch_rows_and_take_array(name: str) -> None:
    array = COLUMNS[name]
    for part in (array, array.slice(2, 4), array.slice(5, 0), without_nulls(array)):
        values, rows = part.to_pylist(), BatchRows(batch_of(part))
        assert len(rows) == len(part)
        orders = [numbers(), np.arange(len(part))]
        if len(part) > 2:
            orders += [numbers(2, 0, 0, 1), numbers(1, 2), numbers(2, 1)]
        for index in orders:
            check_equal(rows.take(index)[0], array.type, [values[i] for i in index])
            check_equal(take_array(part, pa.array(index)), array.type, [values[i] for i in index])


@every_type
def test_truncate(name: str) -> None:
    array = COLUMNS[name]
    store = RowStore(batch_of(array).schema, account())
    store.append(batch_of(array))
    store.append(batch_of(array.slice(2)))
    for length in (100, 9, 5, 5, 0):
        store.truncate(length)
        expected = (array.to_pylist() + array.slice(2).to_pylist())[:length]
        assert len(store) == len(expected) == store._account.rows
        assert store.nbytes == store._account.bytes
        check_equal(store.take(np.arange(len(store)))[0], array.type, expected)
    store.append(batch_of(array.slice(4)))
    check_equal(store.take(numbers(0, 1, 2))[0], array.type, array.slice(4).to_pylist())


@given(data=st.data())
@settings(relaxed, max_examples=100)
def test_a_refusal_leaves_the_store_as_it_was(data: st.DataObject) -> None:
    """Other holders squeeze the budget so that the refusal hits any column, in its values, heap, offsets or flags."""
    names = data.draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4))
    arrays = [COLUMNS[name] for name in names]
    budget = Budget(MemoryLimit(bytes=64 * 1024))
    store, squeeze = RowStore(batch_of(*arrays).schema, budget.account("payload")), budget.account("others")
    values: list[tuple[Any, ...]] = []
    for _ in range(data.draw(st.integers(1, 12))):
        squeeze.clear()
        start = data.draw(st.integers(0, 7))
        batch = batch_of(*(a.slice(start, data.draw(st.just(7 - start) | st.just(1))) for a in arrays[:1]))
        count = batch.num_rows
        batch = batch_of(*(a.slice(start, count) for a in arrays))
        if data.draw(st.booleans()):  # only rows without nulls, so that a null comes late
            plain = [i for i in range(count) if all(a[start + i].is_valid for a in arrays)]
            batch = batch.slice(plain[0], 1) if plain else batch.slice(0, 0)
        squeeze.reserve(max(0, 64 * 1024 - budget.used_bytes - data.draw(st.integers(0, 400))))
        try:
            first = store.append(batch)
            assert first == len(values)
            values += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        except BudgetExceeded:
            pass
        assert len(store) == len(values) == store._account.rows
        assert store.nbytes == store._account.bytes
        assert budget.peak_bytes <= 64 * 1024
        taken = [column.to_pylist() for column in store.take(np.arange(len(store)))]
        assert list(zip(*taken, strict=True)) == values


def test_a_refused_first_null_does_not_shift_the_nulls_that_follow() -> None:
    """Regression: the flags of the rows before the first null were refused, and later flags began at row 0."""
    budget = Budget(MemoryLimit(bytes=64 * 1024))
    for array in (pa.array([1, 2, None]), pa.array(["a", "b", None])):
        store, squeeze = RowStore(batch_of(array).schema, budget.account("payload")), budget.account("others")
        store.append(batch_of(array.slice(0, 2)))
        squeeze.reserve(64 * 1024 - budget.used_bytes)
        with pytest.raises(BudgetExceeded):
            store.append(batch_of(array.slice(2)))
        squeeze.clear()
        store.append(batch_of(array))
        assert store.take(np.arange(5))[0].to_pylist() == array.to_pylist()[:2] + array.to_pylist()
        store.clear()


def test_refused_by_rows() -> None:
    budget = Budget(MemoryLimit(rows=8))
    store = RowStore(pa.schema([("c0", pa.int64())]), budget.account("payload"))
    store.append(batch_of(pa.array([1, 2, 3, 4, 5])))
    with pytest.raises(BudgetExceeded):
        store.append(batch_of(pa.array([6, 7, 8, 9])))
    store.append(batch_of(pa.array([6, None, 8])))
    assert store.take(np.arange(8))[0].to_pylist() == [1, 2, 3, 4, 5, 6, None, 8]
    assert budget.used_rows == 8


def test_buffers_with_padding_behind_the_last_value() -> None:
    """Regression: 2 values of 3 bytes in a buffer of 8."""
    array = pa.Array.from_buffers(pa.binary(3), 2, [None, pa.py_buffer(b"abcdef\0\0")])
    store = RowStore(batch_of(array).schema, account())
    store.append(batch_of(array))
    assert store.take(numbers(1, 0))[0].to_pylist() == [b"def", b"abc"]


def test_dictionaries_that_differ_from_batch_to_batch() -> None:
    schema = pa.schema([("c0", pa.dictionary(pa.int8(), pa.string()))])
    store, values = RowStore(schema, account()), []
    for number in range(5):
        words = [f"{number}", "same", None, f"{number}"]
        store.append(batch_of(pa.array(words, pa.dictionary(pa.int8(), pa.string()))))
        values += words
    order = np.random.default_rng(1).permutation(20)
    check_equal(store.take(order)[0], schema.field(0).type, [values[i] for i in order])


def test_columns_are_chosen_by_position() -> None:
    batch = batch_of(pa.array([1, 2]), pa.array(["a", "b"]), pa.array([True, None]))
    store = RowStore(batch.schema, account())
    store.append(batch)
    for rows in (store, BatchRows(batch)):
        assert [a.to_pylist() for a in rows.take(numbers(1, 0), [2, 1])] == [[None, True], ["b", "a"]]
        assert rows.take(numbers(1, 0), []) == []
    assert store.batch(numbers(1)).equals(batch.slice(1))


def test_no_columns_at_all() -> None:
    budget = Budget(MemoryLimit(rows=8))
    store = RowStore(pa.schema([]), budget.account("payload"))
    assert store.append(empty_columns(3)) == 0
    assert store.append(empty_columns(5)) == 3
    assert (len(store), store.nbytes, budget.used_rows) == (8, 0, 8)
    assert store.take(numbers(7, 0)) == []
    batch = store.batch(numbers(7, 0, 0))
    assert (batch.num_rows, batch.num_columns) == (3, 0)
    with pytest.raises(BudgetExceeded):
        store.append(empty_columns(1))
    store.truncate(2)
    assert (len(store), budget.used_rows) == (2, 2)
    assert len(BatchRows(empty_columns(4))) == 4
    assert BatchRows(empty_columns(4)).take(numbers(2, 1)) == []


def test_one_batch() -> None:
    table = pa.table({"a": pa.chunked_array([[1, 2], [], [3]])})
    assert one_batch(table).to_pydict() == {"a": [1, 2, 3]}
    empty = one_batch(table.slice(0, 0))
    assert (empty.num_rows, empty.schema) == (0, table.schema)


@given(st.lists(st.integers(0, 5), max_size=6))
def test_contiguous(index: list[int]) -> None:
    assert contiguous(numbers(*index)) == (len(index) > 0 and index == list(range(index[0], index[0] + len(index))))


@every_type
def test_keep_closes_up_and_the_books_stay_right(name: str) -> None:
    array = COLUMNS[name]
    store = RowStore(batch_of(array).schema, account())
    values: list[Any] = []
    for part in (array, array.slice(2, 4), array):
        store.append(batch_of(part))
        values += part.to_pylist()
    random = np.random.default_rng(6)
    while values:
        index = np.flatnonzero(random.random(len(values)) < 0.7)
        store.keep(index)
        values = [values[i] for i in index]
        check_equal(store.take(np.arange(len(values)))[0], array.type, values)
        assert (store.nbytes, len(store)) == (store._account.bytes, store._account.rows)
        store.append(batch_of(array.slice(1, 1)))
        values += array.slice(1, 1).to_pylist()
        check_equal(store.take(np.arange(len(values)))[0], array.type, values)
        values = [] if len(values) < 3 else values
    store.clear()
    assert (store._account.bytes, store._account.rows) == (0, 0)


def test_nested_values_are_measured_once_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the fuzz: with batches of one row every result measured all chunks of all nested columns again."""
    column = column_for(pa.list_(pa.int64()), Budget(MemoryLimit(bytes=10**6)).account("rows"))
    for number in range(50):
        column.append(pa.array([[number] * 3], pa.list_(pa.int64())))
    monkeypatch.setattr("earlyjoin.state.rows.nested_columns.array_nbytes", None)
    widest = column.widest
    assert column.sizes(np.arange(50)).tolist() == [widest] * 50
    monkeypatch.undo()
    column.keep(np.array([3, 7]))
    assert column.sizes(np.arange(2)).tolist() == [widest] * 2
    column.truncate(1)
    assert column.nbytes < 2 * widest
    column.clear()
    assert column.widest == 0
