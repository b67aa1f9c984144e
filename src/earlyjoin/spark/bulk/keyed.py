"""Conditions with an equality and more: Spark's own join where the equality does most of the work, else cells.

Spark hashes by the equality and checks the rest on every pair of rows with the same key. With many keys that is as
fast as it gets. With few keys, or hot ones, it is a nested loop over each of them; then rows are partitioned by the
other parts of the condition as well.
"""

from __future__ import annotations

from typing import Any

from earlyjoin.algorithms.protocol import Plan
from earlyjoin.spark.bulk.base import Sides
from earlyjoin.spark.bulk.cells.partitioned import PartitionedJoin
from earlyjoin.spark.bulk.equality import SparkJoin
from earlyjoin.spark.options import SparkOptions

_CANDIDATES_A_ROW = 50
"""Pairs with an equal key that Spark may check for each row of both inputs: so long its join is the faster one."""


class KeyedJoin:
    """Decides when it has looked at the inputs."""

    name = "Spark's own join or partitioning, by the number of rows a key"

    def __init__(self, plan: Plan, sides: Sides, options: SparkOptions) -> None:
        self._spark = SparkJoin(plan, sides)
        self._cells = PartitionedJoin(plan, sides, options)
        self._chosen: SparkJoin | PartitionedJoin | None = None

    def explain(self) -> str:
        """What was chosen, or what will be asked."""
        if self._chosen is None:
            return "Spark's own join on the equality, or partitioning by the rest as well where keys have many rows"
        return self._chosen.explain()

    def rows(self) -> Any:
        """The result; looks at the inputs first, which is a Spark job."""
        if self._chosen is None:
            pairs, rows = self._cells.equal_pairs()
            self._chosen = self._spark if pairs <= _CANDIDATES_A_ROW * rows else self._cells
            self.name = self._chosen.name
        return self._chosen.rows()
