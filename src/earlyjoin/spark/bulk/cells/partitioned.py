"""The bulk of a join without Spark's help: rows go to the cells of a partition tree, and an operator joins every cell.

::

    survey ──▶ tree ──▶ left:  pack ─┐
                        right: pack ─┴─▶ shuffle by cell ──▶ an operator a cell ──▶ rows

One side is at home (see :mod:`earlyjoin.spark.bulk.cells`): the one whose unmatched rows go out, since only a row
that lives in one cell is known to be unmatched there; in an inner join the one that makes less work. A full join asks
for both sides: it is a left join and, with the right side at home, the right rows that stay alone. Where nothing is
copied at all one pass is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.predicates.base import LEFT, RIGHT
from earlyjoin.spark.bulk.base import Sides, row_names
from earlyjoin.spark.bulk.cells import Sample, Sizes, Space, grow
from earlyjoin.spark.bulk.cells.cell_join import TASK_NBYTES, CellJoiner, cell_plan
from earlyjoin.spark.bulk.cells.driving import candidates
from earlyjoin.spark.bulk.cells.growing import Grown
from earlyjoin.spark.bulk.cells.packing import PACKED, Packer
from earlyjoin.spark.inspecting.surveying import Survey, survey
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.session import functions

_CELLS_A_CORE = 3
"""Cells of equal work for each core: enough that one that takes longer does not keep the others waiting."""
_MEMORY_SHARE = 1 / 4
"""Part of a task's memory that the rows of its cell are to fill, as far as a sample can tell."""
_UNHASHABLE = ("map", "variant")
_SALT = "salt"


@dataclass(frozen=True, slots=True)
class Layout:
    """One pass over both inputs: who is at home, and in which cells."""

    space: Space
    grown: Grown
    how: JoinType
    driver: int | None = None
    """The part of the condition that drives the operators, where it is not the usual one."""
    pairs: bool = True
    """Does it give out pairs, or unmatched rows alone?"""

    @property
    def copied_nothing(self) -> bool:
        """Is every row of either side in one cell?"""
        return self.grown.tree.whole and self.grown.tree.whole_guests


class PartitionedJoin:
    """Everything by operators, one for each cell, behind a shuffle of packed rows."""

    name = "partitioning by ranges"

    def __init__(self, plan: Plan, sides: Sides, options: SparkOptions) -> None:
        self._plan, self._sides, self._options = plan, sides, options
        self._survey: Survey | None = None
        self._layouts: list[Layout] | None = None
        self.memory_nbytes = TASK_NBYTES

    def explain(self) -> str:
        """What is done; with sizes, once the inputs have been looked at."""
        what = (
            "rows are sent to cells by ranges of their keys, with copies where ranges meet, and a progressive merge "
            "join joins each cell; Spark alone would compare every pair of rows"
        )
        if self._layouts is None or self._survey is None:
            return what
        rows = " and ".join(f"{side.rows:,}" for side in self._survey.sides)
        cells = " and ".join(f"{layout.grown.tree.cells:,}" for layout in self._layouts)
        return f"{what}; {rows} rows, {cells} cells, {self._survey.cores} tasks at once"

    def rows(self) -> Any:
        """The result. Looks at the inputs first, which is a Spark job; the join itself is lazy."""
        passes = [self._rows_of(layout) for layout in self.layouts()]
        result = passes[0]
        for more in passes[1:]:
            result = result.unionAll(more)
        return result

    def layouts(self) -> list[Layout]:
        """The passes over the inputs, one or two."""
        if self._layouts is None:
            self._layouts = self._lay_out(self._look())
        return self._layouts

    def _lay_out(self, seen: Survey) -> list[Layout]:
        how = self._plan.how
        if how is JoinType.INNER:
            first = self._layout(seen, LEFT, how)
            if first.grown.tree.cells <= seen.cores:  # small, and not worth a second thought
                return [first]
            return [min(first, self._layout(seen, RIGHT, how), key=lambda layout: layout.grown.work_nbytes)]
        if how is not JoinType.FULL:
            return [self._layout(seen, RIGHT if how is JoinType.RIGHT else LEFT, how)]
        both = self._layout(seen, LEFT, how)
        if both.copied_nothing:
            return [both]
        left = replace(both, how=JoinType.LEFT)
        return [left, self._layout(seen, RIGHT, JoinType.RIGHT, pairs=False)]

    def equal_pairs(self) -> tuple[float, int]:
        """About how many pairs of rows satisfy the equality alone, and the rows of both inputs; looks at the inputs."""
        seen = self._look()
        space, sample, sizes = self._sampled(seen, LEFT, self._plan.how)
        by_part = candidates(space, sample, sizes, 1).by_part
        pairs = by_part.get(space.equality, 0.0) if space.equality is not None else 0.0
        return pairs, sum(side.rows for side in seen.sides)

    def hot(self) -> bool:
        """Are there values with so much work that they are split among several cells? Looks at the inputs."""
        return any(layout.grown.tree.splits for layout in self.layouts())

    def _look(self) -> Survey:
        if self._survey is None:
            self._survey = survey(self._plan, self._sides, self._options.seed)
        return self._survey

    def _layout(self, seen: Survey, home: int, how: JoinType, *, pairs: bool = True) -> Layout:
        space, sample, sizes = self._sampled(seen, home, how)
        grown = grow(space, sample, sizes)
        driver = candidates(space, sample, sizes, grown.tree.cells).best
        return Layout(space, grown, how, driver, pairs)

    def _sampled(self, seen: Survey, home: int, how: JoinType) -> tuple[Space, Sample, Sizes]:
        space = Space.of(self._plan.condition, home)
        homes, guests = seen.sides[home], seen.sides[1 - home]
        sizes = Sizes(
            rows=(homes.rows, guests.rows),
            row_nbytes=(homes.row_nbytes, guests.row_nbytes),
            cells=_CELLS_A_CORE * seen.cores,
            memory_nbytes=_MEMORY_SHARE * self.memory_nbytes,
            whole=how.remembers_matched(home),
        )
        return space, Sample.of(space, homes.sample, guests.sample, homes.reach), sizes

    def _rows_of(self, layout: Layout) -> Any:
        tree = layout.grown.tree
        left, right = (self._packed(layout, side) for side in (LEFT, RIGHT))
        packed = left.unionAll(right)
        if hasattr(packed, "repartitionById"):
            packed = packed.repartitionById(tree.cells, "cell")
        else:  # before Spark 4.1: several cells may meet in a task, one after the other
            packed = packed.repartition(tree.cells, "cell").sortWithinPartitions("cell")
        plan = cell_plan(self._plan, layout.how, layout.driver)
        joiner = CellJoiner(plan=plan, tagged=self._sides.tagged, pairs=layout.pairs, memory_nbytes=self.memory_nbytes)
        return packed.mapInArrow(joiner, self._result_schema())

    def _packed(self, layout: Layout, side: int) -> Any:
        frame = self._sides.with_tag(side)
        keep = layout.how.gives_unmatched(side)
        salted = layout.grown.tree.splits or keep
        if salted:
            frame = frame.withColumn(_SALT, _row_hash(frame))
        packer = Packer(
            space=layout.space,
            tree=layout.grown.tree,
            side=side,
            schema=cell_plan(self._plan).schemas[side],
            salted=salted,
            keep_unmatchable=keep,
        )
        return frame.mapInArrow(packer, PACKED)

    def _result_schema(self) -> Any:
        from pyspark.sql.types import StructField, StructType

        fields = {field.name: field for frame in (self._sides.left, self._sides.right) for field in frame.schema}
        return StructType([StructField(name, fields[name].dataType) for name in row_names(self._plan)])


def _row_hash(frame: Any) -> Any:
    """A hash of the whole row, the same wherever the row is read again."""
    f = functions()
    names = [
        field.name for field in frame.schema if not any(kind in field.dataType.simpleString() for kind in _UNHASHABLE)
    ]
    return f.xxhash64(*names)
