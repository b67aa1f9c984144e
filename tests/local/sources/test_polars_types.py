"""Polars columns that Arrow cannot hold are refused by name, not carried as something else."""

from __future__ import annotations

import pytest

import earlyjoin as ej
from earlyjoin.errors import InputError

polars = pytest.importorskip("polars")
RIGHT = polars.DataFrame({"k": [1, 2]})


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("type_", "advice"),
    [
        (polars.Object(), "is Object, which Arrow cannot hold; cast it to a type of values, or leave it out"),
        (polars.Int128(), r"is Int128, which Arrow cannot hold; cast it to Decimal\(38, 0\), to Int64 or to String"),
        (polars.List(polars.Int128), r"is List\(Int128\), which Arrow cannot hold; cast it to Decimal"),
        (polars.Struct({"x": polars.Int128}), ".*, which Arrow cannot hold; cast it to Decimal"),
    ],
    ids=str,
)
def test_refused_by_name(type_: object, advice: str, lazy: bool) -> None:
    left = polars.DataFrame({"k": [1, 2], "odd": polars.Series([None, None], dtype=type_)})
    with pytest.raises(InputError, match=f"column 'odd' {advice}"):
        ej.join(left.lazy() if lazy else left, RIGHT, on="k")


def test_other_nested_types_pass() -> None:
    left = polars.DataFrame(
        {"k": [1, 2], "s": [{"x": [1]}, {"x": [2]}], "d": polars.Series([1, 2], dtype=polars.Decimal(38, 0))}
    )
    assert ej.join(left, RIGHT, on="k").to_arrow().num_rows == 2


def test_a_column_that_arrow_cannot_hold_may_be_left_out() -> None:
    frame = polars.DataFrame({"k": [1, 2], "o": polars.Series([object(), object()], dtype=polars.Object)})
    assert ej.join(ej.source(frame, columns=["k"]), RIGHT, on="k").schema.names == ["k"]
    with pytest.raises(InputError, match="column 'o' is Object"):
        ej.source(frame, columns=["k", "o"])
