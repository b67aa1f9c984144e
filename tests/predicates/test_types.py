"""Which types meet, which are refused, and what the refusals say."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates import equal, less
from earlyjoin.predicates.encoding.columns import InputColumn
from earlyjoin.predicates.encoding.types import Domain, Kind, common_domain
from predicates.samples import FAMILIES


def domain(*types: pa.DataType) -> Domain:
    return common_domain([InputColumn(n % 2, f"c{n}", t) for n, t in enumerate(types)], "test")


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(FAMILIES, 2)))
def test_families_do_not_mix(one: str, other: str) -> None:
    for left, right in itertools.product(FAMILIES[one], FAMILIES[other]):
        with pytest.raises(UnsupportedError, match="cannot compare column 'c0' of the left input") as refusal:
            domain(left, right)
        message = str(refusal.value)
        assert f"column 'c1' of the right input ({right})" in message
        assert "cast one of them" in message or "time zone" in message


@pytest.mark.parametrize(
    ("types", "kind", "width"),
    [
        ((pa.int8(), pa.int64()), Kind.INTEGER, 1),
        ((pa.uint8(), pa.uint32()), Kind.INTEGER, 1),
        ((pa.uint8(), pa.uint64()), Kind.UNSIGNED, 1),
        ((pa.int8(), pa.uint64()), Kind.DECIMAL, 2),
        ((pa.uint8(), pa.uint64(), pa.int8()), Kind.DECIMAL, 2),
        ((pa.uint64(), pa.int8(), pa.float16()), Kind.FLOAT, 1),
        ((pa.decimal128(9, 2), pa.int16()), Kind.DECIMAL, 1),
        ((pa.decimal128(9, 2), pa.int64()), Kind.DECIMAL, 2),
        ((pa.decimal128(38, 0), pa.decimal128(38, 38)), Kind.DECIMAL, 4),
        ((pa.decimal256(76, 0), pa.decimal256(76, 76)), Kind.DECIMAL, 8),
        ((pa.date32(), pa.timestamp("s"), pa.date64()), Kind.TIMESTAMP, 1),
        ((pa.null(), pa.null()), Kind.NULL, 1),
        ((pa.null(), pa.string(), pa.null()), Kind.STRING, 1),
        ((pa.dictionary(pa.int8(), pa.string()), pa.string_view()), Kind.STRING, 1),
    ],
)
def test_where_types_meet(types: tuple[pa.DataType, ...], kind: Kind, width: int) -> None:
    for order in itertools.permutations(types):
        met = domain(*order)
        assert (met.kind, met.width) == (kind, width)


def test_the_finer_unit_wins() -> None:
    assert domain(pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ms")).unit == "us"
    assert domain(pa.duration("ns"), pa.duration("s")).unit == "ns"


@pytest.mark.parametrize(
    ("type_", "advice"),
    [
        (pa.list_(pa.int64()), "into columns of their own"),
        (pa.struct({"a": pa.int8()}), "into columns of their own"),
        (pa.map_(pa.int8(), pa.int8()), "into columns of their own"),
        (pa.month_day_nano_interval(), "cast it to a duration or to a number of months"),
        (pa.run_end_encoded(pa.int32(), pa.int64()), "run_end_decode"),
        (pa.uuid(), "cast it to its storage type fixed_size_binary\\[16\\]"),
    ],
)
def test_types_that_are_no_keys(type_: pa.DataType, advice: str) -> None:
    nested = pa.types.is_list(type_) or pa.types.is_struct(type_) or isinstance(type_, pa.BaseExtensionType)
    for predicate in (less("k", "j"),) if nested else (equal("k", "j"), less("k", "j")):
        with pytest.raises(UnsupportedError, match=f"column 'k' of the left input .* cannot be a key: .*{advice}"):
            predicate.bind(pa.schema({"k": type_}), pa.schema({"j": pa.int64()}))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.struct({"a": pa.int8(), "b": pa.int8()}), pa.struct({"b": pa.int8(), "a": pa.int8()})),
        (pa.struct({"a": pa.int8()}), pa.struct({"a": pa.string()})),
        (pa.list_(pa.int8()), pa.list_(pa.string())),
        (pa.list_(pa.int8()), pa.int8()),
        (pa.uuid(), pa.string()),
        (pa.bool_(), pa.string()),
    ],
    ids=str,
)
def test_nested_types_that_do_not_meet(left: pa.DataType, right: pa.DataType) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        equal("k").bind(pa.schema({"k": left}), pa.schema({"k": right}))
    assert f"column 'k' of the left input ({left})" in str(refusal.value)
    assert f"column 'k' of the right input ({right})" in str(refusal.value)


def test_time_zone_against_none() -> None:
    left, right = pa.schema({"k": pa.timestamp("s", "UTC")}), pa.schema({"k": pa.timestamp("s")})
    with pytest.raises(UnsupportedError, match="one has a time zone, the other has none"):
        equal("k").bind(left, right)


def test_missing_column_suggests_the_closest() -> None:
    left, right = pa.schema({"orderkey": pa.int64(), "price": pa.int64()}), pa.schema({"x": pa.int64()})
    with pytest.raises(
        InputError, match=r"'order_key' is not in the left input: did you mean 'orderkey'.*orderkey, price"
    ):
        equal("order_key", "x").bind(left, right)
    with pytest.raises(InputError, match="'price' is not in the right input: columns there: x"):
        equal("price").bind(left, right)
    with pytest.raises(InputError, match="columns there: none"):
        equal("price").bind(left, pa.schema([]))


def test_ambiguous_column() -> None:
    twice = pa.schema([("k", pa.int64()), ("k", pa.int64())])
    with pytest.raises(InputError, match="'k' is ambiguous: the right input has 2 columns of that name"):
        equal("k").bind(pa.schema({"k": pa.int64()}), twice)
