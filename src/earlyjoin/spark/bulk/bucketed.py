"""Bands as equalities: rows get the number of the bucket they lie in, and Spark's own join does the rest.

A bucket is a few eps wide. A row of the home side is in one bucket, a guest is copied to the one to three buckets that
its band touches, and rows that match are in the same one. So Spark joins on the bucket (and on whatever else must be
equal) and checks the condition itself on the few pairs that are left. All of it is compiled by Spark, nothing passes
through Python, and nothing has to be known of the inputs beforehand. What it cannot do is split a hot bucket: that
takes cells.

A value's bucket is its word (see :mod:`earlyjoin.predicates.encoding.words`) divided by the width: whole numbers for
everything but floats. Division, rounded or cut off, keeps the order of values; so what lies in a band lies in one of
its buckets.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.predicates.banding import BoundBand
from earlyjoin.predicates.base import LEFT, RIGHT
from earlyjoin.predicates.encoding.types import MAX_WORD_DIGITS, Domain, Kind
from earlyjoin.spark.bulk.base import PREFIXES, Sides, column_names, row_names
from earlyjoin.spark.columns.conditions import column_condition
from earlyjoin.spark.early.exclusion import given_early, not_given_early
from earlyjoin.spark.session import functions

_WIDTH = 8
"""How many eps a bucket is wide: a guest is in 1.25 buckets then, and a fourth of the pairs of a bucket match."""
_WIDEST = 1e300
_LAST = 9e18
_MOST_BANDS = 2
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_KINDS = frozenset({Kind.FLOAT, Kind.INTEGER, Kind.DECIMAL, Kind.DATE, Kind.INSTANT, Kind.TIMESTAMP})


def bands(plan: Plan) -> list[BoundBand]:
    """The parts of a condition that can be bucketed."""
    found = [part for part in plan.condition.parts if isinstance(part, BoundBand) and part.domain.kind in _KINDS]
    return found[:_MOST_BANDS]


class BucketedJoin:
    """A band join as Spark's own join on bucket numbers, with the condition checked behind it."""

    name = "Spark's own join on buckets of the band"

    def __init__(self, plan: Plan, sides: Sides) -> None:
        self._plan, self._sides = plan, sides
        self._bands = bands(plan)

    def explain(self) -> str:
        """What is done."""
        return (
            "each band is cut into buckets a few eps wide, rows of one side are copied to the buckets next to theirs, "
            "and Spark joins on the bucket and checks the condition on what is left"
        )

    def rows(self) -> Any:
        """The result; nothing is run."""
        how = self._plan.how
        if how is JoinType.RIGHT:
            return self._joined(LEFT, "right").select(*row_names(self._plan))
        if how is not JoinType.FULL:
            kind = {JoinType.SEMI: "left_semi", JoinType.ANTI: "left_anti"}.get(how, how.value)
            return self._joined(RIGHT, kind).select(*row_names(self._plan))
        return self._joined(RIGHT, "left").select(*row_names(self._plan)).unionAll(self._right_rows_alone())

    def _joined(self, guest: int, kind: str) -> Any:
        left, right = (self._bucketed(side, copied=side == guest) for side in (LEFT, RIGHT))
        joined = left.join(right, self._condition(), kind)
        if not self._sides.tagged or kind == "left_anti":
            return joined
        if kind != "left_semi":
            return joined.where(not_given_early())
        assert self._sides.early_right is not None
        partners = self._copied(self._sides.early_right(), RIGHT)
        return joined.join(functions().broadcast(partners), self._condition() & given_early(), "left_anti")

    def _right_rows_alone(self) -> Any:
        """The second half of a full join: its right rows without a match, and nothing on the left."""
        f, plan = functions(), self._plan
        left, right = self._bucketed(LEFT, copied=True), self._bucketed(RIGHT, copied=False)
        types = {field.name: field.dataType for field in self._sides.left.schema}
        nothing = [f.lit(None).cast(types[name]).alias(name) for name in column_names(plan, LEFT)]
        return right.join(left, self._condition(), "left_anti").select(*nothing, *column_names(plan, RIGHT))

    def _condition(self) -> Any:
        f = functions()
        same = [f.col(_bucket(LEFT, n)) == f.col(_bucket(RIGHT, n)) for n in range(len(self._bands))]
        return reduce(lambda one, other: one & other, same) & column_condition(self._plan)

    def _bucketed(self, side: int, *, copied: bool) -> Any:
        frame = (self._sides.left, self._sides.right)[side]
        if copied:
            return self._copied(frame, side)
        buckets = [_bucket_of(self._word(band, side), band) for band in self._bands]
        return frame.selectExpr("*", *(f"{text} AS {_bucket(side, n)}" for n, text in enumerate(buckets)))

    def _copied(self, frame: Any, side: int) -> Any:
        for number, band in enumerate(self._bands):  # one by one: Spark explodes one column of a select
            bucket = word = self._word(band, side)
            if not _is_equality(band):
                low, high = (_bucket_of(end, band) for end in _window(word, band))
                bucket = f"explode(sequence({low}, {high}))"
            frame = frame.selectExpr("*", f"{bucket} AS {_bucket(side, number)}")
        return frame

    def _word(self, band: BoundBand, side: int) -> str:
        position = self._plan.schemas[side].get_field_index(band.columns[side][0])
        return _word(f"{PREFIXES[side]}{position}", band.domain)


def _bucket(side: int, number: int) -> str:
    return f"{PREFIXES[side]}_bucket{number}"


def _is_equality(band: BoundBand) -> bool:
    return band.eps_word == 0


# From here on SQL texts: a Column is put together by a call to Java for every operator, a text is read in one.


def _bucket_of(word: str, band: BoundBand) -> str:
    """The bucket of a word. Without a band every value is a bucket."""
    if _is_equality(band):
        return word
    if band.domain.kind is Kind.FLOAT:
        # What is beyond the range of whole numbers shares the last bucket: slower, and still right. The larger of a
        # null and a number would be the number.
        place = f"({word}) / {_double(min(_WIDTH * float(band.eps_word), _WIDEST))}"
        inside = f"floor(greatest({_double(-_LAST)}, least({_double(_LAST)}, {place})))"
        return f"if(({word}) IS NULL, NULL, {inside})"
    return f"(({word}) div {_bigint(min(_WIDTH * int(band.eps_word), _HIGHEST))})"


def _window(word: str, band: BoundBand) -> tuple[str, str]:
    """The smallest and the largest word that can match, as :meth:`BoundBand.window` has them."""
    eps = band.eps_word
    if isinstance(eps, float):
        reach = _double(float(np.nextafter(eps, np.inf)))
        return f"({word}) - {reach}", f"({word}) + {reach}"
    low = f"greatest({word}, {_bigint(_LOWEST + eps)}) - {_bigint(eps)}"
    high = f"least({word}, {_bigint(_HIGHEST - eps)}) + {_bigint(eps)}"
    return f"if(({word}) IS NULL, NULL, {low})", f"if(({word}) IS NULL, NULL, {high})"


def _word(column: str, domain: Domain) -> str:
    """The word of a value, a double or a bigint; null for what matches nothing."""
    if domain.kind is Kind.FLOAT:
        number = f"cast({column} AS double)"
        return f"if(abs({number}) < {_double(np.inf)}, {number}, NULL)"
    if domain.kind is Kind.DATE:
        return f"cast(unix_date({column}) AS bigint)"
    if domain.kind is Kind.INSTANT:
        return f"unix_micros({column})"
    if domain.kind is Kind.TIMESTAMP:
        # From its parts: differences of timestamps go by the clock of the session's zone, which skips hours.
        wall = f"cast({column} AS timestamp_ntz)"
        minutes = f"(cast(unix_date(cast({wall} AS date)) AS bigint) * 1440 + hour({wall}) * 60 + minute({wall}))"
        return f"({minutes} * 60000000 + cast(extract(SECOND FROM {wall}) * 1000000 AS bigint))"
    if domain.kind is Kind.DECIMAL:
        # At most 18 digits on either side of the product: nothing is rounded.
        digits = f"cast({column} AS decimal({MAX_WORD_DIGITS},{domain.scale}))"
        return f"cast({digits} * cast('{10**domain.scale}' AS decimal({domain.scale + 1},0)) AS bigint)"
    return f"cast({column} AS bigint)"


def _double(value: float) -> str:
    return f"cast('{float(value)!r}' AS double)"


def _bigint(value: int) -> str:
    return f"cast('{value}' AS bigint)"
