"""Many inputs as a query: driving, progress, explain, pause and resume, and a larger join against DuckDB."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import earlyjoin as ej
from earlyjoin.local.sources import Bursty, Reliable, SimulatedSource, open_source
from earlyjoin.state.clock import VirtualClock


def table(rows: int, keys: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    k = np.where(rng.random(rows) < 0.002, 7, rng.integers(0, keys, rows))
    column = pa.array(k, mask=rng.random(rows) < 0.05)
    return pa.table({"k": column, "id": np.arange(rows), "note": [f"note {n}" for n in range(rows)]})


TABLES = {name: table(3000, 2000, seed) for seed, name in enumerate("abc")}


def ids(batches: object, names: str = "abc") -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for batch in batches:  # type: ignore[attr-defined]
        found.update(zip(*(batch.column(f"id_{name}").to_pylist() for name in names), strict=True))
    return found


def by_duckdb(tables: dict[str, pa.Table]) -> Counter[tuple[int, ...]]:
    with duckdb.connect() as connection:
        for name, one in tables.items():
            connection.register(name, one)
        names = list(tables)
        columns = ", ".join(f"{name}.id AS id_{name}" for name in names)
        joins = " ".join(f"JOIN {name} USING (k)" for name in names[1:])
        rows = connection.sql(f"SELECT {columns} FROM {names[0]} {joins}").fetchall()
    return Counter(tuple(row) for row in rows)


EXPECTED = by_duckdb(TABLES)


@pytest.mark.parametrize("memory", ["64MB", "512KiB", "2000rows"])
@pytest.mark.parametrize("driving", ["pull", "push"])
def test_same_as_duckdb(memory: str, driving: str) -> None:
    query = ej.multi_join(TABLES, on="k", memory=memory, driving=driving, batch_rows=500)  # type: ignore[arg-type]
    assert ids(query) == EXPECTED
    summary = query.summary()
    assert (summary["rows"], summary["algorithm"]) == (sum(EXPECTED.values()), "pmj")
    assert (summary["spill"]["tuples_written"] > 0) == (memory != "64MB")
    assert summary["memory"]["peak_bytes"] <= (summary["memory"]["budget_bytes"] or 2**62)


def test_four_inputs_same_as_duckdb() -> None:
    tables = {name: table(1500, 1000, seed) for seed, name in enumerate("abcd", start=5)}
    query = ej.multi_join(tables, on="k", memory="512KiB", batch_rows=200)
    assert ids(query, "abcd") == by_duckdb(tables)


def test_head_progress_and_explain() -> None:
    query = ej.multi_join(TABLES, on="k", batch_rows=500)
    text = query.explain()
    for words in (
        "inner join on a.k = b.k = c.k",
        "pmj (progressive merge join of many inputs)",
        "reading auto: 1:1:1 (rows of a : b : c)",
        "none: sizes are estimated for joins of two inputs",
    ):
        assert words in text
    assert query.head(5).num_rows == 5
    progress = query.progress
    assert len(progress.rows_in) == len(progress.rows_expected) == 3
    assert 0 < sum(progress.rows_in) < 9000
    assert query.estimate is None
    assert "two inputs" in (query.estimate_reason or "")
    assert ids(query) == EXPECTED
    assert query.progress.rows_in == (3000, 3000, 3000)


def test_reading_of_many_inputs() -> None:
    query = ej.multi_join(TABLES, on="k", reading="4:1:1", batch_rows=100)
    query.head(1)
    rows = query.progress.rows_in
    assert rows[0] > 2 * rows[1]
    query.switch_reading(1, 1, 1)
    with pytest.raises(ej.InputError, match="needs 3 numbers, one for each input, got 2"):
        query.switch_reading(1, 1)
    assert ids(query) == EXPECTED


def test_the_smallest_input_is_favoured_later() -> None:
    tables = TABLES | {"a": TABLES["a"].slice(0, 500)}
    text = ej.multi_join(tables, on="k").explain()
    assert "auto: 1:1:1, then 8:1:1" in text


def test_silence_is_used(tmp_path: Path) -> None:
    """Simulated networks on a virtual clock: runs are merged while all three are silent, the same way each time."""
    results, tables = [], {name: one.slice(0, 600) for name, one in TABLES.items()}
    for _ in range(2):
        bursty = Bursty(gap_s=0.001, burst=3, pause_s=0.5)
        sources = {
            name: SimulatedSource(open_source(one, name=name), bursty, rows_per_packet=50, seed=seed)
            for seed, (name, one) in enumerate(tables.items())
        }
        query = ej.multi_join(sources, on="k", memory="300rows", clock=VirtualClock(), spill_directory=tmp_path)
        found = [batch.column("id_a").to_pylist() for batch in query]
        results.append(found)
        assert query.summary()["phases"]["reactive"] > 0
        assert sum(map(len, found)) == sum(by_duckdb(tables).values())
    assert results[0] == results[1]
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_pause_and_resume(tmp_path: Path, batches: int) -> None:
    query = ej.multi_join(TABLES, on="k", memory="512KiB", batch_rows=200)
    taken = [batch for _, batch in zip(range(batches), query, strict=False)]
    query.pause(tmp_path / "paused")
    with pytest.raises(ej.SnapshotError, match="the b input was not a file"):
        ej.resume(tmp_path / "paused", inputs={"a": TABLES["a"]})
    with pytest.raises(ej.InputError, match="no input 'left'; its inputs are a, b, c"):
        ej.resume(tmp_path / "paused", left=TABLES["a"])
    resumed = ej.resume(tmp_path / "paused", inputs=TABLES)
    assert ids([*taken, *resumed]) == EXPECTED


def test_paused_files_open_by_themselves(tmp_path: Path) -> None:
    paths = {}
    for name, one in TABLES.items():
        paths[name] = str(tmp_path / f"{name}.parquet")
        pq.write_table(one, paths[name])
    query = ej.multi_join(paths, on=["a.k = b.k", "c.k = b.k"], memory="512KiB", batch_rows=200)
    first = next(iter(query))
    query.pause(tmp_path / "paused")
    resumed = ej.resume(tmp_path / "paused")
    assert resumed.plan.names == ("a", "b", "c")
    assert ids([first, *resumed]) == EXPECTED


def test_a_dead_source_stops_the_join(tmp_path: Path) -> None:
    def dying() -> object:
        yield TABLES["c"].to_batches()[0].slice(0, 100)
        raise OSError("line cut")

    query = ej.multi_join(TABLES | {"c": dying()}, on="k", spill_directory=tmp_path, memory="512KiB")
    with pytest.raises(ej.SourceError, match="c: broke off with OSError: line cut"):
        query.to_arrow()
    assert not any(tmp_path.iterdir())


def test_reliable_networks() -> None:
    sources = {
        name: SimulatedSource(open_source(one, name=name), Reliable(gap_s=0.0001), rows_per_packet=500, seed=1)
        for name, one in TABLES.items()
    }
    query = ej.multi_join(sources, on="k")
    assert "push" in query.explain()
    assert ids(query) == EXPECTED
