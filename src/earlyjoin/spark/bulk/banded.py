"""Bands: buckets and Spark's own join, unless a sample shows that few values have most of the work.

Small inputs are not worth the look: a hot bucket of a small table is no larger than the table. How large inputs are is
read off Spark's plan, which costs no job.
"""

from __future__ import annotations

from typing import Any

from earlyjoin.algorithms.protocol import Plan
from earlyjoin.spark.bulk.base import Sides
from earlyjoin.spark.bulk.bucketed import BucketedJoin
from earlyjoin.spark.bulk.cells.partitioned import PartitionedJoin
from earlyjoin.spark.inspecting.plans import planned_nbytes
from earlyjoin.spark.options import SparkOptions

SMALL_NBYTES = 32 * 2**20
"""Both inputs together, as Spark estimates them."""


class BandedJoin:
    """Decides when it is asked for rows."""

    name = "buckets of the band, or cells"

    def __init__(self, plan: Plan, sides: Sides, options: SparkOptions) -> None:
        self._buckets = BucketedJoin(plan, sides)
        self._cells = PartitionedJoin(plan, sides, options)
        self._sides = sides
        self._chosen: BucketedJoin | PartitionedJoin | None = None

    def explain(self) -> str:
        """What was chosen, or what will be asked."""
        if self._chosen is None:
            return f"{self._buckets.explain()}; cells for values that have most of the work"
        return self._chosen.explain()

    def rows(self) -> Any:
        """The result; looks at inputs that are not small first, which is a Spark job."""
        if self._chosen is None:
            self._chosen = self._buckets if self._small() or not self._cells.hot() else self._cells
            self.name = self._chosen.name
        return self._chosen.rows()

    def _small(self) -> bool:
        sizes = [planned_nbytes(frame) for frame in (self._sides.left, self._sides.right)]
        return all(size is not None and size <= SMALL_NBYTES / 2 for size in sizes)
