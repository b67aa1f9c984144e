"""Several conditions of which one must hold. It filters what the rest of a condition found, and drives nothing.

In SQL's logic of three values an OR is true when one of its parts is, whether the others are false or unknown. So a
part that compares a null counts as false here; there is no NOT around it that could tell the two apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from earlyjoin.predicates.base import Combinable, Pairs
from earlyjoin.predicates.encoding.keys import Bool

if TYPE_CHECKING:
    from earlyjoin.predicates.conjunction import BoundConjunction, Condition, Conjunction
    from earlyjoin.predicates.filters import Filter


@dataclass(frozen=True, slots=True)
class Disjunction(Combinable):
    """Conditions joined by OR; made with ``|``."""

    alternatives: tuple[Conjunction, ...]

    @classmethod
    def of(cls, *conditions: Condition) -> Disjunction:
        """All conditions in one flat disjunction."""
        from earlyjoin.predicates.conjunction import Conjunction

        alternatives: list[Conjunction] = []
        for condition in conditions:
            if isinstance(condition, Disjunction):
                alternatives += condition.alternatives
            else:
                alternatives.append(Conjunction.of(condition))
        return cls(tuple(alternatives))

    def bind(self, left: pa.Schema, right: pa.Schema) -> BoundDisjunction:
        """Bind every alternative to the schemas of both inputs."""
        return BoundDisjunction(tuple(one.bind(left, right) for one in self.alternatives), str(self))

    def __str__(self) -> str:
        return f"({' OR '.join(map(str, self.alternatives))})"


@dataclass(frozen=True, slots=True)
class BoundDisjunction:
    """Alternatives whose columns and types are known."""

    alternatives: tuple[BoundConjunction, ...]
    text: str

    @property
    def expressions(self) -> tuple[Filter, ...]:
        """All Arrow expressions in it."""
        return tuple(expression for one in self.alternatives for expression in one.expressions)

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each side that it reads by their own names."""
        sides = zip(*(one.columns for one in self.alternatives), strict=True)
        return tuple(tuple(dict.fromkeys(name for names in side for name in names)) for side in sides)

    def mask(self, pairs: Pairs) -> Bool:
        """For each candidate pair: does an alternative hold? Each looks only at what the earlier ones have left."""
        result = np.zeros(len(pairs), dtype=np.bool_)
        left = np.arange(len(pairs), dtype=np.int64)
        for one in self.alternatives:
            if len(left) == 0:
                break
            mask = one.mask(pairs)
            result[left[mask]] = True
            left, pairs = left[~mask], pairs.chosen(~mask)
        return result
