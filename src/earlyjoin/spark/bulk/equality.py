"""Spark's own join does the bulk: what it costs is what Spark costs; skew and broadcasts are Spark's business."""

from __future__ import annotations

from typing import Any

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.spark.bulk.base import Sides, row_names
from earlyjoin.spark.columns.conditions import column_condition
from earlyjoin.spark.early.exclusion import given_early, not_given_early
from earlyjoin.spark.session import functions

_SPARK_NAMES = {JoinType.SEMI: "left_semi", JoinType.ANTI: "left_anti"}


class SparkJoin:
    """``DataFrame.join`` of everything, less what the early phase gave out."""

    name = "Spark's own join"

    def __init__(self, plan: Plan, sides: Sides) -> None:
        self._plan = plan
        self._sides = sides

    def explain(self) -> str:
        if self._plan.condition.always:
            return "Spark's own cross join"
        return "Spark's own join on the condition, less the pairs that were joined early"

    def rows(self) -> Any:
        how, sides = self._plan.how, [self._sides.left, self._sides.right]
        if self._plan.condition.always:
            return sides[0].crossJoin(sides[1])
        if self._sides.sent is not None:
            sides[self._sides.sent] = functions().broadcast(sides[self._sides.sent])
        joined = sides[0].join(sides[1], column_condition(self._plan), _SPARK_NAMES.get(how, how.value))
        if self._sides.tagged and how is JoinType.SEMI:
            joined = self._without_early_rows(joined)
        elif self._sides.tagged and how is not JoinType.ANTI:
            joined = joined.where(not_given_early())
        # Spark analyses a DataFrame when it is made: one less matters where it needs no shuffle.
        return joined.selectExpr(*row_names(self._plan)) if self._sides.tagged else joined

    def _without_early_rows(self, left: Any) -> Any:
        """Left rows that met no partner in the early phase. The partners are few, and are sent to every task."""
        assert self._sides.early_right is not None
        partners = functions().broadcast(self._sides.early_right())
        return left.join(partners, column_condition(self._plan) & given_early(), "left_anti")
