"""Data that can be read only once, given twice."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.errors import InputError
from earlyjoin.local.sources import Reliable, SimulatedSource, open_source
from earlyjoin.local.sources.piping import once

TABLE = pa.table({"k": [1, 2, 3], "a": ["x", "y", "z"]})


class Stream:
    """An Arrow stream that hands on a reader, and so gives its rows once."""

    def __init__(self) -> None:
        self._reader = TABLE.to_reader()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._reader.__arrow_c_stream__(requested_schema)


def generator() -> Iterator[pa.RecordBatch]:
    yield from TABLE.to_batches()


SHARED = {
    "reader": TABLE.to_reader,
    "generator": generator,
    "iterator": lambda: iter(TABLE.to_batches()),
    "stream": Stream,
    "source": lambda: open_source(generator(), name="mine"),
    "network": lambda: SimulatedSource(open_source(TABLE.to_reader(), name="mine"), Reliable(0)),
}


@pytest.mark.parametrize("kind", list(SHARED))
def test_one_reader_on_both_sides_is_refused(kind: str) -> None:
    data: Any = SHARED[kind]()
    with pytest.raises(InputError, match=r"can be read only once; read it into a table first .* or open it once for"):
        ej.join(data, data, on="k")


@pytest.mark.parametrize("kind", list(SHARED))
def test_one_reader_twice_among_many_is_refused(kind: str) -> None:
    data: Any = SHARED[kind]()
    with pytest.raises(InputError, match=r"are the same .* can be read only once"):
        ej.multi_join({"a": data, "b": TABLE, "c": data}, on="k")


def test_the_message_names_inputs_and_object() -> None:
    reader = TABLE.to_reader()
    with pytest.raises(InputError, match="inputs 'b' and 'c' are the same RecordBatchReader"):
        ej.multi_join({"a": TABLE, "b": reader, "c": reader}, on="k")


@pytest.mark.parametrize("kind", ["reader", "generator", "source"])
def test_what_an_earlier_query_has_read_is_refused(kind: str) -> None:
    data: Any = SHARED[kind]()
    assert ej.join(data, TABLE, on="k").to_arrow().num_rows == 3
    with pytest.raises(InputError, match=r"another query has already read from this .* read it into a table first"):
        ej.join(data, TABLE, on="k").to_arrow()


def test_a_generator_whose_first_item_was_taken_for_its_columns_is_refused() -> None:
    batches = generator()
    first = ej.join(batches, TABLE, on="k")
    with pytest.raises(InputError, match="already read"):
        ej.join(batches, TABLE, on="k")
    assert first.to_arrow().num_rows == 3


def test_a_reader_of_which_nothing_was_read_serves_another_query() -> None:
    reader = TABLE.to_reader()
    assert ej.join(reader, TABLE, on="k").explain()
    assert ej.join(reader, TABLE, on="k").to_arrow().num_rows == 3


def test_two_queries_that_begin_later_do_not_share_rows() -> None:
    reader = TABLE.to_reader()
    first, second = ej.join(reader, TABLE, on="k"), ej.join(reader, TABLE, on="k")
    assert first.to_arrow().num_rows == 3
    with pytest.raises(InputError, match="already read"):
        second.to_arrow()


class Again:
    """Batches that can be iterated again and again."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(TABLE.to_batches())


@pytest.mark.parametrize("data", [TABLE, TABLE.to_batches(), Again()], ids=["table", "list", "iterable"])
def test_what_can_be_read_again_joins_itself(data: Any) -> None:
    for _ in range(2):
        assert ej.join(data, data, on="k").to_arrow().num_rows == 3


def test_nothing_is_remembered_of_objects_that_are_gone() -> None:
    reader = TABLE.to_reader()
    ej.join(reader, TABLE, on="k").to_arrow()
    identity = id(reader)
    assert identity in once._taken
    del reader
    gc.collect()
    assert identity not in once._taken


def test_inputs_that_were_opened_beforehand_are_told_apart() -> None:
    reader = pa.RecordBatchReader.from_batches(pa.schema([("k", pa.int64())]), iter([]))
    with pytest.raises(InputError, match="inputs 'left' and 'right' are the same"):
        ej.join(ej.source(reader), ej.source(reader), on="k")
