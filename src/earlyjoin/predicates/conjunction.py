"""Several conditions that must all hold: one of them drives an algorithm, the rest filter what it finds."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.predicates.base import BoundPredicate, Capability, Predicate
from earlyjoin.predicates.equality import BoundEqual, Equal
from earlyjoin.predicates.filters import Filter


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Predicates and filters joined by AND; made with ``&``."""

    predicates: tuple[Predicate, ...]
    filters: tuple[Filter, ...] = ()

    @classmethod
    def of(cls, *conditions: Condition) -> Conjunction:
        """All conditions in one flat conjunction; equalities become one composite equality where the first stood."""
        predicates: list[Predicate] = []
        filters: list[Filter] = []
        for condition in conditions:
            if isinstance(condition, Conjunction):
                predicates += condition.predicates
                filters += condition.filters
            elif isinstance(condition, Filter):
                filters.append(condition)
            elif isinstance(condition, Predicate):
                predicates.append(condition)
            else:
                raise InputError(f"expected a predicate such as equal('id') or band('t', eps=5), got {condition!r}")
        if not predicates and not filters:
            raise InputError("a join needs at least one condition, such as equal('id')")
        return cls(tuple(_merge_equalities(predicates)), tuple(filters))

    def bind(self, left: pa.Schema, right: pa.Schema) -> BoundConjunction:
        """Bind every predicate. Filters wait for the output schema: call their ``bind`` with it."""
        parts = tuple(predicate.bind(left, right) for predicate in self.predicates)
        shared = next((part.shared for part in parts if isinstance(part, BoundEqual)), ())
        return BoundConjunction(parts, self.filters, str(self), shared)

    def __and__(self, other: Condition) -> Conjunction:
        return Conjunction.of(self, other)

    def __str__(self) -> str:
        return " AND ".join(str(condition) for condition in self.predicates + self.filters)


Condition = Predicate | Filter | Conjunction
"""Everything that ``&`` combines and ``on=`` accepts."""


@dataclass(frozen=True, slots=True)
class BoundConjunction:
    """Bound predicates, in the order they were written, and the filters that follow them."""

    parts: tuple[BoundPredicate, ...]
    filters: tuple[Filter, ...]
    text: str
    shared: tuple[str, ...]
    """Key columns that were named once for both sides and that the output may carry once."""

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
