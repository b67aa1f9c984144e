"""Bound predicates as Spark Columns that hold for the same pairs of rows as in the core."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from functools import reduce, singledispatch
from typing import Any

import pyarrow.types as pt

from earlyjoin.algorithms.protocol import Plan
from earlyjoin.errors import UnsupportedError
from earlyjoin.predicates.banding import BoundBand
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.comparison import BoundComparison
from earlyjoin.predicates.conjunction import BoundConjunction, BoundResidue
from earlyjoin.predicates.disjunction import BoundDisjunction
from earlyjoin.predicates.distance import BoundNear
from earlyjoin.predicates.encoding.columns import InputColumn
from earlyjoin.predicates.encoding.types import Domain, Kind, value_type
from earlyjoin.predicates.equality import BoundEqual
from earlyjoin.predicates.intervals import BoundOverlaps
from earlyjoin.predicates.one_sided import BoundOneSided
from earlyjoin.predicates.rectangles import BoundIntersects
from earlyjoin.spark.bulk.base import PREFIXES
from earlyjoin.spark.columns.constants import against_constant, compared
from earlyjoin.spark.session import functions


class At:
    """Where a column of one of the sides is: its name in a bulk, and the Spark Column of that."""

    def __init__(self, plan: Plan) -> None:
        self._schemas = plan.schemas

    def name(self, column: InputColumn) -> str:
        """``l0…`` and ``r0…``."""
        return f"{PREFIXES[column.side]}{self._schemas[column.side].get_field_index(column.name)}"

    def __call__(self, column: InputColumn) -> Any:
        return functions().col(self.name(column))


def column_condition(plan: Plan) -> Any:
    """The whole condition over ``l0…`` and ``r0…``."""
    return _whole(plan.condition, At(plan))


def _whole(condition: BoundConjunction, at: At) -> Any:
    return _all([condition_of(part, at) for part in (*condition.parts, *condition.filters)])


@singledispatch
def condition_of(predicate: BoundPredicate | BoundResidue, at: At) -> Any:
    """One predicate or filter as a Column."""
    raise UnsupportedError(f"{predicate.text} cannot be evaluated by Spark; join without Spark, with engine='local'")


@condition_of.register
def _(predicate: BoundEqual, at: At) -> Any:
    # As one text: a Column is put together by dozens of calls to Java.
    texts = []
    for *pair, null_safe in zip(*predicate.sides, predicate.null_safe, strict=True):
        left, right = (
            f"CAST({at.name(one)} AS int)" if number else at.name(one)
            for one, number in zip(pair, _booleans_as_numbers(pair), strict=True)
        )
        texts.append(f"{left} {'<=>' if null_safe else '='} {right}")
    return functions().expr(" AND ".join(texts))


def _alike(columns: Sequence[InputColumn], at: At) -> list[Any]:
    """The Columns of what is compared: booleans beside numbers are 0 and 1, which Spark has to be told."""
    numbers = _booleans_as_numbers(columns)
    return [at(one).cast("int") if number else at(one) for one, number in zip(columns, numbers, strict=True)]


def _booleans_as_numbers(columns: Sequence[InputColumn]) -> list[bool]:
    booleans = [pt.is_boolean(value_type(column.type)) for column in columns]
    return booleans if len(set(booleans)) > 1 else [False] * len(columns)


@condition_of.register
def _(predicate: BoundComparison, at: At) -> Any:
    left, right = (at(column) for column in predicate.sides)
    return compared(left, predicate.op, right)


@condition_of.register
def _(predicate: BoundOneSided, at: At) -> Any:
    columns = [
        InputColumn(predicate.side, name, type_)
        for name, type_ in zip(predicate.columns[predicate.side], predicate.types, strict=True)
    ]
    if predicate.constant is None:
        left, right = _alike(columns, at)
        return compared(left, predicate.op, right)
    return against_constant(at(columns[0]), predicate.types[0], predicate.op, predicate.constant)


@condition_of.register
def _(predicate: BoundDisjunction, at: At) -> Any:
    return reduce(lambda one, other: one | other, [_whole(alternative, at) for alternative in predicate.alternatives])


@condition_of.register
def _(predicate: BoundBand, at: At) -> Any:
    f, domain, eps = functions(), predicate.domain, predicate.eps_word
    left, right = (_on_axis(at(column), column, domain) for column in predicate.sides)
    if domain.kind is Kind.FLOAT:
        # NaN is larger than every number, so this leaves the finite ones.
        finite = [f.abs(value) < f.lit(float("inf")) for value in (left, right)]
        return _all([*finite, f.abs(left - right) <= f.lit(float(eps))])
    if domain.kind is Kind.DATE:
        return f.abs(f.datediff(left, right)) <= f.lit(int(eps))
    if domain.kind in (Kind.TIMESTAMP, Kind.TIME, Kind.DURATION):
        return f.abs(left - right) <= f.lit(_microseconds(int(eps), domain))
    if domain.kind is Kind.DECIMAL:
        return f.abs(left - right) <= f.lit(Decimal(int(eps)).scaleb(-domain.scale))
    return f.abs(left - right) <= f.lit(Decimal(int(eps)))


@condition_of.register
def _(predicate: BoundOverlaps, at: At) -> Any:
    return _axis_overlaps(predicate.sides, predicate.domain, at, closed=predicate.closed)


@condition_of.register
def _(predicate: BoundIntersects, at: At) -> Any:
    axes = len(predicate.domains)
    return _all(
        [
            _axis_overlaps(tuple(side[axis::axes] for side in predicate.sides), domain, at, closed=True)
            for axis, domain in enumerate(predicate.domains)
        ]
    )


@condition_of.register
def _(predicate: BoundNear, at: At) -> Any:
    steps = [at(left).cast("double") - at(right).cast("double") for left, right in zip(*predicate.sides, strict=True)]
    # Infinities and NaN make the sum infinite or NaN, which is larger than any number.
    return reduce(lambda total, step: total + step * step, steps[1:], steps[0] * steps[0]) <= functions().lit(
        predicate.eps_word * predicate.eps_word
    )


def _axis_overlaps(sides: tuple[tuple[InputColumn, ...], ...], domain: Domain, at: At, *, closed: bool) -> Any:
    values = [[_comparable(at(column), domain) for column in side] for side in sides]
    (left_low, left_high), (right_low, right_high) = values
    met = [left_low <= right_high, right_low <= left_high]
    if not closed:
        met = [left_low < right_high, right_low < left_high]
    upright = [left_low <= left_high, right_low <= right_high]
    numbers = [~functions().isnan(v) for side in values for v in side] if domain.kind is Kind.FLOAT else []
    return _all([*met, *upright, *numbers])


def _on_axis(value: Any, column: InputColumn, domain: Domain) -> Any:
    """A value in which differences are exact."""
    if domain.kind is Kind.INSTANT:
        return functions().unix_micros(value).cast("decimal(20,0)")
    if domain.kind in (Kind.INTEGER, Kind.UNSIGNED):
        return value.cast("decimal(20,0)")  # the difference of two 64-bit integers needs 65 bits
    if domain.kind is Kind.TIMESTAMP:
        return value.cast("timestamp_ntz")
    return _comparable(value, domain)


def _comparable(value: Any, domain: Domain) -> Any:
    return value.cast("double") if domain.kind is Kind.FLOAT else value


def _microseconds(ticks: int, domain: Domain) -> dt.timedelta:
    a_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[domain.unit]
    return min(dt.timedelta(microseconds=ticks * 10**6 // a_second), dt.timedelta(days=10**8))


def _all(conditions: list[Any]) -> Any:
    return reduce(lambda one, other: one & other, conditions)
