"""Keys that are views of text or bytes, with nulls, alone and beside a dictionary."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

import earlyjoin as ej

_TEXTS = pa.array(["a", None, "b", "a", None, "longer than twelve bytes"])
_CODED = _TEXTS.dictionary_encode()
COLUMNS = {
    "string": _TEXTS,
    "string view": _TEXTS.cast(pa.string_view()),
    "dictionary": _CODED,
    "dictionary of views": pa.DictionaryArray.from_arrays(_CODED.indices, _CODED.dictionary.cast(pa.string_view())),
}


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("right", COLUMNS)
@pytest.mark.parametrize("left", COLUMNS)
def test_views_with_nulls(left: str, right: str, how: str) -> None:
    def keys(left: pa.Array, right: pa.Array, algorithm: str) -> Counter[str]:
        query = ej.join(pa.table({"k": left}), pa.table({"k": right}), on="k", how=how, algorithm=algorithm)
        return Counter(query.to_arrow()["k"].to_pylist())

    for algorithm in ("auto", "shj"):
        assert keys(COLUMNS[left], COLUMNS[right], algorithm) == keys(_TEXTS, _TEXTS, "pmj")


def test_views_of_bytes_with_nulls() -> None:
    table = pa.table({"k": _TEXTS.cast(pa.binary()).cast(pa.binary_view())})
    assert ej.join(table, table, on="k").to_arrow().num_rows == 6
