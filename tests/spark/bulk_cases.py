"""Small tables for every non-equi predicate, a bulk join of them on Spark, and what a nested loop gives."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import earlyjoin as ej
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.spark.bulk.base import Sides, column_names, tag_name
from earlyjoin.spark.bulk.cells.partitioned import PartitionedJoin
from earlyjoin.spark.options import SparkOptions

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    condition: Condition
    holds: Callable[[Row, Row], bool]


def known(*values: Any) -> bool:
    return all(value is not None and not (isinstance(value, float) and math.isnan(value)) for value in values)


def overlap(a: Row, b: Row, start: str, end: str) -> bool:
    values = a[start], a[end], b[start], b[end]
    return known(*values) and a[start] <= a[end] and b[start] <= b[end] and a[start] <= b[end] and b[start] <= a[end]


def order(a: Any, b: Any) -> int:
    """Spark's order of floats: NaN is the largest."""
    nan = math.isnan(a), math.isnan(b)
    return int(nan[0]) - int(nan[1]) if any(nan) else int(a > b) - int(a < b)


CASES = {
    "band": Case(ej.band("x", eps=0.5), lambda a, b: known(a["x"], b["x"]) and abs(a["x"] - b["x"]) <= 0.5),
    "band_int": Case(ej.band("k", eps=1), lambda a, b: known(a["k"], b["k"]) and abs(a["k"] - b["k"]) <= 1),
    "equal_band": Case(
        ej.equal("g", "g") & ej.band("x", eps=1),
        lambda a, b: known(a["g"], b["g"], a["x"], b["x"]) and a["g"] == b["g"] and abs(a["x"] - b["x"]) <= 1,
    ),
    "less": Case(
        ej.less("x"), lambda a, b: a["x"] is not None and b["x"] is not None and order(a["x"], b["x"]) < 0
    ),
    "greater_equal": Case(ej.greater_equal("k"), lambda a, b: known(a["k"], b["k"]) and a["k"] >= b["k"]),
    "not_equal": Case(ej.not_equal("k"), lambda a, b: known(a["k"], b["k"]) and a["k"] != b["k"]),
    "less_string": Case(ej.less("g"), lambda a, b: known(a["g"], b["g"]) and a["g"].encode() < b["g"].encode()),
    "overlaps": Case(ej.overlaps(("x", "y")), lambda a, b: overlap(a, b, "x", "y")),
    "intersects": Case(
        ej.intersects(("x", "k", "y", "m")), lambda a, b: overlap(a, b, "x", "y") and overlap(a, b, "k", "m")
    ),
    "near": Case(
        ej.near(["x", "y"], eps=1.0),
        lambda a, b: known(a["x"], b["x"], a["y"], b["y"])
        and (a["x"] - b["x"]) ** 2 + (a["y"] - b["y"]) ** 2 <= 1.0,
    ),
}  # fmt: skip


def table(seed: int, rows: int) -> pa.Table:
    """Random rows with nulls, NaN, a hot value and rows that are all alike."""
    draw = random.Random(seed)
    some: list[Row] = []
    for number in range(rows):
        x = draw.choice([None, math.nan, 3.0, 3.0, 3.0, draw.uniform(0, 20), draw.uniform(0, 20)])
        y = draw.choice([None, 4.5, draw.uniform(0, 30)]) if x is None else x + draw.choice([-1.0, 0.0, 0.5, 2.0, 9.0])
        k = draw.choice([None, 7, 7, draw.randrange(30)])
        m = None if k is None else k + draw.choice([-1, 0, 1, 4])
        some.append({"id": number, "x": x, "y": y, "k": k, "m": m, "g": draw.choice([None, "", "a", "b", "bb", "é"])})
    schema = {
        "id": pa.int64(),
        "x": pa.float64(),
        "y": pa.float64(),
        "k": pa.int32(),
        "m": pa.int32(),
        "g": pa.string(),
    }
    return pa.Table.from_pylist(some, schema=pa.schema(list(schema.items())))


def bulk(left: Any, right: Any, on: Condition, how: str, tags: tuple[Any, Any] | None = None) -> PartitionedJoin:
    """The bulk join of two DataFrames; ``tags`` are Columns."""
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import to_arrow_schema

    # In a zone that is not the session's: batches have that one.
    schemas = [to_arrow_schema(frame.schema, timezone="Asia/Tokyo") for frame in (left, right)]
    plan = make_plan(on, schemas[0], schemas[1], how=how, suffixes=("_l", "_r"))
    frames = []
    for side, frame in enumerate((left, right)):
        renamed = [
            f.col(f"`{old}`").alias(new) for old, new in zip(frame.columns, column_names(plan, side), strict=True)
        ]
        tag = [] if tags is None else [tags[side].cast("tinyint").alias(tag_name(side))]
        frames.append(frame.select(*renamed, *tag))
    early = None if tags is None else lambda: frames[1].where(f"{tag_name(1)} != 0")
    return PartitionedJoin(plan, Sides(frames[0], frames[1], early), SparkOptions(how=how))


def expected(case: Case, how: str, left: list[Row], right: list[Row]) -> Counter[Any]:
    """Pairs of ids."""
    pairs = [(a["id"], b["id"]) for a in left for b in right if case.holds(a, b)]
    matched = [{pair[side] for pair in pairs} for side in (0, 1)]
    lonely = [[row["id"] for row in rows if row["id"] not in matched[side]] for side, rows in enumerate((left, right))]
    if how == "semi":
        return Counter((number, None) for number in matched[0])
    if how == "anti":
        return Counter((number, None) for number in lonely[0])
    found: Counter[Any] = Counter(pairs)
    if how in ("left", "full"):
        found.update((number, None) for number in lonely[0])
    if how in ("right", "full"):
        found.update((None, number) for number in lonely[1])
    return found
