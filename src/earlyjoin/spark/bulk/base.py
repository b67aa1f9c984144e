"""The seam between the query and what joins everything: a :class:`Bulk` gets two sides and gives joined rows.

Columns are renamed by position (``l0, l1, …`` and ``r0, r1, …``), so that no two names clash whatever users call their
columns, and a DataFrame can be joined with itself. Where an early phase took rows, a tag column comes last (see
:mod:`earlyjoin.spark.early.exclusion`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from earlyjoin.algorithms.protocol import Plan
from earlyjoin.predicates.base import Capability
from earlyjoin.spark.early.exclusion import LEFT_TAG, NO_TAG, RIGHT_TAG
from earlyjoin.spark.options import SparkOptions

PREFIXES = ("l", "r")


@dataclass(frozen=True, slots=True)
class Sides:
    """Both inputs with columns named by position, and their tags if any row has one."""

    left: Any
    right: Any
    early_right: Callable[[], Any] | None = None
    """Makes the rows of the right side whose tag is not 0, read without the rest of it; None when no row has one."""
    sent: int | None = None
    """The side that Spark's own join is to send to every task, known to be small; None: as Spark likes."""

    @property
    def tagged(self) -> bool:
        """Did an early phase take anything from this join?"""
        return self.early_right is not None

    def with_tag(self, side: int) -> Any:
        """The rows of a side with their tags, which are all 0 where no early phase took anything."""
        frame = (self.left, self.right)[side]
        return frame if self.tagged else frame.selectExpr("*", f"cast({NO_TAG} AS tinyint) AS {tag_name(side)}")


class Bulk(Protocol):
    """Joins everything that the early phase has not given out."""

    name: str
    """A few words, for ``explain``."""

    def explain(self) -> str:
        """One sentence: what is done, and why."""
        ...

    def rows(self) -> Any:
        """A lazy DataFrame of the result: ``l0… r0…`` (null where a side is absent); of semi and anti joins ``l0…``."""
        ...


def column_names(plan: Plan, side: int) -> list[str]:
    """The names of a side's columns in a bulk."""
    return [f"{PREFIXES[side]}{position}" for position in range(len(plan.schemas[side]))]


def tag_name(side: int) -> str:
    """The name of a side's tag column."""
    return (LEFT_TAG, RIGHT_TAG)[side]


def row_names(plan: Plan) -> list[str]:
    """The columns that ``Bulk.rows`` has."""
    return column_names(plan, 0) + (column_names(plan, 1) if plan.how.gives_pairs else [])


def choose_bulk(plan: Plan, sides: Sides, options: SparkOptions) -> Bulk:
    """By what the condition has: a band, an equality, an equality and more, or neither."""
    from earlyjoin.spark.bulk.banded import BandedJoin
    from earlyjoin.spark.bulk.bucketed import bands
    from earlyjoin.spark.bulk.cells.partitioned import PartitionedJoin
    from earlyjoin.spark.bulk.equality import SparkJoin
    from earlyjoin.spark.bulk.keyed import KeyedJoin
    from earlyjoin.spark.columns.keys import spark_alone

    if spark_alone(plan) is not None:
        return SparkJoin(plan, sides)
    if bands(plan):
        return BandedJoin(plan, sides, options)
    if plan.condition.driver(Capability.HASHABLE) is None:
        return PartitionedJoin(plan, sides, options)
    if len(plan.condition.parts) > 1:
        return KeyedJoin(plan, sides, options)
    return SparkJoin(plan, sides)
