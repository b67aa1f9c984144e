"""Several conditions that must all hold: one of them drives an algorithm, the rest filter what it finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.predicates.base import BoundPredicate, Capability, Combinable, Pairs, Predicate
from earlyjoin.predicates.disjunction import BoundDisjunction, Disjunction
from earlyjoin.predicates.encoding.keys import Bool
from earlyjoin.predicates.equality import BoundEqual, Equal
from earlyjoin.predicates.filters import Filter
from earlyjoin.predicates.one_sided import BoundOneSided, OneSided

Residue = Filter | OneSided | Disjunction
"""Conditions that drive no algorithm, and only filter."""
BoundResidue = Filter | BoundOneSided | BoundDisjunction


@dataclass(frozen=True, slots=True)
class Conjunction(Combinable):
    """Predicates and filters joined by AND; made with ``&``. Without any it always holds: a cross join."""

    predicates: tuple[Predicate, ...]
    filters: tuple[Residue, ...] = ()

    @classmethod
    def of(cls, *conditions: Condition) -> Conjunction:
        """All conditions in one flat conjunction; equalities become one composite equality where the first stood."""
        predicates: list[Predicate] = []
        filters: list[Residue] = []
        for condition in conditions:
            if isinstance(condition, Conjunction):
                predicates += condition.predicates
                filters += condition.filters
            elif isinstance(condition, Filter | OneSided | Disjunction):
                filters.append(condition)
            elif isinstance(condition, Predicate):
                predicates.append(condition)
            else:
                raise InputError(f"expected a predicate such as equal('id') or band('t', eps=5), got {condition!r}")
        if not conditions:
            raise InputError("a join needs at least one condition, such as equal('id')")
        return cls(tuple(_merge_equalities(predicates)), tuple(filters))

    def bind(self, left: pa.Schema, right: pa.Schema) -> BoundConjunction:
        """Bind everything but expressions, which wait for the output schema: see ``check_expressions``."""
        parts = tuple(predicate.bind(left, right) for predicate in self.predicates)
        filters = tuple(one if isinstance(one, Filter) else one.bind(left, right) for one in self.filters)
        shared = next((part.shared for part in parts if isinstance(part, BoundEqual)), ())
        return BoundConjunction(parts, filters, str(self), shared)

    def __str__(self) -> str:
        return " AND ".join(str(condition) for condition in self.predicates + self.filters) or "TRUE"


Condition = Predicate | Filter | OneSided | Disjunction | Conjunction
"""Everything that ``&`` and ``|`` combine and ``on=`` accepts."""

ALWAYS = Conjunction(())
"""The condition of a cross join."""


@dataclass(frozen=True, slots=True)
class BoundConjunction:
    """Bound predicates, in the order they were written, and the filters that follow them."""

    parts: tuple[BoundPredicate, ...]
    filters: tuple[BoundResidue, ...]
    text: str
    shared: tuple[str, ...]
    """Key columns that were named once for both sides and that the output may carry once."""

    @property
    def always(self) -> bool:
        """Does every pair of rows match?"""
        return not self.parts and not self.filters

    @property
    def expressions(self) -> tuple[Filter, ...]:
        """All Arrow expressions over the joined row, also those inside alternatives."""
        return tuple(expression for one in self.filters for expression in one.expressions)

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each side that it reads by their own names."""
        sides = zip(*(one.columns for one in (*self.parts, *self.filters)), strict=True)
        return tuple(tuple(dict.fromkeys(name for names in side for name in names)) for side in sides) or ((), ())

    def compared(self) -> Iterator[BoundPredicate]:
        """All predicates, also those inside alternatives."""
        yield from self.parts
        for one in self.filters:
            if isinstance(one, BoundDisjunction):
                for alternative in one.alternatives:
                    yield from alternative.compared()

    def check_expressions(self, joined_row: pa.Schema) -> None:
        """Raise InputError if an expression does not fit the joined row."""
        for expression in self.expressions:
            expression.bind(joined_row)

    def mask(self, pairs: Pairs) -> Bool:
        """For each candidate pair: does all of it hold? Later parts look only at what the earlier ones have left."""
        result = np.zeros(len(pairs), dtype=np.bool_)
        left = np.arange(len(pairs), dtype=np.int64)
        for one in (*self.parts, *self.filters):
            if len(left) == 0:
                break
            mask = one.mask(pairs)
            if not mask.all():
                left, pairs = left[mask], pairs.chosen(mask)
        result[left] = True
        return result

    def driver(self, capability: Capability) -> tuple[BoundPredicate, tuple[BoundPredicate, ...]] | None:
        """The part that drives an algorithm needing ``capability`` and the parts left to filter; None if no part can.

        Among several, equality comes before distances and overlaps, then orders, then not equal.
        """
        able = [part for part in self.parts if part.capabilities & capability == capability]
        if not able:
            return None
        chosen = min(able, key=lambda part: part.rank)
        return chosen, tuple(part for part in self.parts if part is not chosen)


def bind(condition: Condition, left: pa.Schema, right: pa.Schema) -> BoundConjunction:
    """Bind a single predicate, a filter or a conjunction to the schemas of both inputs."""
    return Conjunction.of(condition).bind(left, right)


def _merge_equalities(predicates: list[Predicate]) -> list[Predicate]:
    merged: list[Predicate] = []
    place: int | None = None
    for predicate in predicates:
        if not isinstance(predicate, Equal):
            merged.append(predicate)
        elif place is None:
            place = len(merged)
            merged.append(predicate)
        else:
            first = merged[place]
            assert isinstance(first, Equal)
            merged[place] = first.merged(predicate)
    return merged
