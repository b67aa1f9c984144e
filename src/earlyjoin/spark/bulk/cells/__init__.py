"""Which cells of a partitioning a row goes to, so that any two rows that match meet in exactly one cell.

One side of a join is *at home*: each of its rows has one place. Rows of the other side are *guests*: a guest is copied
to every cell in which a row that it matches may live. So a pair meets once, where the home row lives, and whether a
home row has any match at all is known in one cell. NumPy alone: nothing here knows Spark.
"""

from earlyjoin.spark.bulk.cells.axes import Axis, axes_of
from earlyjoin.spark.bulk.cells.growing import Sample, Sizes, grow
from earlyjoin.spark.bulk.cells.space import Guests, Homes, Space
from earlyjoin.spark.bulk.cells.tree import Classes, Hashed, Leaf, Node, Ranges, assign

__all__ = [
    "Axis",
    "Classes",
    "Guests",
    "Hashed",
    "Homes",
    "Leaf",
    "Node",
    "Ranges",
    "Sample",
    "Sizes",
    "Space",
    "assign",
    "axes_of",
    "grow",
]
