"""The real data sets that EARLYJOIN_DATA names, and their joins counted in two ways."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import earlyjoin as ej
from earlyjoin.algorithms.sweep_areas import sweep_join
from earlyjoin.predicates.base import Predicate

DATA = Path(os.environ.get("EARLYJOIN_DATA", "no-data"))
"""Where the real data sets are."""


def count_sweep(condition: Predicate, left: pa.Table, right: pa.Table) -> int:
    """Encode, sort, sweep, and count the pairs."""
    bound = condition.bind(left.schema, right.schema)
    keys = [bound.encode(side, one_batch(table)) for side, table in enumerate((left, right))]
    return sum(len(pairs[0]) for pairs in sweep_join(bound, *keys))


def count_join(condition: Predicate, left: pa.Table, right: pa.Table, memory: str) -> int:
    """Run the progressive merge join in so much memory, and count the rows."""
    query = ej.join(left, right, on=condition, algorithm="pmj", memory=memory, suffixes=("", "_other"))
    return sum(batch.num_rows for batch in query)


def one_batch(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=table.schema)


def flights() -> tuple[pa.Table, pa.Table]:
    table = pq.read_table(DATA / "intervals_flights.parquet")
    return tuple(table.filter(pc.equal(table["origin"], code)).select(["start", "end"]) for code in ("EWR", "JFK"))


def rectangles() -> tuple[pa.Table, pa.Table]:
    names = ["xmin", "ymin", "xmax", "ymax"]
    return tuple(pq.read_table(DATA / f"spatial_{name}.parquet", columns=names) for name in ("roads", "linearwater"))


def trades() -> tuple[pa.Table, pa.Table]:
    table = pq.read_table(DATA / "stock_ibm_trades.parquet")
    return tuple(table.filter(pc.equal(table["side"], side)).select(["price"]) for side in ("B", "S"))


def letters() -> pa.Table:
    return pq.read_table(DATA / "vectors_letter16.parquet").drop_columns(["letter"])
