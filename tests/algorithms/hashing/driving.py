"""Joins of integer keys on the partitioned hash table, driven row by row or batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from algorithms.harness import Join
from earlyjoin.algorithms.protocol import Slice

SCHEMA = pa.schema([pa.field("k", pa.int64()), pa.field("id", pa.int64())])
Arrivals = Sequence[tuple[int, int]]
"""(side, key) in the order of arrival."""


def interleaved(left: Iterable[int], right: Iterable[int], a: int = 1, b: int = 1) -> list[tuple[int, int]]:
    """Keys of two inputs read in the ratio a:b; what is left of one comes at the end."""
    queues, order = [list(left), list(right)], []
    while any(queues):
        for side, count in ((0, a), (1, b)):
            order += [(side, key) for key in queues[side][:count]]
            queues[side] = queues[side][count:]
    return order


def naive(arrivals: Arrivals) -> Counter[tuple[int, int]]:
    """Pairs of row numbers (of each side, in the order of arrival) with equal keys."""
    sides: list[list[int]] = [[], []]
    for side, key in arrivals:
        sides[side].append(key)
    rows: dict[int, list[int]] = {}
    for row, key in enumerate(sides[1]):
        rows.setdefault(key, []).append(row)
    return Counter((i, j) for i, key in enumerate(sides[0]) for j in rows.get(key, ()))


class Run:
    """A join of arrivals from the first to the last, in batches of at most ``batch_rows`` of one side."""

    def __init__(
        self,
        algorithm: str,
        directory: Path,
        arrivals: Arrivals,
        *,
        batch_rows: int = 7,
        react: int = 0,
        concurrent: bool = False,
        memory: str = "60rows",
        **more: Any,
    ) -> None:
        self.join = Join(algorithm, SCHEMA, SCHEMA, directory, memory=memory, **more)
        self.join.context.concurrent = concurrent
        self.operator: Any = self.join.operator
        self.before_cleanup: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []
        seen = [0, 0]
        lengths = [sum(side == s for side, _ in arrivals) for s in (0, 1)]
        for side, keys in _batches(arrivals, batch_rows):
            ids = range(seen[side], seen[side] + len(keys))
            batch = pa.RecordBatch.from_arrays([pa.array(keys, pa.int64()), pa.array(ids, pa.int64())], schema=SCHEMA)
            self.rows += self.join.arrive(side, batch)
            seen[side] += len(keys)
            if seen[side] == lengths[side]:
                self.rows += self.join.end(side)
            if react:
                self.rows += self.join.take(self.operator.react(Slice(react)))
        for side in (0, 1):
            if lengths[side] == 0:
                self.rows += self.join.end(side)
        self.before_cleanup = list(self.rows)
        self.in_memory_at_end = self.operator.table.in_memory.copy()
        self.on_disk_at_end = self.operator.table.on_disk.copy()
        self.frozen_at_end = self.operator.table.frozen.copy()
        self.rows += self.join.finish()
        self.join.close()

    @property
    def pairs(self) -> Counter[tuple[int, int]]:
        """What came out, by row numbers."""
        return Counter((row["id"], row["id_right"]) for row in self.rows)

    def counted(self) -> dict[str, Any]:
        """The counters that must not depend on how rows come in batches: bytes have the overhead of real pages."""
        values: dict[str, Any] = self.join.counters.to_dict()
        return {name: value for name, value in values.items() if not name.startswith("bytes_")}


def _batches(arrivals: Arrivals, most: int) -> list[tuple[int, list[int]]]:
    """Neighbours of one side as batches."""
    batches: list[tuple[int, list[int]]] = []
    for side, key in arrivals:
        if batches and batches[-1][0] == side and len(batches[-1][1]) < most:
            batches[-1][1].append(key)
        else:
            batches.append((side, [key]))
    return batches


def random_keys(count: int, distinct: int, seed: int) -> list[int]:
    """Keys drawn evenly."""
    return np.random.default_rng(seed).integers(0, distinct, count).tolist()
