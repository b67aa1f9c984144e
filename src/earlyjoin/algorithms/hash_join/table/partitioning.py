"""Which partition a row belongs to, and arriving rows in the order of their partitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.algorithms.hash_join.table.stored_form import to_stored
from earlyjoin.kernels.hashing import hash_words
from earlyjoin.kernels.partitioning import order_by_partition
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.rows.store import BatchRows

Numbers = npt.NDArray[np.int32]
_STRIPE_BITS = 4
STRIPES = 2**_STRIPE_BITS
"""Stripes of a striped run: more of them cost pages that two stripes share, fewer cost room for one of them."""


@dataclass(frozen=True, slots=True)
class Partitioner:
    """The hash function H of the papers: equal keys have equal partitions, on both sides."""

    count: int
    hashing: str = "mixed"
    """``mod``: the first key word modulo ``count`` (RPJ section 6); else any key is spread evenly."""

    def numbers(self, keys: Keys) -> Numbers:
        """The partition of each row, from 0 on."""
        if self.count == 1:
            return np.zeros(len(keys), dtype=np.int32)
        words = keys.words.view(np.int64)
        if self.hashing == "mod":
            return np.mod(words[:, 0], self.count).astype(np.int32)
        return (hash_words(words) % np.uint64(self.count)).astype(np.int32)

    def stripes(self, keys: Keys) -> Numbers:
        """The stripe of each row inside its partition, from 0 on: the first bits of its hash."""
        first_bits = hash_words(keys.words.view(np.int64)) >> np.uint64(64 - _STRIPE_BITS)
        return first_bits.astype(np.int32)


@dataclass(slots=True)
class Piece:
    """Rows of one side in the order of their partitions: rows ``starts[p]`` to ``starts[p + 1]`` belong to p."""

    batch: pa.RecordBatch
    keys: Keys
    arrivals: Int64
    starts: Int64

    def __len__(self) -> int:
        return len(self.arrivals)

    @classmethod
    def of(
        cls, batch: pa.RecordBatch, keys: Keys, arrivals: Int64, numbers: Numbers, count: int, schema: pa.Schema
    ) -> Piece:
        """Order rows by partition with one gather, as they are kept; inside a partition in the order of arrival."""
        order, starts = order_by_partition(numbers, count)
        columns = BatchRows(batch).take(order)
        return cls(to_stored(columns, schema), keys.take(order), arrivals[order], starts)

    def range(self, partition: int) -> tuple[int, int]:
        """First row of a partition and the row behind its last."""
        return int(self.starts[partition]), int(self.starts[partition + 1])
