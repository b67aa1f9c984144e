"""A first look at both inputs: how many rows they have, how far they reach, and a random sample of their keys.

One Spark job that reads the columns of the condition alone. Every task keeps the rows with the smallest of random
numbers; the smallest of all tasks' together are a sample of the whole, drawn without replacement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.protocol import Plan
from earlyjoin.spark.bulk.base import Sides, column_names
from earlyjoin.spark.bulk.cells import Space
from earlyjoin.spark.bulk.cells.packing import with_schema
from earlyjoin.spark.bulk.cells.space import Reach
from earlyjoin.spark.session import functions, session_of
from earlyjoin.state.rows.sizes import likely_row_nbytes
from earlyjoin.state.rows.store import one_batch

SAMPLE_ROWS = 4096
_CORES = 2
"""In place of a side's number: Spark cuts a range of numbers into as many parts as it has cores, and we count them."""
_MOST_CORES = 1024
_SURVEYED = "side tinyint, rows bigint, reach binary, ranks binary, sample binary"
_SURVEYED_SCHEMA = pa.schema(
    [("side", pa.int8()), ("rows", pa.int64()), ("reach", pa.binary()), ("ranks", pa.binary()), ("sample", pa.binary())]
)


@dataclass(frozen=True, slots=True)
class SideSurvey:
    """What is known of a side."""

    rows: int
    row_nbytes: float
    reach: Reach
    """The largest extent of its rows on every axis."""
    sample: pa.RecordBatch
    """Random rows with the columns of the condition."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What is known of a join before it starts."""

    sides: tuple[SideSurvey, SideSurvey]
    cores: int
    """Tasks that Spark runs at once."""


def survey(plan: Plan, sides: Sides, seed: int = 0) -> Survey:
    """Look at both inputs; runs one Spark job."""
    f = functions()
    session = session_of(sides.left)
    looks = [_look(plan, side, frame, seed) for side, frame in enumerate((sides.left, sides.right))]
    nothing = f.lit(None).cast("binary")
    part = f.spark_partition_id().cast("bigint")
    cores = session.range(_MOST_CORES).select(f.lit(_CORES).cast("tinyint"), part, nothing, nothing, nothing)
    found = looks[0].union(looks[1]).union(cores).toArrow()
    counted = found.column("rows").to_numpy()[found.column("side").to_numpy() == _CORES]
    return Survey(
        (_merged(plan, 0, found), _merged(plan, 1, found)),
        max(1, len(np.unique(counted))),
    )


def _look(plan: Plan, side: int, frame: Any, seed: int) -> Any:
    space = Space.of(plan.condition, side)
    names = dict(zip(plan.schemas[side].names, column_names(plan, side), strict=True))
    schema = _key_schema(plan, space, side)
    return frame.select(*(names[name] for name in schema.names)).mapInArrow(
        Surveyor(space=space, side=side, schema=schema, seed=seed), _SURVEYED
    )


def _key_schema(plan: Plan, space: Space, side: int) -> pa.Schema:
    return pa.schema([plan.schemas[side].field(name) for name in space.columns[side]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyor:
    """What Spark calls with the keys of a part of a side: one row that describes them."""

    space: Space
    """Seen from this side."""
    side: int
    schema: pa.Schema
    seed: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = 0
        reach = np.zeros(len(self.space.places), dtype=np.uint64)
        random = np.random.default_rng([self.seed, self.side, _task_number()])
        kept: list[pa.RecordBatch] = []
        ranks = np.empty(0)
        for raw in batches:
            batch = with_schema(raw, self.schema)
            rows += batch.num_rows
            if any(axis.has_extent for _, axis in self.space.places) and batch.num_rows:
                homes = self.space.homes(batch)
                extents = homes.extents if homes.valid is None else homes.extents[homes.valid]
                reach = np.maximum(reach, extents.max(axis=0, initial=0))
            ranks, kept = _drawn(ranks, kept, random.random(batch.num_rows), batch)
        if not rows:
            return
        sample = one_batch(pa.Table.from_batches(kept, schema=self.schema)).serialize().to_pybytes()
        values = [[self.side], [rows], [reach.tobytes()], [ranks.tobytes()], [sample]]
        columns = [pa.array(value, field.type) for value, field in zip(values, _SURVEYED_SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=_SURVEYED_SCHEMA)


def _drawn(
    ranks: np.ndarray[Any, Any], kept: list[pa.RecordBatch], more: np.ndarray[Any, Any], batch: pa.RecordBatch
) -> tuple[np.ndarray[Any, Any], list[pa.RecordBatch]]:
    """The rows of the smallest ranks among those kept and a new batch."""
    full = len(ranks) >= SAMPLE_ROWS
    chosen = np.flatnonzero(more < ranks.max()) if full else np.arange(len(more))
    if not len(chosen):
        return ranks, kept
    ranks = np.concatenate([ranks, more[chosen]])
    kept = [*kept, batch if len(chosen) == batch.num_rows else batch.take(pa.array(chosen))]
    if len(ranks) <= SAMPLE_ROWS:
        return ranks, kept
    best = np.sort(np.argpartition(ranks, SAMPLE_ROWS)[:SAMPLE_ROWS])
    return ranks[best], [one_batch(pa.Table.from_batches(kept)).take(pa.array(best))]


def _merged(plan: Plan, side: int, found: pa.Table) -> SideSurvey:
    space = Space.of(plan.condition, side)
    schema = _key_schema(plan, space, side)
    mine = [row for row in found.to_pylist() if row["side"] == side]
    reach = np.zeros(len(space.places), dtype=np.uint64)
    ranks, samples = np.empty(0), []
    for row in mine:
        reach = np.maximum(reach, np.frombuffer(row["reach"], dtype=np.uint64))
        ranks = np.concatenate([ranks, np.frombuffer(row["ranks"], dtype=np.float64)])
        samples.append(pa.ipc.read_record_batch(pa.ipc.read_message(pa.py_buffer(row["sample"])), schema))
    sample = one_batch(pa.Table.from_batches(samples, schema=schema))
    if len(ranks) > SAMPLE_ROWS:
        sample = sample.take(pa.array(np.argpartition(ranks, SAMPLE_ROWS)[:SAMPLE_ROWS]))
    return SideSurvey(
        sum(row["rows"] for row in mine), likely_row_nbytes(plan.schemas[side]), tuple(map(int, reach)), sample
    )


def _task_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0
