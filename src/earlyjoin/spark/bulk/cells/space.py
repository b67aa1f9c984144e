"""Where the rows of a condition's sides are: points of home rows, boxes of guests, and a hash of what must be equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.kernels.hashing import hash_words
from earlyjoin.predicates.base import BoundPredicate, Capability
from earlyjoin.predicates.conjunction import BoundConjunction
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.predicates.matching import both
from earlyjoin.spark.bulk.cells.axes import Axis, Points, UInt64, axes_of

Salts = Callable[[Int64, int], UInt64]
"""Random-looking numbers of chosen rows, for a cell: the same for a row whenever and wherever it is asked for."""

Reach = tuple[int, ...]
"""For each axis how far home rows reach at most."""


@dataclass(frozen=True, slots=True)
class _Encoded:
    """The keys of a batch for every part of the condition, and which rows can match at all."""

    keys: tuple[Keys, ...]
    valid: Bool | None
    length: int


class Homes:
    """Rows of the side that is at home."""

    def __init__(self, space: Space, encoded: _Encoded, salts: Salts) -> None:
        self._space, self._encoded, self.salts = space, encoded, salts
        self.valid = encoded.valid

    def __len__(self) -> int:
        return self._encoded.length

    def points(self, axis: int) -> Points:
        """Their points on an axis."""
        part, what = self._space.places[axis]
        return what.points(self._encoded.keys[part])

    def ends(self, axis: int) -> Points:
        """Up to where they reach on an axis."""
        part, what = self._space.places[axis]
        return what.ends(self._encoded.keys[part])

    @cached_property
    def hashes(self) -> UInt64:
        """Equal for rows that are equal where they must be."""
        return _hashes(self._space, self._encoded)

    @cached_property
    def extents(self) -> UInt64:
        """For each row and axis how far it reaches."""
        columns = [axis.extents(self._encoded.keys[part]) for part, axis in self._space.places]
        return np.stack(columns, axis=1) if columns else np.zeros((len(self), 0), dtype=np.uint64)


class Guests:
    """Rows of the other side."""

    def __init__(self, space: Space, encoded: _Encoded, salts: Salts) -> None:
        self._space, self._encoded, self.salts = space, encoded, salts
        self.valid = encoded.valid
        self.no_reach = space.no_reach
        self._boxes: dict[tuple[int, int], tuple[Points, Points]] = {}

    def __len__(self) -> int:
        return self._encoded.length

    def box(self, axis: int, reach: Reach) -> tuple[Points, Points]:
        """The lowest and the highest point on an axis of home rows they may match."""
        wanted = axis, reach[axis]
        if wanted not in self._boxes:
            part, what = self._space.places[axis]
            self._boxes[wanted] = what.box(self._encoded.keys[part], reach[axis])
        return self._boxes[wanted]

    @cached_property
    def hashes(self) -> UInt64:
        """As those of home rows."""
        return _hashes(self._space, self._encoded)


@dataclass(frozen=True, slots=True)
class Space:
    """A condition, seen from one side. Made by :meth:`of`; can be pickled."""

    home: int
    """The side that is at home."""
    parts: tuple[BoundPredicate, ...]
    places: tuple[tuple[int, Axis], ...]
    """The axes, each with the number of the part it belongs to."""
    equality: int | None
    """The part that rows must be equal on."""
    columns: tuple[tuple[str, ...], tuple[str, ...]] = field(compare=False)
    """The columns that are read, a tuple a side."""

    @classmethod
    def of(cls, condition: BoundConjunction, home: int) -> Space:
        """The space of a condition."""
        parts = condition.parts
        places = tuple((number, axis) for number, part in enumerate(parts) for axis in axes_of(part, home))
        equality = next((n for n, part in enumerate(parts) if part.capabilities & Capability.HASHABLE), None)
        columns = [tuple(dict.fromkeys(name for part in parts for name in part.columns[side])) for side in (0, 1)]
        return cls(home, parts, places, equality, (columns[0], columns[1]))

    @property
    def no_reach(self) -> Reach:
        """The reach of home rows without extents."""
        return (0,) * len(self.places)

    def homes(self, batch: pa.RecordBatch, salts: Salts | None = None) -> Homes:
        """A batch of the side at home."""
        return Homes(self, self._encode(self.home, batch), salts or _no_salts)

    def guests(self, batch: pa.RecordBatch, salts: Salts | None = None) -> Guests:
        """A batch of the other side."""
        return Guests(self, self._encode(1 - self.home, batch), salts or _no_salts)

    def _encode(self, side: int, batch: pa.RecordBatch) -> _Encoded:
        keys = tuple(part.encode(side, batch) for part in self.parts)
        valid: Bool | None = None
        for key in keys:
            valid = both(valid, key.valid)
        return _Encoded(keys, valid, batch.num_rows)


def _hashes(space: Space, encoded: _Encoded) -> UInt64:
    assert space.equality is not None
    words: npt.NDArray[np.int64] = encoded.keys[space.equality].words.astype(np.int64, copy=False)
    return np.asarray(hash_words(words)).view(np.uint64)


def _no_salts(rows: Int64, cell: int) -> UInt64:
    raise AssertionError("a cell that is split by salts needs rows with salts")
