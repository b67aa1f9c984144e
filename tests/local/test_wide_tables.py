"""Joins of tables with many columns: what no condition looks at travels packed, and nobody notices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import earlyjoin as ej
from earlyjoin.algorithms import registry

_ALGORITHMS = [name for name in registry.names() if name not in ("diner", "miner", "mjoin")]
_ROWS, _COLUMNS = 300, 50


def _wide(side: int) -> pa.Table:
    rng = np.random.default_rng(side)
    values = {
        f"c{side}_{n}": pa.array(rng.integers(0, 9, _ROWS), mask=rng.random(_ROWS) < 0.1) for n in range(_COLUMNS)
    }
    flags = {f"b{side}": pa.array(rng.random(_ROWS) < 0.5)}
    return pa.table({"k": rng.integers(0, 150, _ROWS), **values, **flags})


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, zip(*table.to_pydict().values(), strict=True)))


@pytest.mark.parametrize("memory", ["300KB", "8MB", "40rows"])
@pytest.mark.parametrize("algorithm", _ALGORITHMS)
def test_the_rows_are_those_of_another_join(algorithm: str, memory: str) -> None:
    if memory == "300KB" and not registry.get(algorithm).description.spills:
        memory = "8MB"
    if memory == "40rows" and not registry.get(algorithm).description.spills:
        memory = "8000rows"
    left, right = _wide(0), _wide(1)
    joined = ej.join(left, right, on="k", memory=memory, algorithm=algorithm, engine="local").to_arrow()
    expected = left.join(right, "k", join_type="inner").select(joined.column_names)
    assert _rows(joined) == _rows(expected)


@pytest.mark.parametrize(("how", "theirs"), [("full", "full outer"), ("left", "left outer"), ("anti", "left anti")])
def test_rows_without_a_partner(how: str, theirs: str) -> None:
    left, right = _wide(0), _wide(1)
    joined = ej.join(left, right, on="k", how=how, memory="300KB", engine="local").to_arrow()
    assert _rows(joined) == _rows(left.join(right, "k", join_type=theirs).select(joined.column_names))


def test_filters_and_aggregates_read_columns_of_packed_rows() -> None:
    left, right = _wide(0), _wide(1)
    condition = ej.equal("k") & ej.where(pc.field("c0_3") < pc.field("c1_7"))
    query = ej.join(left, right, on=condition, aggregates={"sum": ej.sum("c1_9")}, memory="1MB", engine="local")
    joined = query.to_arrow()
    everything = left.join(right, "k", join_type="inner")
    expected = everything.filter(pc.field("c0_3") < pc.field("c1_7")).select(joined.column_names)
    assert _rows(joined) == _rows(expected)
    assert query.estimates["sum"] is not None
    assert query.estimates["sum"]["value"] == pc.sum(expected["c1_9"]).as_py()


@pytest.mark.parametrize("algorithm", ["ehj", "pmj"])
def test_a_paused_join_finds_its_packed_rows_again(algorithm: str, tmp_path: Path) -> None:
    left, right = _wide(0), _wide(1)
    query = ej.join(left, right, on="k", memory="300KB", algorithm=algorithm, engine="local")
    first = query.head(50)
    query.pause(tmp_path / "state")
    joined = ej.resume(tmp_path / "state", left=left, right=right).to_arrow()
    assert first.num_rows == 50
    assert _rows(joined) == _rows(left.join(right, "k", join_type="inner").select(joined.column_names))


@pytest.mark.parametrize("algorithm", ["ehj", "dhj", "dphj", "xjoin", "rpj"])
def test_a_hundred_wide_rows_are_enough_room(algorithm: str) -> None:
    keys, values = np.arange(400), np.random.default_rng(0).random(400)
    table = pa.table({"k": keys, **{f"c{n}": values for n in range(199)}})
    query = ej.join(table, table, on="k", memory="200KB", algorithm=algorithm, engine="local")
    assert sorted(key for batch in query for key in batch.column("k").to_pylist()) == keys.tolist()


def test_columns_that_are_packed_in_another_form() -> None:
    """Found by the fuzz: run-end encoded numbers travel as numbers, of which the width is known."""
    ends = pa.RunEndEncodedArray.from_arrays(pa.array([4, 10], pa.int32()), pa.array([7, 8]))
    left = pa.table({"k": list(range(10)), **{f"c{n}": ends for n in range(_COLUMNS)}})
    joined = ej.join(left, pa.table({"k": [3, 4]}), on="k", memory="8MB", algorithm="ehj").to_arrow()
    assert joined.schema.field("c0").type == ends.type
    assert sorted(joined["c9"].to_pylist()) == [7, 8]
