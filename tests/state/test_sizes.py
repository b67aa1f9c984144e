"""Sizes of slices add up to about the whole."""

from __future__ import annotations

import pyarrow as pa
import pytest

from earlyjoin.state.rows.sizes import array_nbytes, batch_nbytes, likely_row_nbytes
from state.arrow_columns import COLUMNS

LONG = [f"{number} is a string of more than twelve bytes" if number % 3 else None for number in range(5000)]
SHORT = [f"{number % 100}" for number in range(5000)]


@pytest.mark.parametrize("words", [LONG, SHORT], ids=["long", "short"])
@pytest.mark.parametrize(
    "type_",
    [pa.string_view(), pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()),
     pa.dictionary(pa.int32(), pa.large_string())],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("rows", [1, 7, 640])
def test_slices_add_up(words: list[str | None], type_: pa.DataType, rows: int) -> None:
    array = (
        pa.array(words).cast(type_)
        if not pa.types.is_dictionary(type_)
        else pa.array(words).dictionary_encode().cast(type_)
    )
    batch = pa.record_batch([array], names=["a"])
    whole = batch_nbytes(batch)
    parts = sum(batch_nbytes(batch.slice(start, rows)) for start in range(0, 5000, rows))
    # The validity and the offsets of a slice round up.
    rounding = 17 * -(-5000 // rows)
    if pa.types.is_dictionary(type_):
        # The dictionary is shared: at most one entry a row.
        entry = array.dictionary.nbytes / len(array.dictionary)
        assert 0.95 * whole <= parts <= 1.05 * (array.indices.nbytes + 5000 * entry) + rounding
    else:
        assert 0.95 * whole <= parts <= 1.05 * whole + rounding


def test_a_view_counts_what_it_points_to_and_not_what_it_shares() -> None:
    array = pa.array(["x" * 1_000_000, "short", None], pa.string_view())
    assert 1_000_000 <= array_nbytes(array) <= 1_000_100
    assert array_nbytes(array.slice(1)) < 100
    assert array_nbytes(array.slice(0, 0)) == 0
    words = pa.array(["x" * 1_000_000, "short"]).dictionary_encode()
    assert array_nbytes(words.slice(0, 0)) == 0


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_has_a_size(name: str) -> None:
    array = COLUMNS[name]
    sizes = [array_nbytes(array.slice(0, count)) for count in range(len(array) + 1)]
    assert sizes[0] == 0
    assert sizes == sorted(sizes)
    single = [array_nbytes(array.slice(row, 1)) for row in range(len(array))]
    if not pa.types.is_list_view(array.type):  # Arrow counts all of its values for every slice
        assert max(single) < 200
        assert sum(single) >= sizes[-1] - 4  # bits of validity are rounded down
    assert likely_row_nbytes(pa.schema([("a", array.type)])) >= 1


def test_guess_of_a_row() -> None:
    assert likely_row_nbytes(pa.schema([("a", pa.int64()), ("b", pa.int32()), ("c", pa.string())])) == 8 + 4 + 40
    assert likely_row_nbytes(pa.schema([])) == 1
