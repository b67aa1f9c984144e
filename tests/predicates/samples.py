"""Test columns: raw Python values and an Arrow type, with the values where mistakes are likely."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from hypothesis import strategies as st

from earlyjoin.predicates import BoundPredicate, Keys
from predicates import naive

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
DECIMALS = [
    pa.decimal32(9, 4),
    pa.decimal64(18, 6),
    pa.decimal128(5, 2),
    pa.decimal128(18, 0),
    pa.decimal128(3, 5),
    pa.decimal128(6, -2),
    pa.decimal128(38, 10),
    pa.decimal256(76, 0),
    pa.decimal256(76, 76),
]
UNITS = ["s", "ms", "us", "ns"]
FAMILIES: dict[str, list[pa.DataType]] = {
    "numbers": INTEGERS + FLOATS + DECIMALS,
    "booleans": [pa.bool_()],
    "strings": [pa.string(), pa.large_string(), pa.string_view()],
    "bytes": [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2), pa.binary(9)],
    "local times": [pa.date32(), pa.date64(), *(pa.timestamp(u) for u in UNITS)],
    "instants": [pa.timestamp(u, z) for u, z in zip(UNITS, ["UTC", "Europe/Berlin", "+05:30", "UTC"], strict=True)],
    "times": [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
    "durations": [pa.duration(u) for u in UNITS],
}


def pool(type_: pa.DataType) -> list[Any]:
    """Raw values worth trying for a type; no nulls."""
    if pt.is_dictionary(type_):
        return pool(type_.value_type)
    if pt.is_null(type_):
        return []
    if pt.is_integer(type_):
        signed, bits = pt.is_signed_integer(type_), type_.bit_width
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        edges = [low, low + 1, high - 1, high, -200, -1, 0, 1, 2, 100, 2**53, 2**53 + 1, 2**63 - 1, 2**63]
        return sorted({v for v in edges if low <= v <= high})
    if pt.is_floating(type_):
        code = {16: "e", 32: "f", 64: "d"}[type_.bit_width]
        values = [-0.0, 0.0, 0.1, -0.1, 1.0, 1.25, 2.0, -200.0, 100.0, float("inf"), float("-inf"), float("nan")]
        if type_.bit_width == 64:
            values += [2.0**53, 2.0**63, -(2.0**63), 1e308, -1e308, 5e-324, -5e-324]
        return [struct.unpack(code, struct.pack(code, v))[0] for v in values]
    if pt.is_decimal(type_):
        top = 10**type_.precision - 1
        raws = {
            0,
            1,
            -1,
            10,
            -10,
            100,
            125,
            top,
            -top,
            top - 1,
            10 ** max(type_.scale, 0),
            -2 * 10 ** max(type_.scale, 0),
        }
        return [Decimal(r).scaleb(-type_.scale, Context(prec=200)) for r in sorted(raws) if abs(r) <= top]
    if pt.is_boolean(type_):
        return [False, True]
    if pt.is_date32(type_):
        return [-1, 0, 1, 2, 24855]
    if pt.is_date64(type_):
        return [d * 86_400_000 for d in (-1, 0, 1, 3, 24855)]
    if pt.is_time(type_):
        return [t for s in (0, 1, 60, 86399) for t in (s * naive.TICKS[type_.unit], s * naive.TICKS[type_.unit] + 1)][
            :-1
        ]
    if pt.is_timestamp(type_) or pt.is_duration(type_):
        ticks = naive.TICKS[type_.unit]
        return sorted({s * ticks + d for s in (-86400, -1, 0, 1, 86400, 2**31) for d in (0, 1)})
    texts = ["", "a", "b", "ab", "a\0", "\0", "abcdefgh", "abcdefghi", "abcdefghj", "é", "\U0001f600", "x" * 40]
    if pt.is_fixed_size_binary(type_):
        width = type_.byte_width
        return [b.ljust(width, b"\0")[:width] for b in (b"", b"a", b"ab", b"ab\0", b"abcdefghi", b"\xff" * width)]
    if "binary" in str(type_):
        return [t.encode() for t in texts] + [b"\xff", b"\x7f", b"\x80", b"ab\0\0\0\0\0\0\0"]
    return texts


def array_of(raws: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """An Arrow array of raw values."""
    if pt.is_dictionary(type_):
        # Built by hand, because Arrow cannot encode every type of value.
        places = [None if v is None else n for n, v in enumerate(raws)]
        known = [(pool(type_) or [None])[0] if v is None else v for v in raws]
        return pa.DictionaryArray.from_arrays(pa.array(places, type_.index_type), array_of(known, type_.value_type))
    if pt.is_temporal(type_):
        return pa.array(raws, pa.int32() if type_.bit_width == 32 else pa.int64()).view(type_)
    if pt.is_float16(type_):
        return pa.array([None if v is None else np.float16(v) for v in raws], type_)
    if pt.is_string_view(type_) or pt.is_binary_view(type_):
        return pa.array(raws, pa.string() if pt.is_string_view(type_) else pa.binary()).cast(type_)
    if pt.is_decimal(type_):
        return _decimals(raws, type_)
    return pa.array(raws, type_)


def _decimals(raws: Sequence[Decimal | None], type_: pa.DataType) -> pa.Array:
    """Built from bytes, because pyarrow takes no Decimal for a type with more places than digits."""
    width = type_.bit_width // 8
    unscaled = [0 if v is None else int(v.scaleb(type_.scale, Context(prec=200))) for v in raws]
    data = b"".join(v.to_bytes(width, "little", signed=True) for v in unscaled)
    bitmap = sum(1 << n for n, v in enumerate(raws) if v is not None).to_bytes(len(raws) // 8 + 1, "little")
    return pa.Array.from_buffers(type_, len(raws), [pa.py_buffer(bitmap), pa.py_buffer(data)])


@dataclass(frozen=True)
class Table:
    """Named columns of raw values; ``lead`` rows of junk before and one behind become part of a slice."""

    raws: dict[str, list[Any]]
    types: dict[str, pa.DataType]
    lead: int = 0

    @property
    def rows(self) -> int:
        return len(next(iter(self.raws.values())))

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(list(self.types.items()))

    @property
    def batch(self) -> pa.RecordBatch:
        columns = []
        for name, type_ in self.types.items():
            junk = (pool(type_) or [None])[-1:] * self.lead
            columns.append(array_of(junk + self.raws[name] + junk, type_))
        whole = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return whole.slice(self.lead, self.rows)

    def values(self, row: int) -> tuple[Any, ...]:
        return tuple(naive.meaning(self.raws[name][row], type_) for name, type_ in self.types.items())


def one(type_: pa.DataType, raws: Sequence[Any], name: str = "k", lead: int = 0) -> Table:
    """A table of one column."""
    return Table({name: list(raws)}, {name: type_}, lead)


def matrix(bound: BoundPredicate, left: pa.RecordBatch, right: pa.RecordBatch) -> list[list[bool]]:
    """``holds`` of all pairs, after checking that the keys are well-formed."""
    keys = []
    for side, batch in enumerate((left, right)):
        key = bound.encode(side, batch)
        check(key, batch.num_rows)
        keys.append(key)
    n, m = left.num_rows, right.num_rows
    i, j = np.repeat(np.arange(n, dtype=np.int64), m), np.tile(np.arange(m, dtype=np.int64), n)
    held = bound.holds(keys[0], i, keys[1], j)
    assert held.dtype == np.bool_
    return held.reshape(n, m).tolist()


def check(keys: Keys, rows: int) -> None:
    """What every Keys must satisfy."""
    assert keys.words.ndim == 2
    assert len(keys) == rows
    assert keys.words.dtype in (np.int64, np.float64)
    assert keys.words.flags.c_contiguous
    assert keys.valid is None or (len(keys.valid) == rows and keys.valid.dtype == np.bool_)
    assert keys.heap is None or (len(keys.heap) == rows and keys.heap.offsets.dtype == np.int64)


def expected(left: Table, right: Table, holds: Callable[[tuple[Any, ...], tuple[Any, ...]], bool]) -> list[list[bool]]:
    """The oracle's answer for all pairs; values become floats where a float column meets them, axis by axis."""
    return [[holds(left.values(i), right.values(j)) for j in range(right.rows)] for i in range(left.rows)]


def maybe_dictionary(type_: pa.DataType) -> st.SearchStrategy[pa.DataType]:
    """The type itself or a dictionary of it."""
    return st.sampled_from([type_, type_, pa.dictionary(pa.int32(), type_)])


@st.composite
def related_types(draw: st.DrawFn, families: dict[str, list[pa.DataType]], count: int) -> tuple[pa.DataType, ...]:
    """Types of one family."""
    family = families[draw(st.sampled_from(list(families)))]
    return tuple(draw(maybe_dictionary(draw(st.sampled_from(family)))) for _ in range(count))


def type_pairs(names: Sequence[str] = tuple(FAMILIES)) -> st.SearchStrategy[tuple[pa.DataType, ...]]:
    """Two types of one of the named families."""
    return related_types({name: FAMILIES[name] for name in names}, 2)


@st.composite
def column(draw: st.DrawFn, type_: pa.DataType, rows: int) -> list[Any]:
    """Raw values of a type with nulls among them."""
    values = pool(type_)
    return draw(st.lists(st.sampled_from([*values, None]), min_size=rows, max_size=rows))


@st.composite
def table(draw: st.DrawFn, types: dict[str, pa.DataType], max_rows: int = 6) -> Table:
    """A table of the given types, possibly a slice."""
    rows = draw(st.integers(0, max_rows))
    return Table({n: draw(column(t, rows)) for n, t in types.items()}, types, draw(st.integers(0, 3)))
