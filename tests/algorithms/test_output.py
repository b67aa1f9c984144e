"""The joined row: names, types, nullability, and rows from row numbers."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import earlyjoin as ej
from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.output import OutputSchema
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.errors import InputError
from earlyjoin.state.rows.store import BatchRows

LEFT = pa.schema(
    [pa.field("k", pa.int64(), nullable=False), pa.field("x", pa.string(), nullable=False), ("l", pa.int32())]
)
RIGHT = pa.schema(
    [pa.field("x", pa.int8(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("r", pa.int32())]
)
PAIRS = [JoinType.INNER, JoinType.LEFT, JoinType.RIGHT, JoinType.FULL]


def rows_of(**columns: pa.Array) -> BatchRows:
    return BatchRows(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))


def numbers(*rows: int) -> np.ndarray[Any, Any]:
    return np.asarray(rows, dtype=np.int64)


def test_names_that_both_sides_have_get_suffixes() -> None:
    assert OutputSchema.of(LEFT, RIGHT, JoinType.INNER).schema.names == ["k", "x", "l", "x_right", "k_right", "r"]
    suffixed = OutputSchema.of(LEFT, RIGHT, JoinType.INNER, suffixes=("_l", "_r"))
    assert suffixed.schema.names == ["k_l", "x_l", "l", "x_r", "k_r", "r"]


def test_shared_keys_appear_once_where_the_left_has_them() -> None:
    assert OutputSchema.of(LEFT, RIGHT, JoinType.INNER, shared=["k"]).schema.names == ["k", "x", "l", "x_right", "r"]
    both = OutputSchema.of(LEFT, RIGHT, JoinType.FULL, shared=["k"], suffixes=("_1", "_2"))
    assert both.schema.names == ["k", "x_1", "l", "x_2", "r"]


@pytest.mark.parametrize("how", [JoinType.SEMI, JoinType.ANTI])
def test_semi_and_anti_give_the_left_columns_as_they_are(how: JoinType) -> None:
    assert OutputSchema.of(LEFT, RIGHT, how, shared=["k"]).schema == LEFT


@pytest.mark.parametrize(
    ("left", "right", "suffixes", "name"),
    [
        (["a", "a_right"], ["a"], ("", "_right"), "a_right"),
        (["a"], ["a"], ("", ""), "a"),
        (["a"], ["a"], ("_x", "_x"), "a_x"),
        (["a", "a"], ["b"], ("", "_right"), "a"),
        (["a", "b"], ["a", "b_right", "b"], ("", "_right"), "b_right"),
    ],
)
def test_two_columns_of_one_name_are_refused(
    left: list[str], right: list[str], suffixes: tuple[str, str], name: str
) -> None:
    schemas = [pa.schema([(column, pa.int64()) for column in names]) for names in (left, right)]
    with pytest.raises(
        InputError, match=f"two columns named '{name}'; choose other suffixes than .* or rename a column"
    ):
        OutputSchema.of(*schemas, JoinType.INNER, suffixes=suffixes)


def test_semi_joins_are_not_refused_for_names_that_they_do_not_give() -> None:
    """Regression: the clash is in a row that nobody sees, unless a filter does."""
    left = pa.schema([("k", pa.int64()), ("id", pa.int64()), ("id_right", pa.int64())])
    right = pa.schema([("k", pa.int64()), ("id", pa.int64())])
    assert make_plan(ej.equal("k"), left, right, how="semi").output.schema == left
    for how, condition in (("inner", ej.equal("k")), ("semi", ej.equal("k") & ej.where(pc.field("id") > 1))):
        with pytest.raises(InputError, match="two columns named 'id_right'"):
            make_plan(condition, left, right, how=how)


@pytest.mark.parametrize(
    ("how", "left", "right"),
    [
        (JoinType.INNER, False, False),
        (JoinType.LEFT, False, True),
        (JoinType.RIGHT, True, False),
        (JoinType.FULL, True, True),
    ],
)
def test_columns_of_a_side_that_may_be_missing_are_nullable(how: JoinType, left: bool, right: bool) -> None:
    schema = OutputSchema.of(LEFT, RIGHT, how, shared=["k"]).schema
    nullable = {field.name: field.nullable for field in schema}
    assert nullable == {"k": False, "x": left, "l": True, "x_right": right, "r": True}


@pytest.mark.parametrize(
    ("how", "nullable"),
    [(JoinType.INNER, False), (JoinType.LEFT, False), (JoinType.RIGHT, True), (JoinType.FULL, True)],
)
def test_a_shared_key_is_nullable_where_null_keys_of_the_right_come_out(how: JoinType, nullable: bool) -> None:
    """Regression: a right join gives rows with a null key although the left key is never null."""
    left, right = pa.schema([pa.field("k", pa.int64(), nullable=False)]), pa.schema([("k", pa.int64())])
    assert OutputSchema.of(left, right, how, shared=["k"]).schema.field("k").nullable is nullable


def build(
    output: OutputSchema, left: BatchRows | None, right: BatchRows | None, i: Any, j: Any
) -> list[dict[str, Any]]:
    built = output.build((left, right), (i, j))
    built.validate(full=True)
    assert built.schema == output.schema
    return list(built.to_pylist())


@pytest.mark.parametrize("how", PAIRS)
def test_rows_are_built_from_numbers(how: JoinType) -> None:
    output = OutputSchema.of(LEFT, RIGHT, how, shared=["k"])
    left = rows_of(k=pa.array([1, 2]), x=pa.array(["a", "b"]), l=pa.array([10, None], pa.int32()))
    right = rows_of(x=pa.array([5, 6], pa.int8()), k=pa.array([2, 3]), r=pa.array([None, 60], pa.int32()))
    pair = {"k": 2, "x": "b", "l": None, "x_right": 5, "r": None}
    assert build(output, left, right, numbers(1, 1), numbers(0, 0)) == [pair, pair]
    if how in (JoinType.LEFT, JoinType.FULL):
        assert build(output, left, None, numbers(0), None) == [{"k": 1, "x": "a", "l": 10, "x_right": None, "r": None}]
    if how in (JoinType.RIGHT, JoinType.FULL):
        assert build(output, None, right, None, numbers(1)) == [{"k": 3, "x": None, "l": None, "x_right": 6, "r": 60}]


def test_no_columns_at_all() -> None:
    output = OutputSchema.of(pa.schema([]), pa.schema([]), JoinType.INNER)
    batch = output.build((None, None), (numbers(0, 1, 2), None))
    assert (batch.num_rows, batch.num_columns) == (3, 0)
    one = OutputSchema.of(LEFT, RIGHT, JoinType.INNER).restricted_to(())
    assert one.build((None, None), (numbers(4), numbers(7))).num_rows == 1


def test_restricted_to_some_names() -> None:
    output = OutputSchema.of(LEFT, RIGHT, JoinType.INNER).restricted_to({"x_right", "l"})
    assert output.schema.names == ["l", "x_right"]
    left = rows_of(k=pa.array([1]), x=pa.array(["a"]), l=pa.array([10], pa.int32()))
    right = rows_of(x=pa.array([5], pa.int8()), k=pa.array([1]), r=pa.array([60], pa.int32()))
    assert build(output, left, right, numbers(0), numbers(0)) == [{"l": 10, "x_right": 5}]


MIXED: list[tuple[pa.DataType, pa.DataType, Any, Any]] = [
    (pa.int32(), pa.int64(), 7, 2**40),
    (pa.int64(), pa.uint64(), -1, 2**64 - 1),
    (pa.uint64(), pa.int8(), 2**64 - 1, -128),
    (pa.uint32(), pa.int32(), 2**32 - 1, -1),
    (pa.int64(), pa.float64(), 7, 0.5),
    (pa.float32(), pa.int32(), 0.5, 2**31 - 1),
    (pa.float16(), pa.float64(), np.float16(0.5), 1e300),
    (pa.decimal128(5, 2), pa.decimal128(20, 10), Decimal("1.25"), Decimal("0.0000000001")),
    (pa.decimal128(5, 2), pa.int64(), Decimal("1.25"), 2**63 - 1),
    (pa.uint64(), pa.decimal128(38, 10), 2**64 - 1, Decimal("0.0000000001")),
    (pa.int32(), pa.decimal32(9, 3), -(2**31), Decimal("1.125")),
    (pa.string(), pa.large_string(), "a", "b"),
    (pa.string_view(), pa.string(), "a", "b" * 20),
    (pa.string(), pa.string_view(), "a", "b" * 20),
    (pa.binary(2), pa.binary(3), b"ab", b"abc"),
    (pa.binary_view(), pa.large_binary(), b"ab", b"c"),
    (pa.dictionary(pa.int8(), pa.string()), pa.string(), "a", "b"),
    (pa.string(), pa.dictionary(pa.int8(), pa.string()), "a", "b"),
    (pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_string()), "a", "b"),
    (pa.date32(), pa.date64(), dt.date(2024, 1, 2), dt.date(1, 1, 1)),
    (pa.timestamp("s"), pa.timestamp("us"), dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 2, 3, 4, 5, 6)),
    (pa.time32("s"), pa.time64("us"), dt.time(1, 2), dt.time(1, 2, 3, 4)),
    (pa.duration("s"), pa.duration("us"), dt.timedelta(1), dt.timedelta(0, 0, 5)),
    (pa.null(), pa.int64(), None, 5),
]


@pytest.mark.parametrize(("left", "right", "one", "other"), MIXED, ids=[f"{a}-{b}" for a, b, _, _ in MIXED])
def test_shared_keys_of_different_types(left: pa.DataType, right: pa.DataType, one: Any, other: Any) -> None:
    schemas = pa.schema([("k", left)]), pa.schema([("k", right)])
    rows = rows_of(k=pa.array([one], left)), rows_of(k=pa.array([other], right))
    for how in PAIRS:
        output = make_plan(ej.equal("k"), *schemas, how=how).output
        if how is not JoinType.RIGHT:
            assert build(output, rows[0], None, numbers(0), None) == [{"k": one}]
        if how in (JoinType.RIGHT, JoinType.FULL):
            assert build(output, None, rows[1], None, numbers(0)) == [{"k": other}]


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.LEFT, JoinType.RIGHT])
def test_keys_that_need_no_common_type_are_not_converted(how: JoinType) -> None:
    """Regression: an inner join failed on keys beyond the common type: 2^53 + 1 in float64, the year 9999 in ns."""
    for left, right, one, other in [
        (pa.int64(), pa.float64(), 2**53 + 1, 2.0**53 + 2),
        (pa.uint64(), pa.int64(), 2**64 - 1, -1),
        (pa.timestamp("s"), pa.timestamp("ns"), dt.datetime(9999, 12, 31), dt.datetime(2024, 1, 1)),
    ]:
        output = make_plan(ej.equal("k"), pa.schema([("k", left)]), pa.schema([("k", right)]), how=how).output
        rows = rows_of(k=pa.array([one], left)), rows_of(k=pa.array([other], right))
        side = 1 if how is JoinType.RIGHT else 0
        assert output.schema.field("k").type == (left, right)[side]
        assert output.build(rows, (numbers(0), numbers(0))).column(0).equals(rows[side].batch.column(0))


def test_a_full_join_keeps_the_time_of_day_of_a_timestamp_matched_with_dates() -> None:
    """Regression: the common type was the date, and timestamps were cut."""
    moment = dt.datetime(2024, 1, 2, 3, 4)
    for left, right in (
        (pa.date32(), pa.timestamp("us")),
        (pa.timestamp("us"), pa.date32()),
        (pa.date64(), pa.timestamp("s")),
    ):
        output = make_plan(ej.equal("k"), pa.schema([("k", left)]), pa.schema([("k", right)]), how="full").output
        assert pa.types.is_timestamp(output.schema.field("k").type)
        rows = rows_of(k=pa.array([moment], pa.timestamp("s")))
        source = (rows, None) if pa.types.is_timestamp(left) else (None, rows)
        index = (numbers(0), None) if pa.types.is_timestamp(left) else (None, numbers(0))
        assert build(output, *source, *index) == [{"k": moment}]


def test_a_key_beyond_the_common_type_of_a_full_join_is_a_clear_error() -> None:
    output = make_plan(
        ej.equal("k"), pa.schema([("k", pa.int64())]), pa.schema([("k", pa.float64())]), how="full"
    ).output
    rows = rows_of(k=pa.array([2**53 + 1]))
    with pytest.raises(InputError, match=r"key column 'k' \(int64\) does not fit double.*equal\('k', 'k'\)"):
        output.build((rows, None), (numbers(0), None))


def test_many_words_against_a_small_dictionary() -> None:
    """Regression: 200 plain strings do not fit a dictionary with 8-bit indices."""
    left, right = pa.dictionary(pa.int8(), pa.string()), pa.string()
    output = make_plan(ej.equal("k"), pa.schema([("k", left)]), pa.schema([("k", right)]), how="full").output
    words = [f"word {number}" for number in range(200)]
    built = build(output, None, rows_of(k=pa.array(words)), None, np.arange(200))
    assert [row["k"] for row in built] == words


def test_unknown_join_type() -> None:
    known = r"unknown join type 'sideways'; choose one of: inner, left \(left_outer\), right"
    with pytest.raises(InputError, match=known):
        make_plan(ej.equal("k"), LEFT, RIGHT, how="sideways")
    with pytest.raises(InputError, match=r"how='cross' .* has no condition"):
        make_plan(ej.equal("k"), LEFT, RIGHT, how="cross")


@pytest.mark.parametrize(
    ("spellings", "kind"),
    [
        (("inner", "INNER", "Inner"), JoinType.INNER),
        (("left", "leftouter", "left_outer", "LEFT OUTER"), JoinType.LEFT),
        (("right", "rightouter", "right_outer"), JoinType.RIGHT),
        (("outer", "full", "fullouter", "full_outer", "FULL_OUTER"), JoinType.FULL),
        (("semi", "leftsemi", "left_semi"), JoinType.SEMI),
        (("anti", "leftanti", "left_anti", "Left_Anti"), JoinType.ANTI),
    ],
)
def test_spellings_of_join_types(spellings: tuple[str, ...], kind: JoinType) -> None:
    for spelling in spellings:
        assert make_plan(ej.equal("k"), LEFT, RIGHT, how=spelling).how is kind


def test_names_that_differ_in_case_only() -> None:
    left, right = pa.schema([("k", pa.int64()), ("id", pa.int64())]), pa.schema([("K", pa.int64()), ("ID", pa.int64())])
    exact = make_plan(ej.equal("k", "K"), left, right)
    assert exact.output.schema.names == ["k", "id", "K", "ID"]
    folded = make_plan(ej.equal("k", "K"), left, right, ignore_case=True)
    assert folded.output.schema.names == ["k", "id", "K_right", "ID_right"]
    with pytest.raises(InputError, match=r"'ID_RIGHT', 'ID_right'"):
        make_plan(ej.equal("k", "K"), left.append(pa.field("ID_RIGHT", pa.int8())), right, ignore_case=True)
