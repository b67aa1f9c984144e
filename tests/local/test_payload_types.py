"""Columns of types that Arrow cannot gather pass through every join type, through spills and through a pause."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import earlyjoin as ej

ROWS = 4
_CODES, _PLACES = pa.array([0, 1, 0, 1], pa.int8()), pa.array([0, 0, 1, 1], pa.int32())
_OFFSETS = pa.array([0, 1, 1, 3, 4], pa.int32())
_CHOSEN = pa.array([0, None, 1, 0], pa.int32())
_ENDS = pa.array([2, 3, 4], pa.int32())
_LISTS = [["a"], None, ["b", "longer than twelve bytes"], []]
_sparse = pa.UnionArray.from_sparse(_CODES, [pa.array([1, None, 3, 4]), pa.array(["a", "b", "c", None])])
_dense = pa.UnionArray.from_dense(_CODES, _PLACES, [pa.array([1, None]), pa.array(["b", None])])

COLUMNS: dict[str, pa.Array] = {
    "sparse union": _sparse,
    "dense union": _dense,
    "struct of unions": pa.StructArray.from_arrays([_sparse], ["u"], mask=pa.array([False, True, False, False])),
    "list of unions": pa.ListArray.from_arrays(_OFFSETS, _dense),
    "map to unions": pa.MapArray.from_arrays(_OFFSETS, pa.array(["a", "b", "c", "d"]), _sparse),
    "fixed-size list of unions": pa.FixedSizeListArray.from_arrays(pa.concat_arrays([_dense, _dense]), 2),
    "dictionary of lists": pa.DictionaryArray.from_arrays(_CHOSEN, pa.array([[1], [2, 3]])),
    "dictionary of structs": pa.DictionaryArray.from_arrays(_CHOSEN, pa.array([{"a": 1}, {"a": None}])),
    "dictionary of uuids": pa.DictionaryArray.from_arrays(_CHOSEN, pa.array([b"a" * 16, b"b" * 16], pa.uuid())),
    "run ends": pa.RunEndEncodedArray.from_arrays(_ENDS, pa.array(["a", None, "b"])),
    "run ends of lists": pa.RunEndEncodedArray.from_arrays(_ENDS, pa.array([[1], None, [2]])),
    "list view": pa.array(_LISTS, pa.list_view(pa.string_view())),
    "large list view": pa.array(_LISTS, pa.large_list_view(pa.string())),
}
ALGORITHMS = itertools.cycle(["auto", "shj", "ehj", "pmj", "hmj", "smj", "nested"])
LEFT_KEYS, RIGHT_KEYS = [1, 2, 3, 4], [2, 3, 3, 9]


def _expected(values: list[object], how: str, copies: int) -> Counter[str]:
    pairs = [(i, j) for i in range(ROWS) for j in range(ROWS) if LEFT_KEYS[i] == RIGHT_KEYS[j]]
    rows = [(values[i], values[j]) for i, j in pairs] * copies
    if how in ("left", "full"):
        matched = {i for i, _ in pairs}
        rows += [(values[i], None) for i in range(ROWS) if i not in matched] * copies
    if how in ("right", "full"):
        matched = {j for _, j in pairs}
        rows += [(None, values[j]) for j in range(ROWS) if j not in matched]
    return Counter(map(repr, rows))


def _got(table: pa.Table) -> Counter[str]:
    table.validate(full=True)
    return Counter(map(repr, zip(table["p"].to_pylist(), table["q"].to_pylist(), strict=True)))


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_passes(name: str, how: str) -> None:
    column = COLUMNS[name]
    left, right = pa.table({"k": LEFT_KEYS, "p": column}), pa.table({"k": RIGHT_KEYS, "q": column})
    for memory, copies in (("64MB", 1), ("100KB", 60)):
        query = ej.join(
            pa.concat_tables([left] * copies), right, on="k", how=how, memory=memory, algorithm=next(ALGORITHMS)
        )
        table = query.to_arrow()
        assert [table.schema.field(one).type for one in ("p", "q")] == [column.type] * 2
        assert _got(table) == _expected(column.to_pylist(), how, copies)


@pytest.mark.parametrize("algorithm", ["shj", "ehj", "pmj"])
@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_survives_a_pause(name: str, algorithm: str, tmp_path: Path) -> None:
    column = COLUMNS[name]
    left = pa.concat_tables([pa.table({"k": LEFT_KEYS, "p": column})] * 20)
    right = pa.table({"k": RIGHT_KEYS, "q": column})
    query = ej.join(left, right, on="k", how="full", memory="200KB", algorithm=algorithm)
    query.head(1)
    query.pause(tmp_path / "state")
    again = ej.resume(tmp_path / "state", left=left, right=right)
    assert _got(again.to_arrow()) == _expected(column.to_pylist(), "full", 20)


def test_slices_of_unions_keep_their_values() -> None:
    for name in ("sparse union", "dense union", "list view", "run ends"):
        column = COLUMNS[name].slice(1)
        table = ej.join(pa.table({"k": [1, 2, 3], "p": column}), pa.table({"k": [3, 2, 1]}), on="k").to_arrow()
        found = dict(zip(table["k"].to_pylist(), table["p"].to_pylist(), strict=True))
        assert [found[key] for key in (1, 2, 3)] == column.to_pylist()
