"""Packing, shuffling and joining cells without Spark: predicates × join types × tags against the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.conditions import KINDS, Kind, Row
from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.spark.bulk.base import Sides
from earlyjoin.spark.bulk.cells import Space
from earlyjoin.spark.bulk.cells.cell_join import CellJoiner, cell_plan
from earlyjoin.spark.bulk.cells.packing import Copies, Packer
from earlyjoin.spark.bulk.cells.partitioned import Layout, PartitionedJoin
from earlyjoin.spark.inspecting.surveying import SideSurvey, Survey, Surveyor
from earlyjoin.spark.options import SparkOptions

PREDICATES = [
    kind
    for kind in KINDS
    if (not kind.name.startswith("equal") or kind.name == "equal_and_band") and kind.name != "where"
]


def table(kind: Kind, rows: list[Row]) -> pa.RecordBatch:
    schema = pa.schema([*((name, type_) for name, (type_, _) in kind.columns.items()), ("id", pa.int64())])
    return pa.RecordBatch.from_pylist([row | {"id": number} for number, row in enumerate(rows)], schema=schema)


def seen(plan: Plan, sides: list[pa.RecordBatch], rows: int) -> Survey:
    """A survey that takes the inputs for larger than they are."""
    surveys = []
    for side, batch in enumerate(sides):
        extents = Space.of(plan.condition, side).homes(batch).extents
        reach = tuple(int(extent) for extent in extents.max(axis=0, initial=0))
        surveys.append(SideSurvey(rows, 100.0, reach, batch.slice(0, 1 + batch.num_rows // 2)))
    return Survey((surveys[0], surveys[1]), 2)


def pieces(batch: pa.RecordBatch, cuts: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, cuts):
        yield batch.slice(start, cuts)


def run(plan: Plan, layout: Layout, sides: list[pa.RecordBatch], tags: list[list[int]], cuts: int) -> list[Row]:
    """What Spark does with a layout."""
    tree, shuffled = layout.grown.tree, {}
    for side, batch in enumerate(sides):
        hashes = [hash(tuple(row.items())) for row in batch.drop_columns(["id"]).to_pylist()]  # many rows are alike
        whole = pa.RecordBatch.from_arrays(
            [*batch.columns, pa.array(tags[side], pa.int8()), pa.array(hashes, pa.int64())],
            names=[*map(str, range(batch.num_columns)), "tag", "salt"],
        )
        packer = Packer(
            space=layout.space,
            tree=tree,
            side=side,
            schema=cell_plan(plan).schemas[side],
            salted=True,
            keep_unmatchable=layout.how.gives_unmatched(side),
        )
        for packed in packer(pieces(whole, cuts)):
            for row in packed.to_pylist():
                shuffled.setdefault(row["cell"], []).append(row)
    joiner = CellJoiner(
        plan=cell_plan(plan, layout.how, layout.driver),
        tagged=any(map(any, tags)),
        pairs=layout.pairs,
        memory_nbytes=2**17,
    )
    schema = pa.schema([("cell", pa.int32()), ("side", pa.int8()), ("rows", pa.binary())])
    inputs = [pa.RecordBatch.from_pylist(rows, schema=schema) for rows in shuffled.values()]
    return [row for batch in joiner(iter(inputs)) for row in batch.to_pylist()]


def expected(kind: Kind, how: JoinType, rows: list[list[Row]], tags: list[list[int]]) -> Counter[Any]:
    """The nested loop, and the rule of exclusion."""
    pairs = [(i, j) for i, a in enumerate(rows[0]) for j, b in enumerate(rows[1]) if kind.holds(a, b)]
    early = {(i, j) for i, j in pairs if tags[0][i] & tags[1][j]}
    matched = [{pair[side] for pair in pairs} for side in (0, 1)]
    if how is JoinType.SEMI:
        return Counter((i, None) for i in matched[0] - {i for i, _ in early})
    if how is JoinType.ANTI:
        return Counter((i, None) for i in range(len(rows[0])) if i not in matched[0])
    result: Counter[Any] = Counter(pair for pair in pairs if pair not in early)
    for side in (0, 1):
        if how.gives_unmatched(side):
            lonely = [number for number in range(len(rows[side])) if number not in matched[side]]
            result.update((number, None) if side == 0 else (None, number) for number in lonely)
    return result


@pytest.mark.parametrize("how", list(JoinType))
@pytest.mark.parametrize("kind", PREDICATES, ids=lambda kind: kind.name)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_same_rows_as_a_nested_loop(kind: Kind, how: JoinType, data: st.DataObject) -> None:
    row = st.fixed_dictionaries({name: values for name, (_, values) in kind.columns.items()} | {"id": st.just(0)})
    rows = [[r | {"id": number} for number, r in enumerate(data.draw(st.lists(row, max_size=25)))] for _ in range(2)]
    possible = [0] if how is JoinType.ANTI or data.draw(st.booleans()) else [0, 0, 1, 2, 3]
    tags = [data.draw(st.lists(st.sampled_from(possible), min_size=len(r), max_size=len(r))) for r in rows]
    sides = [table(kind, r) for r in rows]
    plan = make_plan(kind.condition, sides[0].schema, sides[1].schema, how=how)
    join = PartitionedJoin(plan, Sides(None, None), SparkOptions())
    layouts = join._lay_out(seen(plan, sides, data.draw(st.sampled_from([10, 10**4, 10**6]))))
    found: Counter[Any] = Counter()
    for layout in layouts:
        for joined in run(plan, layout, sides, tags, data.draw(st.integers(1, 9))):
            left, right = (joined.get(f"{p}{plan.schemas[s].get_field_index('id')}") for s, p in enumerate("lr"))
            found[left, right] += 1
    assert found == expected(kind, how, rows, tags)


def test_rows_that_are_all_alike_are_spread_the_same_way_in_any_order() -> None:
    hashes = np.random.default_rng(0).integers(0, 5, 1000).astype(np.uint64)
    everyone = np.arange(len(hashes))
    seen_orders = []
    for order in (everyone, everyone[::-1]):
        copies = Copies()
        salts = np.concatenate(
            [copies.salts(hashes[some])(np.arange(len(some)), 3) for some in np.array_split(order, 7)]
        )
        seen_orders.append(sorted(zip(hashes[order].tolist(), salts.tolist(), strict=True)))
    assert seen_orders[0] == seen_orders[1]
    assert len(set(seen_orders[0])) == len(hashes)


def test_a_survey_is_a_random_sample_and_knows_the_longest() -> None:
    schema = pa.schema([("s", pa.int64()), ("e", pa.int64())])
    import earlyjoin as ej

    plan = make_plan(ej.overlaps(("s", "e")), schema, schema)
    surveyor = Surveyor(space=Space.of(plan.condition, 0), side=0, schema=schema, seed=1)
    starts = np.arange(50_000)
    lengths = np.where(starts == 40_000, 999, starts % 7)
    whole = pa.RecordBatch.from_arrays([pa.array(starts), pa.array(starts + lengths)], schema=schema)
    (told,) = (row for batch in surveyor(pieces(whole, 1000)) for row in batch.to_pylist())
    assert told["rows"] == 50_000
    assert np.frombuffer(told["reach"], dtype=np.uint64).tolist() == [999]
    sample = pa.ipc.read_record_batch(pa.ipc.read_message(told["sample"]), schema).column(0).to_numpy()
    assert len(sample) == len(set(sample.tolist())) == 4096
    assert abs(sample.mean() - 25_000) < 5 * 14_434 / 64
