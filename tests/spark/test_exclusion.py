"""The rule between the early phase and the bulk: what both give out together is the join, whatever was joined early."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.algorithms.planning import make_plan
from earlyjoin.predicates import equal
from earlyjoin.spark.bulk.base import Sides
from earlyjoin.spark.bulk.equality import SparkJoin
from earlyjoin.spark.early.exclusion import fresh_pairs, fresh_semi

HOWS = ("inner", "left", "right", "full", "semi", "anti")
Row = tuple[int | None, ...]
Side = list[tuple[int | None, int]]
"""Key and tag of each row."""

sides = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.integers(0, 3)), max_size=7)


def oracle(left: Side, right: Side, how: str) -> Counter[Row]:
    """Row numbers of the join."""
    pairs = matching(left, right)
    matched = [{pair[side] for pair in pairs} for side in (0, 1)]
    alone = [[i for i in range(len(rows)) if i not in matched[side]] for side, rows in enumerate((left, right))]
    if how in ("semi", "anti"):
        return Counter((i,) for i in (matched[0] if how == "semi" else alone[0]))
    rows: list[Row] = list(pairs)
    rows += [(i, None) for i in alone[0] if how in ("left", "full")]
    rows += [(None, j) for j in alone[1] if how in ("right", "full")]
    return Counter(rows)


def matching(left: Side, right: Side) -> list[tuple[int, int]]:
    return [
        (i, j) for (i, (a, _)), (j, (b, _)) in product(enumerate(left), enumerate(right)) if a is not None and a == b
    ]


def early(left: Side, right: Side, how: str) -> Counter[Row]:
    """What the early phase gives out by the definition of the tags."""
    pairs = [(i, j) for i, j in matching(left, right) if left[i][1] & right[j][1]]
    if how == "semi":
        return Counter({(i,): 1 for i, _ in pairs})
    return Counter(() if how == "anti" else pairs)


def bulk(left: Side, right: Side, how: str) -> Counter[Row]:
    """What the bulk gives out by the rule."""
    if how == "semi":
        matched: dict[int, int] = {}
        for i, j in matching(left, right):
            matched[i] = matched.get(i, 0) | right[j][1]
        mine = _tags([left[i][1] for i in matched])
        kept = fresh_semi(mine, _tags(list(matched.values())))
        return Counter((i,) for i, keep in zip(matched, kept, strict=True) if keep)
    joined = list(oracle(left, right, how).elements())
    if how == "anti":
        return Counter(joined)
    tags = [_tags([0 if row[s] is None else rows[row[s]][1] for row in joined]) for s, rows in enumerate((left, right))]
    return Counter(row for row, keep in zip(joined, fresh_pairs(*tags), strict=True) if keep)


def _tags(values: list[int]) -> Any:
    return np.array(values, dtype=np.int8)


@pytest.mark.parametrize("how", HOWS)
@settings(max_examples=60, deadline=None)
@given(left=sides, right=sides)
def test_early_and_bulk_are_the_join(how: str, left: Side, right: Side) -> None:
    assert early(left, right, how) + bulk(left, right, how) == oracle(left, right, how)


@pytest.mark.spark
@pytest.mark.parametrize("how", HOWS)
def test_spark_follows_the_rule(spark: Any, how: str) -> None:
    rng = np.random.default_rng(HOWS.index(how))
    rows = [[(None if k == 0 else int(k), int(tag)) for k, tag in rng.integers(0, (12, 4), (n, 2))] for n in (60, 50)]
    frames, schemas = [], []
    for side, (prefix, some) in enumerate(zip("lr", rows, strict=True)):
        table = pa.table(
            {
                f"{prefix}0": pa.array([k for k, _ in some], pa.int64()),
                f"{prefix}1": pa.array(range(len(some)), pa.int64()),
                f"{prefix}_tag": pa.array([tag if how != "anti" else 0 for _, tag in some], pa.int8()),
            }
        )
        frames.append(spark.createDataFrame(table))
        schemas.append(pa.schema([("k", pa.int64()), (f"n{side}", pa.int64())]))
    plan = make_plan(equal("k"), *schemas, how=how)
    join = SparkJoin(plan, Sides(frames[0], frames[1], early_right=lambda: frames[1].where("r_tag != 0")))
    names = ["l1", "r1"] if plan.how.gives_pairs else ["l1"]
    found = Counter(tuple(row) for row in join.rows().select(*names).collect())
    assert found == bulk(rows[0], rows[1], how)
