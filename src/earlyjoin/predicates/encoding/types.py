"""The domain in which two or more columns are compared, from their Arrow types.

A domain is what a value *means*: an integer, a decimal of some scale, an instant at some resolution. Types that mean
the same meet in one domain without losing anything, except that a float on one side makes both sides float64, as in
Spark. Whatever does not meet is refused here, before any data is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import pyarrow as pa
import pyarrow.types as pt

from earlyjoin.errors import UnsupportedError
from earlyjoin.predicates.encoding.carried import carried_type
from earlyjoin.predicates.encoding.columns import InputColumn

MAX_WORD_DIGITS = 18
"""Any decimal of up to 18 digits, and the difference of two of them, fits in 64 bits."""

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Ticks a second of Arrow's time units, coarse to fine."""

# Digits of the largest value, so that integers and decimals meet in a decimal that holds both.
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
_UINT64_DIGITS = 20


class Kind(Enum):
    """What a value means."""

    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    UNSIGNED = "unsigned integer"
    """Integers that need the unsigned 64-bit range."""
    DECIMAL = "decimal"
    FLOAT = "float"
    DATE = "date"
    TIMESTAMP = "timestamp"
    INSTANT = "timestamp with time zone"
    TIME = "time"
    DURATION = "duration"
    STRING = "string"
    BINARY = "binary"
    STRUCT = "struct"
    LIST = "list"


TEMPORAL = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.INSTANT, Kind.TIME, Kind.DURATION})
BYTES = frozenset({Kind.STRING, Kind.BINARY})
NESTED = frozenset({Kind.STRUCT, Kind.LIST})
NUMBERS = frozenset({Kind.INTEGER, Kind.UNSIGNED, Kind.DECIMAL, Kind.FLOAT})
_EXACT = frozenset({Kind.INTEGER, Kind.UNSIGNED, Kind.DECIMAL})


@dataclass(frozen=True, slots=True)
class Domain:
    """A set of comparable values. ``digits`` and ``scale`` count decimal places before and after the point."""

    kind: Kind
    digits: int = 0
    scale: int = 0
    unit: str = ""
    signed: bool = False
    """Integers only: some column can hold negative values."""
    names: tuple[str, ...] = ()
    """Structs only: the fields."""
    inner: tuple[Domain, ...] = ()
    """The domains of a struct's fields, or the one of a list's elements."""
    extension: str = ""
    """The Arrow extension type that gives the values another meaning than their storage has."""

    @property
    def width(self) -> int:
        """Words an encoded value takes, apart from the heap of strings."""
        if self.kind is not Kind.DECIMAL or self.digits + self.scale <= MAX_WORD_DIGITS:
            return 1
        # One more bit for the sign.
        largest: int = 10 ** (self.digits + self.scale)
        return (largest.bit_length() + 1 + 63) // 64

    @property
    def ordinal(self) -> bool:
        """Whether a value is one word that keeps its order."""
        return self.width == 1 and self.kind not in BYTES | NESTED

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"decimal of {self.digits + self.scale} digits, {self.scale} of them after the point"
        return f"{self.kind.value}[{self.unit}]" if self.unit else self.kind.value


def value_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values: a dictionary's value type, otherwise the type itself."""
    return type_.value_type if pt.is_dictionary(type_) else type_


def domain_of(column: InputColumn, *, equality: bool = False) -> Domain:
    """The domain of one column alone, or UnsupportedError with what to do instead.

    For ``equality`` alone there are domains of structs, lists and extension types, which have no order here.
    """
    type_ = value_type(column.type)
    if equality and (domain := _unordered(column, type_)) is not None:
        return domain
    if pt.is_integer(type_):
        if type_ == pa.uint64():
            return Domain(Kind.UNSIGNED, _UINT64_DIGITS)
        return Domain(Kind.INTEGER, _DIGITS[type_.bit_width], signed=pt.is_signed_integer(type_))
    if pt.is_decimal(type_):
        return Domain(Kind.DECIMAL, type_.precision - type_.scale, type_.scale)
    if pt.is_timestamp(type_):
        return Domain(Kind.TIMESTAMP if type_.tz is None else Kind.INSTANT, unit=type_.unit)
    if pt.is_time(type_):
        return Domain(Kind.TIME, unit=type_.unit)
    if pt.is_duration(type_):
        return Domain(Kind.DURATION, unit=type_.unit)
    for matches, kind in (
        (pt.is_floating, Kind.FLOAT),
        (pt.is_boolean, Kind.BOOLEAN),
        (pt.is_date, Kind.DATE),
        (_is_string, Kind.STRING),
        (_is_binary, Kind.BINARY),
        (pt.is_null, Kind.NULL),
    ):
        if matches(type_):
            return Domain(kind)
    raise UnsupportedError(f"{column} cannot be a key: {_advice(type_)}")


def _unordered(column: InputColumn, type_: pa.DataType) -> Domain | None:
    """The domain of values that can only be equal or not; None for others."""
    if isinstance(type_, pa.BaseExtensionType):
        stored = domain_of(replace(column, type=type_.storage_type), equality=True)
        return replace(stored, extension=type_.extension_name)
    if pt.is_union(type_):
        return _unordered(column, carried_type(type_))
    if not (pt.is_struct(type_) or is_list(type_)):
        return None
    fields = [type_.field(number) for number in range(type_.num_fields)]
    inner = tuple(domain_of(replace(column, type=field.type), equality=True) for field in fields)
    if pt.is_struct(type_):
        return Domain(Kind.STRUCT, names=tuple(field.name for field in fields), inner=inner)
    return Domain(Kind.LIST, inner=inner)


def is_list(type_: pa.DataType) -> bool:
    """Lists of any layout; no maps."""
    tests = (pt.is_list, pt.is_large_list, pt.is_fixed_size_list, pt.is_list_view, pt.is_large_list_view)
    return any(test(type_) for test in tests)


def _is_string(type_: pa.DataType) -> bool:
    return bool(pt.is_string(type_) or pt.is_large_string(type_) or pt.is_string_view(type_))


def _is_binary(type_: pa.DataType) -> bool:
    return bool(
        pt.is_binary(type_) or pt.is_large_binary(type_) or pt.is_binary_view(type_) or pt.is_fixed_size_binary(type_)
    )


def _advice(type_: pa.DataType) -> str:
    if pt.is_run_end_encoded(type_):
        return "decode it first, with pyarrow.compute.run_end_decode"
    if pt.is_map(type_):
        return "maps are not compared; put the values to compare into columns of their own"
    if pt.is_nested(type_):
        return "nested values are only compared for equality; put the fields to compare into columns of their own"
    if pt.is_interval(type_):
        return "an interval of months has no fixed length; cast it to a duration or to a number of months"
    if isinstance(type_, pa.BaseExtensionType):
        return f"cast it to its storage type {type_.storage_type}"
    return "cast it to a number, a string, a date or a timestamp"


def _meet(a: Domain, b: Domain, *, equality: bool) -> Domain | None:
    """The smallest domain that holds both, or None."""
    if a.extension != b.extension and a.extension and b.extension:
        return None
    if a.extension or b.extension:
        met = _meet(replace(a, extension=""), replace(b, extension=""), equality=equality)
        return None if met is None else replace(met, extension=a.extension or b.extension)
    if b.kind is Kind.NULL or a == b:
        return a
    if a.kind is Kind.NULL:
        return b
    kinds = {a.kind, b.kind}
    if a.kind in NESTED and a.kind is b.kind and a.names == b.names:
        inner = [_meet(one, other, equality=equality) for one, other in zip(a.inner, b.inner, strict=True)]
        known = tuple(one for one in inner if one is not None)
        return replace(a, inner=known) if len(known) == len(inner) else None
    if equality and Kind.BOOLEAN in kinds and kinds & NUMBERS:
        # false is 0 and true is 1
        a, b = (Domain(Kind.INTEGER, 1) if one.kind is Kind.BOOLEAN else one for one in (a, b))
        return _meet(a, b, equality=True)
    if kinds <= NUMBERS:
        return Domain(Kind.FLOAT) if Kind.FLOAT in kinds else _meet_exact(a, b)
    if kinds == {Kind.DATE, Kind.TIMESTAMP}:
        return a if a.kind is Kind.TIMESTAMP else b
    if len(kinds) == 1 and a.kind in TEMPORAL:
        return a if UNITS[a.unit] >= UNITS[b.unit] else b
    return None


def _meet_exact(a: Domain, b: Domain) -> Domain:
    digits, scale, signed = max(a.digits, b.digits), max(a.scale, b.scale), a.signed or b.signed
    if Kind.DECIMAL in (a.kind, b.kind):
        return Domain(Kind.DECIMAL, digits, scale)
    if Kind.UNSIGNED in (a.kind, b.kind):
        # Signed and unsigned 64-bit integers together need 65 bits: a decimal of 20 digits has two words and is exact.
        return Domain(Kind.DECIMAL, digits) if signed else Domain(Kind.UNSIGNED, digits)
    return replace(a, digits=digits, signed=signed)


class Incomparable(UnsupportedError):
    """Two columns whose types do not meet. The advice is for Arrow; an engine with other types words its own."""

    def __init__(self, what: str, one: InputColumn, other: InputColumn) -> None:
        super().__init__(f"{what} cannot compare {one} with {other}: {_clash(one, other)}")
        self.what, self.columns = what, (one, other)


def common_domain(columns: Sequence[InputColumn], what: str, *, equality: bool = False) -> Domain:
    """The domain in which all these columns are compared, or UnsupportedError naming the two that do not fit.

    ``what`` is the predicate, for the message; ``equality`` says that it asks for nothing but equal values.
    """
    domain = domain_of(columns[0], equality=equality)
    for position, column in enumerate(columns[1:], start=1):
        other = domain_of(column, equality=equality)
        met = _meet(domain, other, equality=equality)
        if met is None:
            before = ((c, domain_of(c, equality=equality)) for c in columns[:position])
            clashing = next((c for c, one in before if _meet(one, other, equality=equality) is None), columns[0])
            raise Incomparable(what, clashing, column)
        domain = met
    return domain


def _clash(a: InputColumn, b: InputColumn) -> str:
    kinds = {domain_of(one, equality=True).kind for one in (a, b)}
    if kinds == {Kind.STRUCT}:
        return "structs need the same field names in the same order, with types that can be compared; cast one of them"
    if Kind.INSTANT in kinds and kinds <= {Kind.INSTANT, Kind.TIMESTAMP, Kind.DATE}:
        return "one has a time zone, the other has none; give both a zone (pyarrow.compute.assume_timezone) or neither"
    return f"the types have nothing in common; cast one of them, for example {b.name!r} to {value_type(a.type)}"
