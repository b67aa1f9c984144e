"""What every query shares, and what is said where an engine cannot do it (on Spark: tests/spark/test_query_life.py)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import earlyjoin as ej

TABLE = pa.table({"k": [1, 2, 3]})


def test_a_query_is_a_query_whoever_made_it(tmp_path: Path) -> None:
    paused = ej.join(TABLE, TABLE, on="k")
    assert isinstance(paused, ej.Query)
    assert isinstance(ej.multi_join({"a": TABLE, "b": TABLE}, on="k"), ej.Query)
    paused.pause(tmp_path / "paused")
    assert isinstance(ej.resume(tmp_path / "paused", left=TABLE, right=TABLE), ej.Query)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda query: query.to_df(), r"local engine has no to_df\(\): use to_arrow\(\)"),
        (lambda query: query.estimate_now(), r"local engine has no estimate_now\(\): estimate follows"),
        (
            lambda query: query.write("never.parquet", mode="append", partition_by="k"),
            r"no write\(\.\.\., mode=, partition_by=\): such options are those of Spark's writers",
        ),
    ],
    ids=["to_df", "estimate_now", "write"],
)
def test_what_the_local_engine_cannot_do_is_said(ask: Callable[[ej.Query], object], said: str) -> None:
    query = ej.join(TABLE, TABLE, on="k")
    with pytest.raises(ej.InputError, match=said):
        ask(query)
    assert len(query.to_arrow()) == 3, "and nothing was lost"


def test_what_can_be_looked_at_are_properties() -> None:
    for name in ("estimate", "estimates", "estimate_reason", "progress", "memory", "schema", "algorithm"):
        assert isinstance(getattr(ej.Query, name), property), name


def test_algorithms_is_the_package_and_nothing_else() -> None:
    program = """
import earlyjoin as ej
import earlyjoin.algorithms.registry as registry
import earlyjoin.algorithms
assert registry.names() == ej.algorithm_names()
assert ej.algorithms is earlyjoin.algorithms is __import__("sys").modules["earlyjoin.algorithms"]
assert "algorithm_names" in dir(ej) and "algorithms" not in ej.__all__
"""
    subprocess.run([sys.executable, "-c", program], check=True)
