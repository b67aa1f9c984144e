"""Growing a partition tree from a sample of both sides, so that no cell has much more to do than the others.

The work in a cell is its home rows, the guests copied to it, and the pairs found there, all in bytes. A node whose
work is above the target is split in the cheapest way: into buckets, into ranges of one of the axes, or into a matrix.
Cheap means little copying: the cost of a split is the work of its parts, each finished as a matrix that meets the
target. Parts that are still too large are split further. A hot value cannot be split by ranges and so ends as a
matrix; a plane becomes columns that are cut into cells; a wide band or an inequality ends as few ranges of matrices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.spark.bulk.cells.axes import Points
from earlyjoin.spark.bulk.cells.space import Guests, Homes, Reach, Space
from earlyjoin.spark.bulk.cells.tree import Classes, Hashed, Leaf, Node, Ranges

Float64 = npt.NDArray[np.float64]

_PARTS = (2, 4, 8, 16, 32, 64, 128, 256)
"""How many parts a node is tried to be split into."""
_DEPTH = 6
_MOST_SIDE = 64
"""Most rows and most columns of a matrix."""
_MOST_WHOLE = 256
"""Most rows of a matrix of one column."""
_COMPARED_GUESTS = 1024
_COMPARED_AXES = 6
"""How many of the sample's guests each home row of it is compared with, and by how many of the axes."""
_CLASS_QUANTILES = (0.9, 0.99, 0.999)
_LONG = 4
"""The longest home row is a class of its own only if it is so many times longer than others."""
_SPARE = 1.25
"""A node may be so many times above the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large the inputs are and how large a cell may get."""

    rows: tuple[float, float]
    """Rows of the home side and of the guests' side, all of them."""
    row_nbytes: tuple[float, float]
    cells: int
    """How many cells of equal work it takes to keep everybody busy."""
    least_nbytes: float = 4e6
    """Work that is not worth a cell of its own."""
    memory_nbytes: float = 64e6
    """Home rows and guests that a cell may have."""
    pair_nbytes: float = 32.0
    """What a pair counts: it is not kept, but found and given out."""
    whole: bool = False
    """Must each home row be in one cell only, so that it is known there whether it has any match?"""


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of both sides, drawn at random, and the largest extents of all home rows."""

    homes: Homes
    guests: Guests
    reach: Reach

    @classmethod
    def of(cls, space: Space, homes: pa.RecordBatch, guests: pa.RecordBatch, reach: Reach) -> Sample:
        """Drawn rows as batches that have at least the columns of the condition."""
        return cls(space.homes(homes), space.guests(guests), reach)


@dataclass(frozen=True, slots=True)
class Grown:
    """A tree, and the work it is expected to make."""

    tree: Node
    work_nbytes: float
    """Of all cells together."""
    largest_nbytes: float
    """Of the largest cell."""
    pairs: float


def grow(space: Space, sample: Sample, sizes: Sizes) -> Grown:
    """The tree with the least work of those that were tried."""
    grower = _Grower(space, sample, sizes)
    return min((grower.grow(reaches) for reaches in _classes(space, sample)), key=lambda grown: grown.work_nbytes)


def _classes(space: Space, sample: Sample) -> Iterator[tuple[Reach, ...]]:
    """All home rows in one class, or the longest in one of their own."""
    yield (sample.reach,)
    with_extent = [axis for axis, (_, what) in enumerate(space.places) if what.has_extent]
    if not with_extent or not len(sample.homes):
        return
    for quantile in _CLASS_QUANTILES:
        short = np.quantile(sample.homes.extents.astype(np.float64), quantile, axis=0)
        if any(sample.reach[axis] > _LONG * short[axis] for axis in with_extent):
            # Rounded down and up again through float: any number will do, as the last class takes what is longer.
            yield tuple(min(int(s), most) for s, most in zip(short, sample.reach, strict=True)), sample.reach


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the sample, and what it stands for."""

    homes: Int64
    guests: Int64
    nbytes: tuple[float, float]
    pairs_nbytes: float

    @property
    def work(self) -> float:
        return self.nbytes[0] + self.nbytes[1] + self.pairs_nbytes


class _Grower:
    def __init__(self, space: Space, sample: Sample, sizes: Sizes) -> None:
        self._space, self._sample, self._sizes = space, sample, sizes
        drawn = len(sample.homes), len(sample.guests)
        self._scales = [
            rows * nbytes / max(1, count)
            for rows, nbytes, count in zip(sizes.rows, sizes.row_nbytes, drawn, strict=True)
        ]
        self._able = [_able(rows.valid, len(rows)) for rows in (sample.homes, sample.guests)]
        self._matches = self._estimate_matches()
        total = self._part(self._able[0], self._able[1]).work
        self._target = max(sizes.least_nbytes, total / max(1, sizes.cells))

    def grow(self, reaches: tuple[Reach, ...]) -> Grown:
        """A tree with these classes of home rows."""
        classes = self._by_class(reaches)
        grown = [
            self._node(self._part(homes, self._able[1]), reach, hashed=False, depth=0)
            for homes, reach in zip(classes, reaches, strict=True)
        ]
        tree = grown[0].tree
        if any(axis.has_extent for _, axis in self._space.places):
            tree = Classes(reaches, tuple(child.tree for child in grown))
        pairs = float(self._matches[self._able[0]].sum()) / max(1.0, self._sizes.pair_nbytes)
        return Grown(tree, sum(g.work_nbytes for g in grown), max(g.largest_nbytes for g in grown), pairs)

    def _by_class(self, reaches: tuple[Reach, ...]) -> list[Int64]:
        left, classes = self._able[0], []
        for reach in reaches[:-1]:
            fits = np.all(self._sample.homes.extents[left] <= np.array(reach, dtype=np.uint64), axis=1)
            classes.append(left[fits])
            left = left[~fits]
        return [*classes, left]

    def _estimate_matches(self) -> Float64:
        """For each home row of the sample the bytes of the pairs it stands for."""
        homes, guests = self._sample.homes, self._sample.guests
        result = np.zeros(len(homes))
        able, some = self._able[0], _thinned(self._able[1], _COMPARED_GUESTS)
        if not len(able) or not len(some):
            return result
        meets = np.ones((len(able), len(some)), dtype=np.bool_)
        for axis in range(min(_COMPARED_AXES, len(self._space.places))):
            low, high = (ends[some] for ends in guests.box(axis, self._space.no_reach))
            meets &= homes.points(axis)[able][:, np.newaxis] <= high
            meets &= homes.ends(axis)[able][:, np.newaxis] >= low
        if self._space.equality is not None:
            meets &= homes.hashes[able][:, np.newaxis] == guests.hashes[some]
        counts = meets.sum(axis=1).astype(np.float64)
        # One match in a sample is chance. What is surely above it makes a row hot; the rest is spread evenly.
        hot = np.maximum(0.0, counts - 2 * np.sqrt(counts))
        rows = self._sizes.rows
        scale = rows[0] / len(homes) * rows[1] / len(guests) * len(self._able[1]) / len(some)
        result[able] = (hot + (counts - hot).sum() / len(able)) * scale * self._sizes.pair_nbytes
        return result

    def _part(self, homes: Int64, guests: Int64) -> _Part:
        nbytes = len(homes) * self._scales[0], len(guests) * self._scales[1]
        return _Part(homes, guests, nbytes, float(self._matches[homes].sum()))

    def _node(self, part: _Part, reach: Reach, *, hashed: bool, depth: int) -> Grown:
        matrix = self._matrix(part)
        if depth >= _DEPTH or matrix.cells == 1:
            return self._leaf(part, matrix)
        best, cost = None, self._matrix_work(part, matrix)
        for split in self._splits(part, reach, hashed=hashed):
            work = sum(self._matrix_work(child, self._matrix(child)) for child in split.children)
            if work < cost:
                best, cost = split, work
        if best is None:
            return self._leaf(part, matrix)
        grown = [
            self._node(child, reach, hashed=hashed or best.axis is None, depth=depth + 1) for child in best.children
        ]
        tree = best.node(tuple(g.tree for g in grown))
        return Grown(tree, sum(g.work_nbytes for g in grown), max(g.largest_nbytes for g in grown), 0.0)

    def _leaf(self, part: _Part, matrix: Leaf) -> Grown:
        work = self._matrix_work(part, matrix)
        return Grown(matrix, work, work / matrix.cells, 0.0)

    def _matrix(self, part: _Part) -> Leaf:
        """As many cells as the target asks for, shaped for the least copying."""
        sizes = self._sizes
        homes, guests = part.nbytes
        cells = max(part.work / self._target / _SPARE, (homes + guests) / sizes.memory_nbytes / _SPARE)
        if cells <= 1:
            return Leaf()
        if sizes.whole:
            return Leaf(min(_MOST_WHOLE, math.ceil(cells)), 1)
        # rows * columns = cells, and homes * columns + guests * rows is least.
        rows = min(cells, max(1.0, math.sqrt(cells * max(1.0, homes) / max(1.0, guests))))
        whole_rows = min(_MOST_SIDE, max(1, round(rows)))
        return Leaf(whole_rows, min(_MOST_SIDE, max(1, math.ceil(cells / whole_rows))))

    @staticmethod
    def _matrix_work(part: _Part, matrix: Leaf) -> float:
        return part.nbytes[0] * matrix.columns + part.nbytes[1] * matrix.rows + part.pairs_nbytes

    def _splits(self, part: _Part, reach: Reach, *, hashed: bool) -> Iterator[_Split]:
        if not len(part.homes):
            return
        enough = 2 * max(part.work / self._target, sum(part.nbytes) / self._sizes.memory_nbytes)
        counts = [count for count in _PARTS if count < 2 * enough]
        if self._space.equality is not None and not hashed:
            for count in counts:
                yield self._by_hash(part, count)
        for axis in range(len(self._space.places)):
            points = self._sample.homes.points(axis)[part.homes]
            order = np.argsort(points, kind="stable")
            weights = self._scales[0] + self._matches[part.homes][order]
            for count in counts:
                splitters = _splitters(points[order], weights, count)
                if len(splitters):
                    yield self._by_ranges(part, axis, splitters, reach)

    def _by_hash(self, part: _Part, count: int) -> _Split:
        node = Hashed((Leaf(),) * count)
        homes = node.child(self._sample.homes, part.homes)
        guests = node.child(self._sample.guests, part.guests)
        children = [self._part(part.homes[homes == n], part.guests[guests == n]) for n in range(count)]
        return _Split(None, None, tuple(children))

    def _by_ranges(self, part: _Part, axis: int, splitters: Points, reach: Reach) -> _Split:
        node = Ranges(axis, splitters, (Leaf(),) * (len(splitters) + 1))
        homes = node.child(self._sample.homes.points(axis)[part.homes])
        low, high = (node.child(ends[part.guests]) for ends in self._sample.guests.box(axis, reach))
        children = [
            self._part(part.homes[homes == n], part.guests[(low <= n) & (n <= high)]) for n in range(len(splitters) + 1)
        ]
        return _Split(axis, splitters, tuple(children))


@dataclass(frozen=True, slots=True)
class _Split:
    """A way to split a node: by ranges of an axis, or (axis None) by the hash."""

    axis: int | None
    splitters: Points | None
    children: tuple[_Part, ...]

    def node(self, children: tuple[Node, ...]) -> Node:
        if self.axis is None or self.splitters is None:
            return Hashed(children)
        return Ranges(self.axis, self.splitters, children)


def _splitters(points: Points, weights: Float64, parts: int) -> Points:
    """Points that cut sorted points into parts of about equal weight; fewer where one value is too heavy."""
    upto = np.cumsum(weights)
    places = np.searchsorted(upto, upto[-1] * np.arange(1, parts) / parts, side="right")
    splitters = np.unique(points[np.minimum(places, len(points) - 1)])
    # A hot value gets a range of its own: the value behind it begins the next one.
    after = np.searchsorted(points, splitters, side="right")
    heavy = np.bincount(np.searchsorted(splitters, points, side="right"), weights, len(splitters) + 1)[1:]
    crowded = splitters[(heavy > upto[-1] / parts) & (after < len(points))]
    behind = points[np.searchsorted(points, crowded, side="right")]
    return np.unique(np.concatenate([splitters, behind])) if len(crowded) else splitters


def _able(valid: npt.NDArray[np.bool_] | None, length: int) -> Int64:
    return np.arange(length, dtype=np.int64) if valid is None else np.flatnonzero(valid)


def _thinned(rows: Int64, most: int) -> Int64:
    """At most so many of the rows, evenly."""
    if len(rows) <= most:
        return rows
    return rows[np.arange(most) * len(rows) // most]
