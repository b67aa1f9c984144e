"""What the keys of random blocks say: rows dealt out to files at random, and frequent keys that were not met."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from earlyjoin.algorithms.planning import make_plan
from earlyjoin.predicates import band, equal
from earlyjoin.spark.early.key_evidence import Evidence, KeyEvidence, equal_places

BLOCK = np.repeat(np.arange(4), 500)


def found(left: Any, right: Any, files: tuple[int, int] = (30, 30), *, right_block: Any = BLOCK) -> Evidence:
    tables = [table if isinstance(table, pa.Table) else pa.table({"k": table}) for table in (left, right)]
    places = [(place, place) for place in range(tables[0].num_columns)]
    return KeyEvidence(files, places).of((tables[0], tables[1]), (BLOCK, right_block))


def test_rows_in_random_order_are_told_from_sorted_ones() -> None:
    rng = np.random.default_rng(1)
    sorted_, shuffled = np.arange(2000), rng.permutation(2000)
    left, right = found(sorted_, shuffled)
    assert not left.mixed
    assert right.mixed
    assert found(sorted_, shuffled, (1, 30))[0].mixed  # blocks of one file are random parts of it
    assert (left.rows, left.files, left.repeats, left.unmet) == (2000, 30, 0, 0)


def test_half_of_the_rows_in_order_are_enough_to_see_it() -> None:
    rng = np.random.default_rng(1)
    half = np.where(rng.random(2000) < 0.5, np.arange(2000), rng.integers(0, 2000, 2000))
    assert not found(half, half)[0].mixed


def test_false_alarms_are_rare() -> None:
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        alarms += not found(rng.integers(0, 50, 2000), rng.integers(0, 9, 2000))[0].mixed
    assert alarms <= 2


def test_few_rows_show_nothing() -> None:
    left, _ = KeyEvidence((30, 30), [(0, 0)]).of(
        (pa.table({"k": [3, 1, 2]}), pa.table({"k": pa.array([], pa.int64())})),
        (np.array([0, 1, 1]), np.zeros(0, np.int64)),
    )
    assert not left.mixed


@pytest.mark.parametrize(
    "kind",
    ["int32", "float", "string", "large_string", "binary", "bool", "date32", "decimal128(20, 2)", "timestamp[us]"],
)
def test_keys_of_all_types(kind: str) -> None:
    types: dict[str, pa.DataType] = {
        "decimal128(20, 2)": pa.decimal128(20, 2),
        "timestamp[us]": pa.timestamp("us"),
        "date32": pa.date32(),
    }
    type_ = types.get(kind) or pa.type_for_alias(kind)
    numbers = pa.array(np.arange(2000) // 1000 if kind == "bool" else 10_000 + np.arange(2000), pa.int32())
    if "string" in kind or kind == "binary":
        values = numbers.cast(pa.string()).cast(type_)
    elif kind == "timestamp[us]":
        values = numbers.cast(pa.int64()).cast(type_)
    else:
        values = numbers.cast(type_)
    mixed = values.take(pa.array(np.random.default_rng(2).permutation(2000)))
    left, right = found(values, mixed)
    assert (left.mixed, right.mixed) == (False, True)
    assert (left.unmet, right.unmet) == (0, 0)


def test_keys_without_an_order_are_not_taken_to_be_mixed() -> None:
    structs = pa.array([{"a": number} for number in range(2000)])
    left, _ = found(structs, structs)
    assert not left.mixed
    assert left.unmet == 0


def test_frequent_keys_that_were_not_met() -> None:
    rng = np.random.default_rng(3)
    right = np.where(rng.random(2000) < 0.25, 5_000, rng.integers(0, 2000, 2000))
    right = np.where(rng.random(2000) < 0.05, 7, right)
    left, lines = found(np.arange(2000), right)
    assert left.unmet == 0
    assert lines.unmet == lines.most_unmet == np.count_nonzero(right == 5_000)


def test_null_keys_match_nothing_and_are_not_frequent() -> None:
    right = pa.array([None] * 1000 + list(range(1000)), pa.int64())
    assert found(np.arange(2000), right)[1].unmet == 0


def test_composite_keys_are_met_as_a_whole() -> None:
    left = pa.table({"a": np.arange(2000) % 10, "b": np.arange(2000)})
    right = pa.table({"a": np.zeros(2000, np.int64), "b": np.where(np.arange(2000) % 2, 11, 2500)})
    _, found_right = found(left, right)
    assert found_right.unmet == 2000  # 11 is there, under another a
    right = right.set_column(0, "a", pa.array(np.ones(2000, np.int64)))
    assert found(left, right)[1].unmet == 1000


def test_repeats_are_scaled_to_the_rows_drawn() -> None:
    """Blocks are sampled: of blocks of 2,000 rows a quarter is looked at."""
    keys = np.random.default_rng(4).integers(0, 4000, 8000)
    evidence = found(np.arange(2000), keys, right_block=np.repeat(np.arange(4), 2000))[1]
    assert evidence.repeats == pytest.approx(2.0, rel=0.2)


def test_places_of_columns_that_have_to_be_equal() -> None:
    left = pa.schema([("x", pa.int64()), ("t", pa.int64()), ("y", pa.string())])
    right = pa.schema([("b", pa.string()), ("a", pa.int64()), ("t", pa.int64())])
    plan = make_plan(equal(["x", "y"], ["a", "b"]) & band("t", eps=3), left, right)
    positions = [[1, 0, 2], [1, 0, 2]]  # by name: t, x, y and a, b, t
    assert equal_places(plan, positions) == [(1, 0), (2, 1)]
