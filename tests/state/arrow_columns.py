"""An array of every Arrow type family, with nulls, for the stores."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa


class Text(pa.ExtensionType):
    """An extension whose storage Arrow cannot gather."""

    def __init__(self) -> None:
        super().__init__(pa.string_view(), "earlyjoin.test.text")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Text:
        return cls()


_DAY, _MOMENT = dt.date(2024, 2, 29), dt.datetime(1969, 12, 31, 23, 59, 59)
_NUMBERS = [1, None, 3, 0, 127, None, 5]
_WORDS = ["a", None, "longer than twelve bytes", "", "ü", None, "z" * 100]
_DECIMALS = [Decimal("1.25"), None, Decimal("-999.99"), Decimal(0), Decimal("0.01"), None, Decimal(7)]


def _flat() -> dict[str, pa.Array]:
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {
        "bool": (pa.bool_(), [True, None, False, True, True, None, False]),
        "float16": (pa.float16(), [None if v is None else np.float16(v) for v in _NUMBERS]),
        "float32": (pa.float32(), [0.5, None, -0.0, 1e30, -1.5, None, float("inf")]),
        "float64": (pa.float64(), [0.5, None, -0.0, 1e300, -1.5, None, float("inf")]),
        "date32": (pa.date32(), [_DAY, None, _DAY, _DAY, dt.date(1, 1, 1), None, _DAY]),
        "date64": (pa.date64(), [_DAY, None, _DAY, _DAY, dt.date(1, 1, 1), None, _DAY]),
        "interval": (
            pa.month_day_nano_interval(),
            [(1, 2, 3), None, (0, 0, 0), (-1, 5, 6), (7, 8, 9), None, (1, 1, 1)],
        ),
        "null": (pa.null(), [None] * 7),
        "uuid": (pa.uuid(), [bytes([n] * 16) if n is not None else None for n in _NUMBERS]),
    }
    for type_ in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        columns[str(type_)] = (type_, _NUMBERS)
    for type_ in (pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(38, 2), pa.decimal256(76, 2)):
        columns[str(type_)] = (type_, _DECIMALS)
    for unit in ("s", "ms", "us", "ns"):
        columns[f"timestamp {unit}"] = (pa.timestamp(unit), [_MOMENT if v else None for v in _NUMBERS])
        columns[f"timestamp {unit} tz"] = (
            pa.timestamp(unit, "Europe/Berlin"),
            [_MOMENT if v else None for v in _NUMBERS],
        )
        columns[f"duration {unit}"] = (
            pa.duration(unit),
            [None if v is None else dt.timedelta(seconds=v) for v in _NUMBERS],
        )
        time = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
        columns[f"time {unit}"] = (time, [None if v is None else dt.time(v % 24, 5) for v in _NUMBERS])
    for type_ in (pa.string(), pa.large_string(), pa.string_view()):
        columns[str(type_)] = (type_, _WORDS)
    for type_ in (pa.binary(), pa.large_binary(), pa.binary_view()):
        columns[str(type_)] = (type_, [None if w is None else w.encode() + b"\0\xff" for w in _WORDS])
    for width in (0, 1, 3, 16):
        columns[f"binary {width}"] = (pa.binary(width), [None if v is None else bytes([v]) * width for v in _NUMBERS])
    return {name: pa.array(values, type_) for name, (type_, values) in columns.items()}


def _nested() -> dict[str, pa.Array]:
    lists: list[Any] = [["a", None], None, [], ["longer than twelve bytes"], ["b"], None, ["c", "d", "e"]]
    pairs = [None if v is None else v[:2] + ["x"] * (2 - len(v[:2])) for v in lists]
    structs: list[Any] = [{"s": "a", "n": 1}, None, {"s": None, "n": None}, {"s": "w" * 30, "n": 2}, {"s": "", "n": 3},
                          None, {"s": "b", "n": 4}]  # fmt: skip
    maps: list[Any] = [[("a", 1)], None, [], [("b", None), ("w" * 30, 2)], [("c", 3)], None, [("d", 4)]]
    found: dict[str, pa.Array] = {}
    for text in (pa.string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        found[f"list {text}"] = pa.array(lists, pa.list_(text))
        found[f"struct {text}"] = pa.array(structs, pa.struct([("s", text), ("n", pa.int32())]))
    found["large_list"] = pa.array(lists, pa.large_list(pa.string_view()))
    found["fixed_size_list"] = pa.array(pairs, pa.list_(pa.string_view(), 2))
    found["list_view"] = pa.array(lists, pa.list_view(pa.string()))
    found["map"] = pa.array(maps, pa.map_(pa.string(), pa.int32()))
    found["map of views"] = found["map"].cast(pa.map_(pa.string_view(), pa.int32()))
    found["list of structs"] = pa.array(
        [None if v is None else [v] for v in structs], pa.list_(found["struct string_view"].type)
    )
    found["list of booleans"] = pa.array([[True], None, [], [False, None], [True], None, []], pa.list_(pa.bool_()))
    found["dictionary"] = pa.array(_WORDS, pa.dictionary(pa.int8(), pa.string()))
    found["dictionary of integers"] = pa.array(_NUMBERS, pa.dictionary(pa.uint16(), pa.int64()))
    found["dictionary of views"] = pa.DictionaryArray.from_arrays(
        pa.array([0, None, 1, 2, 0, None, 1], pa.int32()),
        pa.array(["a", "longer than twelve bytes", ""], pa.string_view()),
    )
    found["extension"] = pa.ExtensionArray.from_storage(Text(), pa.array(_WORDS, pa.string_view()))
    return found


COLUMNS = _flat() | _nested()


def without_nulls(values: pa.Array) -> pa.Array:
    """The rows that are not null, gathered by slices, which every type has."""
    kept = [values.slice(i, 1) for i in range(len(values)) if values[i].is_valid]
    return pa.concat_arrays(kept) if kept else values.slice(0, 0)
