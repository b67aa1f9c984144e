"""What ``on=`` means for many inputs, the columns of the result, and what is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.algorithms.output import OutputSchema
from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates.multiway import multi_equal
from earlyjoin.predicates.written import saved

A = pa.table({"x": [1, 2], "y": ["p", "q"], "id": [10, 20]})
B = pa.table({"x": [2, 2, 1], "y": ["q", "q", "z"], "id": [1, 2, 3]})
C = pa.table({"z": [2, 1, 1], "w": ["q", "p", "p"], "id": [7, 8, 9]})
INPUTS = {"a": A, "b": B, "c": C}


def ids(query: ej.Query) -> list[tuple[int, ...]]:
    rows = query.to_arrow().to_pylist()
    return sorted(tuple(row[f"id_{name}"] for name in query.plan.names) for row in rows)


def test_equalities_and_pairs_in_any_order() -> None:
    expected = [(10, 3, 8), (10, 3, 9), (20, 1, 7), (20, 2, 7)]
    assert ids(ej.multi_join(INPUTS, on=["a.x = b.x", "b.x = c.z"])) == expected
    assert ids(ej.multi_join(INPUTS, on=["c.z=a.x", ("b.x", "c.z")])) == expected
    assert ids(ej.multi_join(INPUTS, on=["a.x = b.x", "b.x = c.z", "c.z = a.x"])) == expected


def test_several_attributes_are_one_composite_key() -> None:
    on = ["a.x = b.x", "b.x = c.z", "a.y = b.y", "c.w = b.y"]
    assert ids(ej.multi_join(INPUTS, on=on)) == [(20, 1, 7), (20, 2, 7)]


def test_one_column_for_all_inputs() -> None:
    query = ej.multi_join({"a": A, "b": B, "d": A.select(["x"])}, on="x")
    assert query.schema.names == ["x", "y_a", "id_a", "y_b", "id_b"]
    assert query.to_arrow().num_rows == 3
    assert ej.multi_join({"a": A, "b": B, "d": A}, on=["x", "y"]).schema.names == ["x", "y", "id_a", "id_b", "id_d"]


def test_two_inputs_use_any_algorithm() -> None:
    for algorithm in ("auto", "shj", "pmj", "nested", "smj"):
        query = ej.multi_join({"a": A, "b": B}, on="x", algorithm=algorithm)
        assert ids(query) == [(10, 3), (20, 1), (20, 2)]


def test_null_safe() -> None:
    tables = {name: pa.table({"k": pa.array([None, 1], pa.int64()), "id": [0, 1]}) for name in "abc"}
    assert ids(ej.multi_join(tables, on="k")) == [(1, 1, 1)]
    assert ids(ej.multi_join(tables, on="k", null_safe=True)) == [(0, 0, 0), (1, 1, 1)]


@pytest.mark.parametrize(
    ("types", "values"),
    [
        ([pa.int8(), pa.uint64(), pa.decimal128(10, 2)], [3, 3, Decimal("3.00")]),
        ([pa.float32(), pa.float64(), pa.int16()], [float("nan"), float("nan"), 0]),
        ([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ["é", "é", "é"]),
        ([pa.date32(), pa.timestamp("s"), pa.timestamp("ns")], [dt.date(2024, 5, 1), *[dt.datetime(2024, 5, 1)] * 2]),
        ([pa.bool_()] * 3, [True, True, True]),
        ([pa.binary(), pa.binary(2), pa.binary_view()], [b"ab", b"ab", b"ab"]),
    ],
)
def test_key_types(types: list[pa.DataType], values: list[Any]) -> None:
    tables = {
        name: pa.table({"k": pa.array([value, None], type_), "id": [1, 2]})
        for name, type_, value in zip("abc", types, values, strict=True)
    }
    expected = [] if pa.types.is_floating(types[0]) else [(1, 1, 1)]
    assert ids(ej.multi_join(tables, on="k")) == expected
    assert ids(ej.multi_join(tables, on="k", memory="64KiB", algorithm="pmj")) == expected


def test_output_names() -> None:
    schemas = [pa.schema([(name, pa.int8()) for name in names]) for names in (["k", "v"], ["k", "u"], ["v", "k"])]
    assert OutputSchema.of_many("abc", schemas).schema.names == ["k_a", "v_a", "k_b", "u", "v_c", "k_c"]
    assert OutputSchema.of_many("abc", schemas, shared=["k"]).schema.names == ["k", "v_a", "u", "v_c"]
    clash = [*schemas[:2], pa.schema([("k", pa.int8()), ("v_a", pa.int8()), ("v", pa.int8())])]
    with pytest.raises(InputError, match=r"two columns named 'v_a'; rename a column or an input"):
        OutputSchema.of_many("abc", clash, shared=["k"])


def test_saved_conditions_come_back() -> None:
    condition = multi_equal(["a", "b", "c"], ["x", "a.y = b.y", ("b.y", "c.w")], null_safe=True)
    assert saved.from_values(saved.to_values(condition)) == condition


def test_input_names_with_dots() -> None:
    condition = multi_equal(["a", "a.b"], ["a.c = a.b.c.d"])
    assert [tuple(one) for one in condition.classes()[0]] == [(0, "c"), (1, "c.d")]


@pytest.mark.parametrize(
    ("on", "error", "words"),
    [
        (["a.x = b.x", "b.y = c.w"], UnsupportedError, r"a.x = b.x leaves out 'c'.*same attribute.*chain joins of two"),
        (["a.x = b.x"], UnsupportedError, r"leaves out 'c'.*join\(join\(a, b"),
        (["a.x = b.x", "b.x = c.z", "c.id = a.x"], UnsupportedError, r"c.z and c.id.*one row of input 'c'; filter"),
        ("x", InputError, "column 'x' is not in input 'c': columns there: z, w, id"),
        (["a.q = b.x", "b.x = c.z"], InputError, "column 'q' is not in input 'a'"),
        (["a.x = b.x", "b.x = d.z"], InputError, r"'d.z' in 'b.x = d.z' does not name.*inputs a, b, c"),
        (["a.x = b.x = c.z"], InputError, "more than one '='"),
        (["a. = b.x"], InputError, "'a.' in 'a. = b.x'"),
        ([], InputError, "on: give a column that every input has"),
        ([3], InputError, "got 3"),
        (["a.x = b.x", "b.x = c.w"], UnsupportedError, r"'x' of input 'a' \(int64\) with column 'w' of input 'c'"),
    ],
)
def test_refused_conditions(on: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ej.multi_join(INPUTS, on=on)


def test_refused_before_anything_is_read() -> None:
    def never() -> Any:
        raise AssertionError("data was read")
        yield

    from earlyjoin.local.sources import open_source

    inputs = {name: open_source(never(), name=name, schema=A.schema) for name in "abc"}
    with pytest.raises(UnsupportedError, match="chain joins"):
        ej.multi_join(inputs, on=["a.x = b.x"])
    with pytest.raises(UnsupportedError, match=r"inner join only, not a left join; chain joins of two inputs"):
        ej.multi_join(inputs, on="x", how="left")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="at most 2 inputs, not 3; choose one of: auto, pmj"):
        ej.multi_join(inputs, on="x", algorithm="shj")


def test_refused_inputs() -> None:
    with pytest.raises(InputError, match=r'as in {"a": a, "b": b}; got a list'):
        ej.multi_join([A, B], on="x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="two inputs or more, got 1"):
        ej.multi_join({"a": A}, on="x")
    with pytest.raises(InputError, match="'' is not a name"):
        ej.multi_join({"a": A, "": B}, on="x")
    with pytest.raises(InputError, match="unknown join type 'sideways'"):
        ej.multi_join(INPUTS, on="x", how="sideways")
    with pytest.raises(InputError, match="reading ratio '1:1' is for 2 inputs, there are 3"):
        ej.multi_join(INPUTS, on=["a.x = b.x", "b.x = c.z"], reading="1:1")
    many = {f"t{number}": A for number in range(17)}
    with pytest.raises(UnsupportedError, match="at most 16 inputs, not 17"):
        ej.multi_join(many, on="x", algorithm="pmj")


def test_the_advice_works() -> None:
    """What the message says to do instead does it."""
    query = ej.join(ej.join(A, B, on="x"), C.select(["z", "w"]), on=[("y_right", "w")])
    assert query.to_arrow().num_rows == 2
