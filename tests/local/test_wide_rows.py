"""Rows that are wide for their memory: a join that has begun must not fail for want of room in its clean-up."""

from __future__ import annotations

import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.algorithms import registry

_HASH = ("xjoin", "hmj", "rpj", "dhj", "dphj", "ehj")


@pytest.mark.parametrize("algorithm", _HASH)
def test_pages_can_be_read_beside_a_full_table(algorithm: str) -> None:
    assert registry.get(algorithm).description.spills
    table = pa.table({"k": range(4000), "s": ["x" * 500] * 4000})
    joined = ej.join(table, table, on="k", memory="500KB", algorithm=algorithm, engine="local").to_arrow()
    assert sorted(joined["k"].to_pylist()) == list(range(4000))
