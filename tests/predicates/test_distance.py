"""near: Euclid's distance in one to 64 dimensions."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates import Capability, near
from predicates import naive
from predicates.samples import Table, expected, matrix, table, type_pairs


@settings(deadline=None, max_examples=200)
@given(st.data(), st.sampled_from([0, 0.5, 1, 2.0, Decimal("101"), 1e150]))
def test_against_the_oracle(data: st.DataObject, eps: Any) -> None:
    pairs = data.draw(st.lists(type_pairs(["numbers"]), min_size=1, max_size=4))
    left = data.draw(table({f"c{n}": pair[0] for n, pair in enumerate(pairs)}))
    right = data.draw(table({f"c{n}": pair[1] for n, pair in enumerate(pairs)}))
    bound = near(list(left.types), eps=eps).bind(left.schema, right.schema)

    def holds(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
        a, b = (tuple(None if v is None else float(v) for v in point) for point in (a, b))
        return naive.near(a, b, float(eps))

    assert matrix(bound, left.batch, right.batch) == expected(left, right, holds)


def test_64_dimensions_and_no_more() -> None:
    names = [f"d{n}" for n in range(64)]
    left = Table({n: [0.0, 1.0] for n in names}, {n: pa.float64() for n in names})
    assert matrix(near(names, eps=7.99).bind(left.schema, left.schema), left.batch, left.batch)[0] == [True, False]
    assert matrix(near(names, eps=8).bind(left.schema, left.schema), left.batch, left.batch)[0] == [True, True]
    with pytest.raises(InputError, match="at most 64 columns of each input, got 65"):
        near([*names, "more"], eps=1)


def test_capabilities_and_words() -> None:
    schema = pa.schema({"x": pa.int8(), "y": pa.float32()})
    bound = near(["x", "y"], eps=3).bind(schema, schema)
    assert bound.capabilities == Capability.SWEEPABLE
    assert bound.eps_word == 3.0
    assert bound.encode(0, pa.RecordBatch.from_pylist([], schema)).words.shape == (0, 2)


@pytest.mark.parametrize("eps", [-1, float("nan"), float("inf"), 1e200, "far", None])
def test_bad_eps(eps: Any) -> None:
    with pytest.raises(InputError, match="near: "):
        near("x", eps=eps)


def test_refuses_what_is_no_number() -> None:
    schema = pa.schema({"t": pa.timestamp("s")})
    with pytest.raises(UnsupportedError, match="use band for a distance in time"):
        near("t", eps=1).bind(schema, schema)


def test_text() -> None:
    assert str(near(["x", "y"], ["u", "v"], eps=0.5)) == "distance((left.x, left.y), (right.u, right.v)) <= 0.5"
