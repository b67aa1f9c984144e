"""Keys that the core does not know: structs and arrays are compared by Spark alone, collated texts by nobody here.

Spark's own ``=`` decides what equal means: a null inside a struct or an array equals another one, a null in its place
equals nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

import pyarrow as pa

from earlyjoin.algorithms.protocol import Plan
from earlyjoin.errors import UnsupportedError
from earlyjoin.predicates.base import LEFT, RIGHT, BoundPredicate, Capability
from earlyjoin.predicates.comparison import BoundComparison
from earlyjoin.predicates.conjunction import Condition, Conjunction, Residue
from earlyjoin.predicates.disjunction import Disjunction
from earlyjoin.predicates.encoding.columns import InputColumn, find_columns
from earlyjoin.predicates.encoding.types import Domain, Incomparable, Kind, common_domain
from earlyjoin.predicates.equality import BoundEqual, Equal
from earlyjoin.predicates.one_sided import OneSided
from earlyjoin.spark.columns.arrow_forms import lacks_arrow
from earlyjoin.spark.columns.conditions import column_condition
from earlyjoin.spark.columns.types import positional
from earlyjoin.spark.session import first_line

_SIDES = ("left", "right")
_MOST_DIGITS = 38
_WHOLE_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""Of Spark's decimals for whole numbers of so many bits."""


class BoundSparkEqual(BoundEqual):
    """An equality that only Spark can evaluate."""

    __slots__ = ()

    def encode(self, side: int, batch: pa.RecordBatch) -> NoReturn:
        """There are no keys: the caller did not ask ``spark_alone`` first."""
        raise UnsupportedError(f"{self.text} is evaluated by Spark alone")


class SparkEqual(Equal):
    """An equality with structs or arrays among its columns."""

    __slots__ = ()

    def bind(self, left: pa.Schema, right: pa.Schema) -> BoundSparkEqual:
        """Resolve the columns; whether nested types can be compared is Spark's to say."""
        lefts, rights = find_columns(left, self.left, LEFT), find_columns(right, self.right, RIGHT)
        domains = tuple(_domain(pair) for pair in zip(lefts, rights, strict=True))
        names = (self.left, self.right)
        return BoundSparkEqual(names, str(self), (lefts, rights), domains, self.null_safe, self.shared)


def for_spark(condition: Condition, schemas: Sequence[pa.Schema], frames: Sequence[Any]) -> Conjunction:
    """The condition, with an equality of nested columns in the form that Spark alone evaluates.

    Raises UnsupportedError for keys that are compared otherwise here than in Spark.
    """
    whole = Conjunction.of(condition)
    predicates = []
    for predicate in whole.predicates:
        given: Any = predicate
        pairs = [(side, name) for side in (LEFT, RIGHT) for name in _names((given.left, given.right)[side])]
        for side, name in pairs:
            _check(frames[side].schema, side, name)
        if isinstance(given, Equal) and any(_is_nested(schemas[side], name) for side, name in pairs):
            given = SparkEqual(given.left, given.right, given.null_safe, given.shared)
        predicates.append(given)
    filters = tuple(_residue_for_spark(one, schemas, frames) for one in whole.filters)
    return replace(whole, predicates=tuple(predicates), filters=filters)


def _residue_for_spark(condition: Residue, schemas: Sequence[pa.Schema], frames: Sequence[Any]) -> Residue:
    if isinstance(condition, Disjunction):
        return Disjunction(tuple(for_spark(one, schemas, frames) for one in condition.alternatives))
    if isinstance(condition, OneSided):
        for side in (LEFT, RIGHT) if condition.side is None else (condition.side,):
            for name in filter(None, (condition.column, condition.other)):
                _check(frames[side].schema, side, name)
        if condition.quoted and any(pa.types.is_timestamp(type_) for schema in schemas for type_ in schema.types):
            # Spark gives all moments in UTC, and reads those without an offset by the clocks of the session.
            return replace(condition, zone=frames[0].sparkSession.conf.get("spark.sql.session.timeZone"))
    return condition


def spark_alone(plan: Plan) -> str | None:
    """Why only Spark can evaluate the condition; None when the core can too."""
    if plan.condition.always:
        return "every pair of rows is Spark's own cross join"
    if plan.condition.filters:
        return f"{plan.condition.filters[0].text} is evaluated by Spark alone"
    if any(isinstance(part, BoundSparkEqual) for part in plan.condition.parts):
        return "structs and arrays are compared by Spark alone"
    if plan.condition.driver(Capability.HASHABLE) is not None and any(map(_rounds, plan.condition.parts)):
        return "Spark rounds decimals that need more than 38 digits together before it compares them"
    return None


def _rounds(part: BoundPredicate) -> bool:
    """Does Spark compare rounded values, where the core compares exact ones?"""
    if isinstance(part, BoundEqual):
        return any(map(_too_many_digits, zip(*part.sides, strict=True)))
    return isinstance(part, BoundComparison) and _too_many_digits(part.sides)


def _too_many_digits(pair: Sequence[InputColumn]) -> bool:
    digits = [_digits(column.type) for column in pair]
    if None in digits or not any(pa.types.is_decimal(column.type) for column in pair):
        return False
    before, behind = (max(one[at] for one in digits if one is not None) for at in (0, 1))
    return before + behind > _MOST_DIGITS


def _digits(type_: pa.DataType) -> tuple[int, int] | None:
    """Digits before and behind the point, as Spark has them; None for what is no exact number."""
    if pa.types.is_decimal(type_):
        return type_.precision - type_.scale, type_.scale
    return (_WHOLE_DIGITS[type_.bit_width], 0) if pa.types.is_signed_integer(type_) else None


def in_spark_types(error: Incomparable, frames: Sequence[Any]) -> UnsupportedError:
    """The same error with the names that Spark has for types."""
    types = [spark_type(column, frames) for column in error.columns]
    one, other = (
        f"column {column.name!r} of the {_SIDES[column.side]} input ({type_})"
        for column, type_ in zip(error.columns, types, strict=True)
    )
    advice = f"cast one of them, for example {error.columns[1].name!r} to {types[0]}"
    return UnsupportedError(f"{error.what} cannot compare {one} with {other}: {advice}")


def spark_type(column: InputColumn, frames: Sequence[Any]) -> str:
    """The name that Spark has for the type of a column."""
    return str(frames[column.side].schema[column.name].dataType.simpleString())


def check_comparable(plan: Plan, frames: Sequence[Any]) -> None:
    """Refuse keys that Spark cannot compare, before anything is read."""
    if plan.condition.always:
        return
    left, right = (positional(frame, side) for side, frame in enumerate(frames))
    try:
        left.join(right, column_condition(plan)).schema  # noqa: B018 (Connect analyses a plan when it is asked)
    except Exception as error:
        raise UnsupportedError(f"{plan.condition.text}: {first_line(error)}") from error


def _domain(pair: tuple[InputColumn, InputColumn]) -> Domain:
    if any(pa.types.is_nested(column.type) for column in pair):
        return Domain(Kind.NULL)  # nobody encodes it
    return common_domain(pair, "equal")


def _names(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _is_nested(schema: pa.Schema, name: str) -> bool:
    at = schema.get_field_index(name)
    return at >= 0 and bool(pa.types.is_nested(schema.field(at).type))


def _type_of(schema: Any, name: str) -> Any | None:
    return next((field.dataType for field in schema.fields if field.name == name), None)


def _check(schema: Any, side: int, name: str) -> None:
    type_ = _type_of(schema, name)
    collation = getattr(type_, "collation", "UTF8_BINARY")
    if collation != "UTF8_BINARY":
        raise UnsupportedError(
            f"column {name!r} of the {_SIDES[side]} input is compared by collation {collation}; "
            f"cast it to a plain string, or join with DataFrame.join"
        )
    if type_ is not None and lacks_arrow(type_):
        raise UnsupportedError(
            f"column {name!r} of the {_SIDES[side]} input ({type_.simpleString()}) cannot be a key: an interval of "
            "months has no fixed length; compare numbers of months, or join with DataFrame.join"
        )
