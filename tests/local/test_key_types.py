"""Every type of key against every other that it may meet, in every join type, with nulls, against a nested loop."""

from __future__ import annotations

import itertools
import math
import uuid
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.errors import UnsupportedError

_NAN = float("nan")
_NUMBERS = [1, 0, None, 1, 2, 7]
_TEXTS = ["a", None, "", "a", "longer than twelve bytes", "b"]
_LISTS = [[1.0, _NAN], [0.0, None], [-0.0, None], None, [1.0, 2.0], [1.0, 2.0]]
_STRUCTS = [
    {"a": 1, "b": ["x"]},
    {"a": None, "b": ["x"]},
    {"a": 1, "b": None},
    {"a": 1, "b": []},
    None,
    {"a": 1, "b": ["x"]},
]
_UUIDS = [b"a" * 16, b"b" * 16, None, b"a" * 16, b"c" * 16, None]
_INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
_LAYOUTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]

FAMILIES: dict[str, list[pa.Array]] = {
    "numbers": [
        *(pa.array(_NUMBERS, type_) for type_ in [*_INTEGERS, pa.float32(), pa.float64(), pa.decimal128(38, 2)]),
        pa.array([True, False, None, True, True, False]),
    ],
    "texts": [
        *(pa.array(_TEXTS, type_) for type_ in (pa.string(), pa.large_string(), pa.string_view())),
        pa.array(_TEXTS).dictionary_encode(),
    ],
    "bytes": [
        *(pa.array(_UUIDS, type_) for type_ in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(16))),
        pa.array(_UUIDS, pa.uuid()),
    ],
    "times": [
        pa.array(_NUMBERS, pa.int32()).cast(pa.date32()),
        *(pa.array(_NUMBERS, pa.int64()).cast(pa.timestamp(unit)) for unit in ("s", "ms", "us")),
    ],
    "lists": [
        *(pa.array(_LISTS, layout(pa.float64())) for layout in _LAYOUTS),
        pa.array(_LISTS, pa.list_(pa.float32(), 2)),
    ],
    "structs": [
        pa.array(_STRUCTS, pa.struct({"a": pa.int64(), "b": pa.list_(pa.string())})),
        pa.array(_STRUCTS, pa.struct({"a": pa.float32(), "b": pa.large_list(pa.large_string())})),
    ],
}
PAIRS = [pair for family in FAMILIES.values() for pair in itertools.product(family, family)]
ALGORITHMS = itertools.cycle(["auto", "shj", "ehj", "pmj", "hmj", "smj", "nested"])
MEMORY = itertools.cycle(["64MB", "300KB"])


def _plain(value: Any) -> Any:
    """A value in a form in which Python's ``==`` means what a join means."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, dict):
        return tuple((name, _plain(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return value


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    return [_plain(value) for value in column.to_pylist()]


def _expected(left: pa.Array, right: pa.Array, how: str) -> Counter[Any]:
    lefts, rights = _values(left), _values(right)
    pairs = [(i, j) for i, a in enumerate(lefts) for j, b in enumerate(rights) if a is not None and a == b]
    hit, met = {i for i, _ in pairs}, {j for _, j in pairs}
    lonely = [(i, None) for i in range(len(lefts)) if i not in hit]
    if how in ("semi", "anti"):
        return Counter([(i, None) for i in hit] if how == "semi" else lonely)
    rows: list[Any] = list(pairs)
    rows += lonely if how in ("left", "full") else []
    rows += [(None, j) for j in range(len(rights)) if j not in met] if how in ("right", "full") else []
    return Counter(rows)


def _joined(left: pa.Array, right: pa.Array, how: str, **options: Any) -> pa.Table:
    lefts, rights = pa.table({"k": left, "x": range(len(left))}), pa.table({"k": right, "y": range(len(right))})
    return ej.join(lefts, rights, on="k", how=how, **options).to_arrow()


def _rows(table: pa.Table) -> Counter[Any]:
    seconds = table["y"].to_pylist() if "y" in table.column_names else [None] * len(table)
    return Counter(zip(table["x"].to_pylist(), seconds, strict=True))


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_pair_of_types(family: str, how: str) -> None:
    for left, right in itertools.product(FAMILIES[family], FAMILIES[family]):
        algorithm = next(ALGORITHMS)
        table = _joined(left, right, how, algorithm=algorithm, memory=next(MEMORY))
        assert _rows(table) == _expected(left, right, how), (left.type, right.type, algorithm)
        if how == "full":  # the key is that of the side that has the row
            sides = (_values(left), _values(right))
            for x, y, key in zip(
                *(table[name].to_pylist() for name in ("x", "y")), _values(table["k"].combine_chunks()), strict=True
            ):
                assert key == (sides[0][x] if x is not None else sides[1][y])


def test_a_boolean_does_not_swallow_integers() -> None:
    table = _joined(pa.array([True, False]), pa.array([1, 7]), "full")
    assert sorted(table["k"].to_pylist()) == [0, 1, 7]
    decimals = pa.array([Decimal("1.00"), Decimal("7.50")])
    assert sorted(_joined(pa.array([True, False]), decimals, "full")["k"].to_pylist()) == [0, 1, Decimal("7.5")]


@pytest.mark.parametrize("algorithm", ["ehj", "pmj", "hmj"])
@pytest.mark.parametrize("family", ["lists", "structs"])
def test_nested_keys_survive_spills_and_a_pause(family: str, algorithm: str, tmp_path: Path) -> None:
    column = pa.concat_arrays([FAMILIES[family][0]] * 50)
    left, right = pa.table({"k": column, "x": range(300)}), pa.table({"k": column[:6], "y": range(6)})
    query = ej.join(left, right, on="k", how="full", memory="300KB", algorithm=algorithm)
    query.head(1)
    query.pause(tmp_path / "state")
    again = ej.resume(tmp_path / "state", left=left, right=right)
    assert _rows(again.to_arrow()) == _expected(column, column[:6], "full")


def test_nested_keys_of_three_inputs() -> None:
    column = FAMILIES["structs"][0]
    found = ej.multi_join({name: pa.table({"k": column}) for name in "abc"}, on="k").to_arrow()
    assert found.num_rows == 2**3 + 3


_CODES = pa.array([0, 1, 0, 1, 0], pa.int8())
_SPARSE = pa.UnionArray.from_sparse(_CODES, [pa.array([1, 7, None, 7, 1]), pa.array(["x", "x", "x", None, "x"])])
_DENSE = pa.UnionArray.from_dense(
    _CODES, pa.array([0, 0, 1, 1, 0], pa.int32()), [pa.array([1, None]), pa.array(["x", None])]
)


@pytest.mark.parametrize("keys", [_SPARSE, _DENSE], ids=["sparse", "dense"])
def test_a_union_whose_value_is_null_is_null(keys: pa.Array) -> None:
    """As in DuckDB."""
    left, right = pa.table({"k": keys, "a": range(5)}), pa.table({"k": keys, "b": range(5)})
    pairs = [(0, 0), (0, 4), (1, 1), (4, 0), (4, 4)]
    found = ej.join(left, right, on="k").to_arrow()
    assert sorted(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True)) == pairs
    assert sorted(ej.join(left, right, on="k", how="anti").to_arrow()["a"].to_pylist()) == [2, 3]
    nulls = ej.join(left, right, on=ej.equal("k", null_safe=True)).to_arrow()
    both = sorted(zip(nulls["a"].to_pylist(), nulls["b"].to_pylist(), strict=True))
    assert both == sorted([*pairs, (2, 2), (2, 3), (3, 2), (3, 3)])


def test_nulls_of_unions_inside_structs_are_equal() -> None:
    """As all nulls inside structs are."""
    keys = pa.StructArray.from_arrays([_SPARSE], ["u"])
    left, right = pa.table({"k": keys, "a": range(5)}), pa.table({"k": keys, "b": range(5)})
    found = ej.join(left, right, on="k").to_arrow()
    pairs = {(a, b) for a, b in zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True) if {a, b} <= {2, 3}}
    assert pairs == {(2, 2), (2, 3), (3, 2), (3, 3)}


def test_maps_are_no_keys_and_unions_have_no_order() -> None:
    maps = pa.table({"k": pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))})
    with pytest.raises(UnsupportedError, match="maps are not compared"):
        ej.join(maps, maps, on="k")
    unions = pa.table({"k": _SPARSE})
    with pytest.raises(UnsupportedError, match="only compared for equality"):
        ej.join(unions, unions, on=ej.less("k", "k"))
