"""Every row with every row: bounded, inside the budget, and never by accident."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import earlyjoin as ej

LEFT = pa.table({"k": [1, 2, None, 4, 2], "a": ["x", None, "z", "", "x"]})
RIGHT = pa.table({"k": [2, None, 7], "b": [0.5, 1.5, None]})


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


@pytest.mark.parametrize("memory", [None, "8rows", "64KiB"])
@pytest.mark.parametrize("how", ["cross", "CROSS", "cross join"])
def test_same_as_duckdb(how: str, memory: str | None) -> None:
    query = ej.join(LEFT, RIGHT, how=how, memory=memory, batch_rows=4)
    batches = list(query)
    assert max(batch.num_rows for batch in batches) <= 4
    with duckdb.connect() as connection:
        connection.register("l", LEFT)
        connection.register("r", RIGHT)
        expected = connection.sql("SELECT l.*, r.k AS k_right, r.b FROM l CROSS JOIN r").to_arrow_table()
    found = pa.Table.from_batches(batches)
    assert found.column_names == ["k", "a", "k_right", "b"]
    assert rows(found) == rows(expected)


def test_empty_inputs() -> None:
    for left, right in ((LEFT.slice(0, 0), RIGHT), (LEFT, RIGHT.slice(0, 0)), (LEFT.slice(0, 0), RIGHT.slice(0, 0))):
        assert len(ej.join(left, right, how="cross").to_arrow()) == 0


def test_inside_the_budget_and_in_bounded_steps() -> None:
    many = pa.table({"n": range(3000), "pad": ["x" * 50] * 3000})
    query = ej.join(many, many, how="cross", memory="200KB")
    assert len(query.head(10)) == 10
    assert query.progress.rows_out < 100_000
    found = sum(batch.num_rows for batch in query.limited(400_000))
    memory = query.summary()["memory"]
    assert found == 400_000
    assert memory["peak_bytes"] <= memory["budget_bytes"]


def test_all_pairs_of_inputs_that_spill() -> None:
    many = pa.table({"n": range(700), "pad": ["x" * 200] * 700})
    query = ej.join(many, many, how="cross", memory="100KB")
    pairs = np.concatenate([batch["n"].to_numpy() * 700 + batch["n_right"].to_numpy() for batch in query])
    assert np.array_equal(np.sort(pairs), np.arange(700 * 700))
    assert query.summary()["spill"]["bytes_written"] > 0


def test_it_is_paused_and_resumed(tmp_path: Path) -> None:
    query = ej.join(LEFT, RIGHT, how="cross", batch_rows=2)
    taken = [next(iter(query))]
    query.pause(tmp_path / "state")
    rest = ej.resume(tmp_path / "state", left=LEFT, right=RIGHT)
    assert len(pa.Table.from_batches([*taken, *rest])) == 15


def test_a_condition_is_needed_or_refused() -> None:
    with pytest.raises(ej.InputError, match=r"how='cross' joins every row .* but there is one: left.k = right.k"):
        ej.join(LEFT, RIGHT, on="k", how="cross")
    with pytest.raises(ej.InputError, match=r"how='cross' joins every row .* but there is one: a = 'x'"):
        ej.join(LEFT, RIGHT, where="a = 'x'", how="cross")
    with pytest.raises(ej.InputError, match=r"say what to join on: .*how='cross'"):
        ej.join(LEFT, RIGHT)
    with pytest.raises(ej.InputError, match="how='cross' joins every row"):
        ej.multi_join({"l": LEFT, "r": RIGHT}, on="k", how="cross")
    assert "cross join, every pair of rows" in ej.join(LEFT, RIGHT, how="cross").explain()
