"""Pairs of tables laid out in files, whose join has a known size: which keys there are, and which file has which rows.

Keys and order are drawn by a seed; a shape is the keys of a join (``JOINS``) in the order of its rows (``ORDERS``), in
files that are cut into slots as :mod:`earlyjoin.spark.early.blocks` does it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from earlyjoin.report.coverage.inputs import Ints

Random = np.random.Generator
Keys = tuple[Ints, Ints]
Order = Callable[[Random, Ints, float], Ints]
"""Rows in the order in which they lie in files, from their keys; the number is the share of the keys of a file."""


@dataclass(frozen=True, slots=True)
class FileLayout:
    """Files of both sides, and slots of a file: a block is a slot of a file."""

    files: tuple[int, int]
    slots: tuple[int, int]

    @property
    def blocks(self) -> tuple[int, int]:
        """Blocks of both sides."""
        return self.files[0] * self.slots[0], self.files[1] * self.slots[1]

    def __str__(self) -> str:
        left, right = (f"{files}x{slots}" for files, slots in zip(self.files, self.slots, strict=True))
        return left if left == right else f"{left}, {right}"


@dataclass(frozen=True, slots=True)
class FileJoin:
    """A join of two tables in files."""

    join: str
    order: str
    layout: FileLayout
    rows: int = 120_000
    """Of the larger side, about."""

    def __str__(self) -> str:
        return f"{self.join}, {self.order}, {self.layout}"

    def drawn(self, seed: int) -> FileTables:
        """Two tables by one seed."""
        random = np.random.default_rng([seed, 7])
        keys = JOINS[self.join](random, self.rows)
        orders = ORDERS[self.order]
        sides = []
        for key, order, files, slots in zip(keys, orders, self.layout.files, self.layout.slots, strict=True):
            laid = key[order(random, key, 1 / files)]
            block = np.arange(len(laid)) * files // len(laid) * slots + random.integers(0, slots, len(laid))
            by_block = np.argsort(block, kind="stable")
            sides.append(Side(laid[by_block], np.searchsorted(block[by_block], np.arange(files * slots + 1))))
        return FileTables(self.layout, (sides[0], sides[1]))


@dataclass(frozen=True, slots=True)
class Side:
    """The keys of one side, block by block."""

    keys: Ints
    starts: Ints
    """Where blocks start, and the end."""

    def rows(self, blocks: Ints) -> tuple[Ints, Ints]:
        """Keys of these blocks, and for each of them the place of its block among them."""
        sizes = self.starts[blocks + 1] - self.starts[blocks]
        keys = np.concatenate([self.keys[self.starts[block] : self.starts[block + 1]] for block in blocks])
        return keys, np.repeat(np.arange(len(blocks)), sizes)


@dataclass(frozen=True, slots=True)
class FileTables:
    """Two tables in files."""

    layout: FileLayout
    sides: tuple[Side, Side]

    def truth(self) -> int:
        """Rows of the whole result."""
        domain = 1 + max(int(side.keys.max()) for side in self.sides)
        left, right = (np.bincount(side.keys, minlength=domain) for side in self.sides)
        return int(left @ right)


# Keys


def _references(random: Random, rows: int) -> Keys:
    """Orders and their lines: one to seven for each."""
    lines = random.integers(1, 8, rows // 4)
    return np.arange(rows // 4), np.repeat(np.arange(rows // 4), lines)


def _zipf(random: Random, keys: int, power: float, rows: int) -> Ints:
    ends = np.cumsum(np.arange(1, keys + 1) ** -power)
    ranks = np.searchsorted(ends / ends[-1], random.random(rows))
    return np.random.default_rng(keys).permutation(keys)[ranks]


def _many_to_many(random: Random, rows: int) -> Keys:
    return random.integers(0, rows // 20, rows // 2), random.integers(0, rows // 20, rows)


def _skewed(random: Random, rows: int) -> Keys:
    """Zipf(1) on both sides, the same keys frequent."""
    return _zipf(random, rows // 20, 1.0, rows // 2), _zipf(random, rows // 20, 1.0, rows)


def _skewed_references(random: Random, rows: int) -> Keys:
    """Customers and their orders, Zipf(1): ten of them have a quarter of all orders."""
    return np.arange(rows // 4), _zipf(random, rows // 4, 1.0, rows)


def _sparse(random: Random, rows: int) -> Keys:
    """Unique keys, one in twenty of which is on the other side too."""
    both = random.random(rows * 2) < 0.05
    side = random.random(rows * 2) < 1 / 3
    keys = np.arange(rows * 2)
    return keys[both | side], keys[both | ~side]


def _hot(random: Random, rows: int) -> Keys:
    """As many to many, with a twentieth of the rows of either side under one key."""
    left, right = _many_to_many(random, rows)
    left[random.random(len(left)) < 0.05] = rows // 30
    right[random.random(len(right)) < 0.05] = rows // 30
    return left, right


def _hot_reference(random: Random, rows: int) -> Keys:
    """As references, with a third of the lines under one order."""
    left, right = _references(random, rows)
    right[random.random(len(right)) < 1 / 3] = len(left) // 3
    return left, right


def _unknown_reference(random: Random, rows: int) -> Keys:
    """As references, with a third of the lines under a key that no order has."""
    left, right = _references(random, rows)
    right[random.random(len(right)) < 1 / 3] = len(left)
    return left, right


def _recent(random: Random, rows: int) -> Keys:
    """References, but only the first tenth of the orders is there."""
    left, right = _references(random, rows)
    return left[: len(left) // 10], right


JOINS: dict[str, Callable[[Random, int], Keys]] = {
    "references": _references,
    "many to many": _many_to_many,
    "skewed": _skewed,
    "skewed references": _skewed_references,
    "sparse": _sparse,
    "hot key": _hot,
    "hot reference": _hot_reference,
    "unknown reference": _unknown_reference,
    "recent": _recent,
}

# Orders


def _shuffled(random: Random, keys: Ints, file: float) -> Ints:
    return random.permutation(len(keys))


def _sorted(random: Random, keys: Ints, file: float) -> Ints:
    return np.argsort(keys, kind="stable")


def _clustered(random: Random, keys: Ints, file: float) -> Ints:
    """Nearly sorted: rows stray about as far as two files."""
    span = int(keys.max()) + 1
    return np.argsort(keys + random.normal(0, 2 * file * span, len(keys)))


def _half_sorted(random: Random, keys: Ints, file: float) -> Ints:
    """Every second row is somewhere else."""
    span = int(keys.max()) + 1
    return np.argsort(np.where(random.random(len(keys)) < 0.5, keys, random.integers(0, span, len(keys))))


def _chunked(random: Random, keys: Ints, file: float) -> Ints:
    """Sorted chunks of a fifth of a file, each of them anywhere: the two sides have different ones together."""
    span = int(keys.max()) + 1
    chunk = (keys / (span * file / 5)).astype(np.int64)
    return np.lexsort((keys, random.permutation(chunk.max() + 1)[chunk]))


def _by_hash(random: Random, keys: Ints, file: float) -> Ints:
    """A file for each hash of the key, the same for both sides."""
    files = round(1 / file)
    hashed = np.random.default_rng(3).integers(0, 2**40, int(keys.max()) + 1) % files
    return np.lexsort((random.random(len(keys)), hashed[keys]))


ORDERS: dict[str, tuple[Order, Order]] = {
    "shuffled": (_shuffled, _shuffled),
    "sorted": (_sorted, _sorted),
    "clustered": (_clustered, _clustered),
    "half sorted": (_half_sorted, _half_sorted),
    "left sorted": (_sorted, _shuffled),
    "right sorted": (_shuffled, _sorted),
    "chunks": (_chunked, _chunked),
    "by hash": (_by_hash, _by_hash),
}
