"""What a predicate is: a description by column names, and its bound form that encodes and compares keys.

A :class:`Predicate` is what users write. ``bind`` resolves it against two schemas into a :class:`BoundPredicate`, which
refuses unsupported types before any data is read and from then on knows only arrays. What algorithms may do with it is
*declared* by its :class:`Capability`; no algorithm looks at the class of a predicate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Flag, auto
from typing import TYPE_CHECKING, NoReturn, Protocol, Self

import numpy as np
import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys

if TYPE_CHECKING:
    from earlyjoin.predicates.conjunction import Condition, Conjunction
    from earlyjoin.predicates.disjunction import Disjunction

LEFT, RIGHT = 0, 1


class Capability(Flag):
    """What an algorithm may do with a predicate."""

    NONE = 0
    HASHABLE = auto()
    """Rows that match have equal keys: partitioning and hashing find all of them."""
    SORTABLE = auto()
    """Keys have one word whose order, with a remove condition, brings matches together."""
    BANDED = auto()
    """Keys are numbers, and matches lie within a fixed distance."""
    SWEEPABLE = auto()
    """A sweep area exists for it."""


class Combinable:
    """Whatever ``&`` and ``|`` combine."""

    __slots__ = ()

    def __and__(self, other: Condition) -> Conjunction:
        from earlyjoin.predicates.conjunction import Conjunction

        return Conjunction.of(self, other)  # type: ignore[arg-type]  # every subclass is a Condition

    def __or__(self, other: Condition) -> Disjunction:
        from earlyjoin.predicates.disjunction import Disjunction

        return Disjunction.of(self, other)  # type: ignore[arg-type]

    def __bool__(self) -> NoReturn:
        # "a and b" would silently be b alone.
        raise InputError(
            f"({self}) is neither true nor false: combine conditions with & and |, not with 'and' and 'or'"
        )


class Predicate(Combinable, ABC):
    """A join condition over column names. Combine several with ``&`` and ``|``."""

    @abstractmethod
    def bind(self, left: pa.Schema, right: pa.Schema) -> BoundPredicate:
        """Resolve the columns and types, or raise InputError / UnsupportedError naming what does not fit."""

    @abstractmethod
    def __str__(self) -> str:
        """The condition as a person would write it."""


class Pairs(Protocol):
    """Candidate pairs of rows, of which conditions look at some columns."""

    def __len__(self) -> int: ...

    def columns(self, side: int, names: Sequence[str]) -> pa.RecordBatch:
        """These columns of one side, a row for each pair."""
        ...

    def joined(self) -> pa.Table:
        """The columns of the joined row that expressions look at, a row for each pair."""
        ...

    def chosen(self, mask: Bool) -> Self:
        """Those pairs where the mask is true."""
        ...


class BoundPredicate(ABC):
    """A predicate whose columns and types are known."""

    capabilities: Capability
    columns: tuple[tuple[str, ...], ...]
    """The columns it reads, a tuple for each side."""
    text: str
    """The condition as a person would write it."""
    rank: int
    """Which part of a conjunction drives: the lowest (0 equality, 1 distances and overlaps, 2 orders, 3 not equal)."""

    @abstractmethod
    def encode(self, side: int, batch: pa.RecordBatch) -> Keys:
        """The keys of a batch of ``side``; the batch has at least this predicate's columns."""

    @abstractmethod
    def holds(self, left: Keys, i: Int64, right: Keys, j: Int64) -> Bool:
        """For each k: do row ``i[k]`` of ``left`` and row ``j[k]`` of ``right`` match? Never true for invalid rows."""

    def mask(self, pairs: Pairs) -> Bool:
        """For each candidate pair: does it match?"""
        left, right = (self.encode(side, pairs.columns(side, self.columns[side])) for side in (LEFT, RIGHT))
        each = np.arange(len(pairs), dtype=np.int64)
        return self.holds(left, each, right, each)
