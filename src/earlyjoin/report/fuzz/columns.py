"""Random columns: keys whose values meet, payload of any type, nulls, skew and order."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

Rng = np.random.Generator

FAMILIES: dict[str, list[pa.DataType]] = {
    "integer": [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()],
    "float": [pa.float32(), pa.float64(), pa.float64()],
    "decimal": [pa.decimal128(9, 2), pa.decimal128(20, 4), pa.decimal128(38, 2)],
    "text": [
        pa.string(),
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
    "bytes": [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(4)],
    "boolean": [pa.bool_()],
    "date": [pa.date32(), pa.date64()],
    "timestamp": [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")],
    "instant": [pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Berlin")],
    "time": [pa.time32("s"), pa.time64("us"), pa.time64("ns")],
    "duration": [pa.duration("s"), pa.duration("us")],
}
"""Types by what their values mean: those of one family compare with each other."""

TEXT_FORM_FAMILIES = {"integer": [pa.int64()], "float": [pa.float64()], "text": [pa.string()]}
"""What CSV and JSON lines carry and give back as it was."""

_MEETING = {"integer": ("float", "decimal"), "date": ("timestamp",)}
_EPOCH = dt.datetime(2024, 2, 28)

PAYLOAD: list[pa.DataType] = [
    *(type_ for types in FAMILIES.values() for type_ in types),
    pa.null(),
    pa.float16(),
    pa.decimal256(50, 3),
    pa.month_day_nano_interval(),
    pa.dictionary(pa.int8(), pa.int64()),
    pa.list_(pa.int64()),
    pa.large_list(pa.string()),
    pa.list_(pa.int32(), 3),
    pa.list_view(pa.float64()),
    pa.struct({"a": pa.int64(), "b": pa.string()}),
    pa.struct({"v": pa.string_view(), "l": pa.list_(pa.int16())}),
    pa.list_(pa.struct({"a": pa.float64(), "d": pa.date32()})),
    pa.map_(pa.string(), pa.int64()),
    pa.list_(pa.list_(pa.string())),
    pa.list_(pa.binary_view()),
    pa.run_end_encoded(pa.int32(), pa.int64()),
    pa.dictionary(pa.int16(), pa.list_(pa.int64())),
    pa.sparse_union([pa.field("n", pa.int64()), pa.field("t", pa.string())]),
    pa.dense_union([pa.field("f", pa.float64()), pa.field("l", pa.list_(pa.int32()))]),
]


def key_pair(rng: Rng, families: Sequence[str], *, plain: bool) -> tuple[pa.DataType, pa.DataType, str]:
    """Two types that may meet, and their family; ``plain`` keeps to what text files carry."""
    known = TEXT_FORM_FAMILIES if plain else FAMILIES
    family = str(rng.choice([name for name in families if name in known]))
    others = [name for name in _MEETING.get(family, ()) if name in known and name in families]
    other = str(rng.choice(others)) if others and rng.random() < 0.2 else family
    left, right = (known[name][rng.integers(len(known[name]))] for name in (family, other))
    return left, right, other


def codes(rng: Rng, rows: int, distinct: int) -> np.ndarray[Any, Any]:
    """Which of the distinct values each row has: even or skewed, in order, in clusters or anyhow."""
    shape = rng.random()
    if shape < 0.5:
        drawn = rng.integers(0, distinct, rows)
    elif shape < 0.8:
        drawn = np.minimum(rng.zipf(1.3, rows) - 1, distinct - 1)
    else:
        drawn = np.where(rng.random(rows) < 0.3, 0, rng.integers(0, distinct, rows))
    order = rng.random()
    if order < 0.25:
        return np.sort(drawn)
    if order < 0.35:
        return np.sort(drawn)[::-1]
    if order < 0.5 and rows > 4:
        cut = int(rng.integers(1, rows))
        return np.concatenate([np.sort(drawn)[cut:], np.sort(drawn)[:cut]])
    return drawn


def key_column(rng: Rng, type_: pa.DataType, drawn: np.ndarray[Any, Any], *, nulls: float, odd: bool) -> pa.Array:
    """Values by their codes: the same code is the same value on both sides; ``odd`` brings in extremes and NaN."""
    distinct = int(drawn.max()) + 1 if len(drawn) else 1
    pool = [_value(type_, code, odd=odd) for code in range(distinct)]
    return _filled(type_, pool, drawn, rng.random(len(drawn)) < nulls)


def payload_column(rng: Rng, type_: pa.DataType, rows: int, *, odd: bool) -> pa.Array:
    """Values of any type, a fifth of them null at times."""
    size = int(rng.integers(1, 40))
    pool = [_value(type_, int(code), odd=odd) for code in rng.integers(0, 60, size)]
    return _filled(type_, pool, rng.integers(0, size, rows), rng.random(rows) < rng.choice([0, 0.2]))


def _filled(type_: pa.DataType, pool: list[Any], index: np.ndarray[Any, Any], null: np.ndarray[Any, Any]) -> pa.Array:
    values = [None if missing else pool[at] for at, missing in zip(index.tolist(), null.tolist(), strict=True)]
    if pt.is_union(type_):
        return _union(type_, pool, index)
    if pt.is_dictionary(type_) and pt.is_nested(type_.value_type):
        places = pa.array(index, type_.index_type, mask=null)
        return pa.DictionaryArray.from_arrays(places, pa.array(pool, type_.value_type))
    if pt.is_dictionary(type_):
        return pa.array(values, type_.value_type).dictionary_encode().cast(type_)
    if pt.is_run_end_encoded(type_):
        return pc.run_end_encode(pa.array(values, type_.value_type))
    return pa.array(values, type_)


def _union(type_: pa.DataType, pool: list[Any], index: np.ndarray[Any, Any]) -> pa.Array:
    """Each row has one of the fields; a union has no nulls of its own."""
    names = [field.name for field in type_]
    kinds = (index % len(names)).astype(np.int8)
    fields = [pa.array([pool[at][n] for at in index.tolist()], field.type) for n, field in enumerate(type_)]
    if type_.mode == "sparse":
        return pa.UnionArray.from_sparse(pa.array(kinds), fields, names)
    offsets = pa.array(np.arange(len(index), dtype=np.int32))
    return pa.UnionArray.from_dense(pa.array(kinds), offsets, fields, names)


def _value(type_: pa.DataType, code: int, *, odd: bool) -> Any:
    """The value of a code; one family has equal values for equal codes, whatever its type."""
    for matches, make in _MAKERS:
        if matches(type_):
            return make(type_, code, odd)
    raise TypeError(f"no values of type {type_}")


def _integer(type_: pa.DataType, code: int, odd: bool) -> int:
    """Small numbers, around zero where there is a sign; odd ones are the ends of the range."""
    bits, signed = int(type_.bit_width), bool(pt.is_signed_integer(type_))
    if odd and code % 13 == 7:
        return int(2 ** (bits - signed)) - 1 if code % 2 or not signed else -int(2 ** (bits - 1))
    if bits <= 16:
        code %= 100 if bits == 8 else 30_000
    if bits == 8:
        return code
    return code - 20 if signed and code % 2 else code


_ODD_FLOATS = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e-300]


def _float(type_: pa.DataType, code: int, odd: bool) -> float:
    if odd and code % 11 == 3:
        value = _ODD_FLOATS[code // 11 % len(_ODD_FLOATS)]
        return 0.0 if value == 1e-300 and type_ != pa.float64() else value
    return code * 0.25 if type_ != pa.float16() else float(code % 50)


def _text(_: pa.DataType, code: int, odd: bool) -> str:
    if odd and code % 7 == 3:
        return ["", "\0", "é" * (code % 30), "a,b", 'quote "x"', "long " * 40, "\n"][code // 7 % 7]
    return f"v{code}" + "x" * (code % 23)


def _instant(type_: pa.DataType, code: int, _: bool) -> dt.datetime:
    zone = dt.UTC if type_.tz is not None else None
    return (_EPOCH + dt.timedelta(hours=code)).replace(tzinfo=zone)


def _nested(type_: pa.DataType, code: int, odd: bool) -> Any:
    if pt.is_struct(type_):
        return {field.name: _value(field.type, code + at, odd=odd) for at, field in enumerate(type_)}
    if pt.is_union(type_):
        return [_value(field.type, code + at, odd=odd) for at, field in enumerate(type_)]
    if pt.is_map(type_):
        return [(f"k{at}", code + at) for at in range(code % 4)]
    length = type_.list_size if pt.is_fixed_size_list(type_) else code % 5
    return [_value(type_.value_type, code + at, odd=odd) for at in range(length)]


_Maker = Callable[[pa.DataType, int, bool], Any]
_MAKERS: list[tuple[Callable[[pa.DataType], bool], _Maker]] = [
    (lambda t: pt.is_dictionary(t) or pt.is_run_end_encoded(t), lambda t, c, o: _value(t.value_type, c, odd=o)),
    (pt.is_integer, _integer),
    (pt.is_floating, _float),
    (pt.is_decimal, lambda t, c, o: Decimal(c) / 4 if c % 2 else Decimal(-c)),
    (lambda t: pt.is_string(t) or pt.is_large_string(t) or pt.is_string_view(t), _text),
    (pt.is_fixed_size_binary, lambda t, c, o: c.to_bytes(4, "big")),
    (lambda t: pt.is_binary(t) or pt.is_large_binary(t) or pt.is_binary_view(t), lambda t, c, o: c.to_bytes(4, "big")),
    (pt.is_boolean, lambda t, c, o: c % 2 == 0),
    (pt.is_date, lambda t, c, o: (_EPOCH + dt.timedelta(days=c)).date()),
    (pt.is_timestamp, _instant),
    (pt.is_time, lambda t, c, o: dt.time(c % 24, c % 60, c % 7)),
    (pt.is_duration, lambda t, c, o: dt.timedelta(minutes=c)),
    (pt.is_interval, lambda t, c, o: pa.MonthDayNano([c, c % 3, c * 1000])),
    (pt.is_null, lambda t, c, o: None),
    (pt.is_nested, _nested),
]
