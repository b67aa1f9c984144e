"""A query as its user holds it."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import earlyjoin as ej
from earlyjoin.local.query import State
from earlyjoin.local.sources import generated
from earlyjoin.state.counters import Phase

LEFT = pa.table({"k": [1, 2, 3, None, 2], "a": ["one", "two", "three", "none", "zwei"]})
RIGHT = pa.table({"k": [2, 2, 4, None], "b": [0.5, 1.5, 4.0, 9.0]})


def table_of(source: ej.local.sources.Source) -> pa.Table:  # type: ignore[name-defined]
    from earlyjoin.local.sources import BatchSizes

    return pa.Table.from_batches(list(source.batches(BatchSizes())))


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


@pytest.fixture(scope="module")
def tables() -> tuple[pa.Table, pa.Table]:
    """Some thousand rows with repeated keys and nulls."""
    return tuple(  # type: ignore[return-value]
        table_of(generated(6000, 1500, seed=seed, skew=0.5, null_fraction=0.02, payload_bytes=40)) for seed in (1, 2)
    )


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize(("algorithm", "memory"), [("shj", "64MB"), ("nested", "64MB"), ("nested", "800rows")])
def test_same_as_duckdb(tables: tuple[pa.Table, pa.Table], how: str, algorithm: str, memory: str) -> None:
    left, right = tables
    if algorithm == "nested":
        left, right = left.slice(0, 1500), right.slice(0, 1500)
    with ej.join(left, right, on=[("k", "k")], how=how, algorithm=algorithm, memory=memory) as query:  # type: ignore[arg-type]
        ours = query.to_arrow()
        assert query.summary()["memory"]["peak_bytes"] > 0
    columns = "l.id AS id" if how in ("semi", "anti") else "l.id AS id, r.id AS id_right"
    connection = duckdb.connect()
    connection.register("l", left)
    connection.register("r", right)
    theirs = connection.sql(f"SELECT {columns} FROM l {how} JOIN r ON l.k = r.k")
    expected = theirs.to_arrow_table()
    assert rows(ours.select(expected.column_names)) == rows(expected)


def test_nothing_is_read_before_the_result_is_asked_for() -> None:
    taken: list[int] = []

    def batches() -> Iterator[pa.Table]:
        for number in range(3):
            taken.append(number)
            yield LEFT

    query = ej.join(batches(), RIGHT, on="k")
    assert taken == [0]  # the first item tells the columns
    query.explain()
    assert taken == [0]
    assert len(query.to_arrow()) == 3 * 4


def test_head_shows_rows_and_iterating_gives_them_again() -> None:
    query = ej.join(LEFT, RIGHT, on="k", batch_rows=1)
    head = query.head(2)
    assert len(head) == 2
    assert query.head(0).num_rows == 0
    assert query.head(3).slice(0, 2).equals(head)
    assert len(query.to_arrow()) == 4
    assert query.state is State.FINISHED


def test_a_query_that_has_ended_does_not_pretend(tmp_path: Path) -> None:
    query = ej.join(LEFT, RIGHT, on="k")
    assert len(query.to_arrow()) == 4
    target = tmp_path / "kept.parquet"
    assert ej.join(LEFT, RIGHT, on="k").write(target) == 4
    again = (query.to_arrow, lambda: query.head(5), lambda: list(query), lambda: query.write(target, overwrite=True))
    for call in again:
        with pytest.raises(ej.InputError, match="given out already"):
            call()
    assert len(ej.join(target, RIGHT, on="k").to_arrow()) == 8
    stopped = ej.join(LEFT, RIGHT, on="k", batch_rows=1)
    stopped.head(1)
    stopped.stop()
    with pytest.raises(ej.InputError, match="was stopped"):
        stopped.to_arrow()


def test_rows_that_were_only_shown_to_the_end_are_still_there() -> None:
    query = ej.join(LEFT, RIGHT, on="k")
    assert len(query.head(100)) == 4
    assert query.state is State.FINISHED
    assert len(query.to_arrow()) == 4
    nothing = ej.join(LEFT.slice(0, 0), RIGHT, on="k")
    assert len(nothing.head(5)) == len(nothing.to_arrow()) == 0


def test_progress_estimate_and_summary() -> None:
    query = ej.join(LEFT, RIGHT, on="k", memory="1MB")
    assert query.progress.rows_out == 0
    assert query.estimate is None
    query.to_arrow()
    progress = query.progress
    assert (progress.rows_out, progress.rows_in, progress.finished) == (4, (5, 4), True)
    assert query.estimate == {"rows": 4, "low": 4, "high": 4, "confidence": 1.0}
    summary = query.summary()
    assert summary["rows"] == 4
    assert 0 < summary["seconds"]["first"] <= summary["seconds"]["total"]
    assert summary["memory"]["peak_bytes"] <= summary["memory"]["budget_bytes"] == 10**6
    assert summary["phases"] == {"arriving": 4, "reactive": 0, "cleanup": 0}


def test_explain_says_what_and_why() -> None:
    text = ej.join(LEFT, RIGHT, on="k", memory="1MB").explain()
    assert "left.k = right.k" in text
    assert "shj (symmetric hash join)" in text
    assert "fit into 1.0 MB" in text
    residual = ej.join(LEFT, RIGHT, on=ej.equal("k") & ej.band("k", eps=3), memory="1MB").explain()
    assert "filtered by" in residual
    nested = ej.join(LEFT, RIGHT, on=ej.where(pc.field("a") != pc.field("b").cast("string"))).explain()
    assert "nested (block nested loop join)" in nested
    assert "compares every pair" in nested


def test_limited_stops_the_query() -> None:
    query = ej.join(LEFT, RIGHT, on="k", batch_rows=1)
    assert sum(batch.num_rows for batch in query.limited(3)) == 3
    assert query.state is State.STOPPED
    with pytest.raises(ej.InputError, match="was stopped"):
        list(query)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow", "jsonl"])
def test_write(tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"out.{suffix}"
    assert ej.join(LEFT, RIGHT, on="k").write(target) == 4
    assert len(ej.join(target, RIGHT, on="k").to_arrow()) == 8
    with pytest.raises(ej.InputError, match="exists"):
        ej.join(LEFT, RIGHT, on="k").write(target)
    assert ej.join(LEFT, LEFT, on="k").write(target, overwrite=True) == 6
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_an_error_leaves_no_output(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.Table]:
        yield LEFT
        raise OSError("the wire was cut")

    query = ej.join(broken(), RIGHT, on="k", spill_directory=tmp_path)
    with pytest.raises(ej.SourceError, match="the wire was cut"):
        query.write(tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []
    assert query.state is State.FAILED


def test_rows_that_came_before_a_failure_are_joined_first() -> None:
    def broken() -> Iterator[pa.Table]:
        yield LEFT
        time.sleep(0.05)
        raise OSError("the wire was cut")

    query = ej.join(broken(), RIGHT, on="k")
    assert query.head(4).num_rows == 4
    with pytest.raises(ej.SourceError):
        query.to_arrow()


def test_stop_from_another_thread_while_an_input_is_silent() -> None:
    silent = threading.Event()

    def waits() -> Iterator[pa.Table]:
        yield LEFT
        silent.wait(20)

    query = ej.join(waits(), RIGHT, on="k")
    threading.Timer(0.2, query.stop).start()
    start = time.monotonic()
    assert sum(batch.num_rows for batch in query) == 4
    assert time.monotonic() - start < 10
    assert query.state is State.STOPPED
    silent.set()


def test_back_pressure_keeps_an_endless_input_inside_the_budget() -> None:
    given_out = []

    def endless() -> Iterator[pa.Table]:
        number = 0
        while True:
            given_out.append(number)
            yield pa.table({"k": [number] * 500, "pad": ["x" * 100] * 500})
            number += 1

    query = ej.join(endless(), RIGHT, on="k", memory="1MB", algorithm="nested")
    batch = next(iter(query))
    assert batch.num_rows > 0
    time.sleep(0.2)
    assert query.progress.memory_fraction <= 1
    # 125 kB of input buffer, 50 kB a batch, and the batches that were joined to find the first row.
    assert len(given_out) < 30
    query.stop()


@given(st.integers(0, 12), st.sampled_from(["shj", "nested"]), st.sampled_from(["inner", "full", "anti"]))
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pause_and_resume(
    tables: tuple[pa.Table, pa.Table], tmp_path_factory: pytest.TempPathFactory, batches: int, algorithm: str, how: str
) -> None:
    left, right = (table.slice(0, 250) for table in tables)
    memory = "1MB" if algorithm == "shj" else "100rows"
    options = {"on": ej.equal("k") & ej.where(ej_filter()), "how": how, "algorithm": algorithm, "memory": memory}
    whole = ej.join(left, right, **options).to_arrow()  # type: ignore[arg-type]
    directory = tmp_path_factory.mktemp("paused") / "state"
    query = ej.join(left, right, batch_rows=64, **options)  # type: ignore[arg-type]
    taken = [batch for _, batch in zip(range(batches), query, strict=False)]
    if query.state in (State.FINISHED,):
        return
    query.pause(directory)
    assert query.state is State.PAUSED
    rest = ej.resume(directory, left=left, right=right)
    got = pa.Table.from_batches(taken + list(rest), schema=whole.schema)
    assert rows(got) == rows(whole)
    assert rest.summary()["rows"] == len(whole)


def ej_filter() -> object:
    return pc.field("id") != 3


def test_files_are_opened_again_in_another_process(tables: tuple[pa.Table, pa.Table], tmp_path: Path) -> None:
    paths = [tmp_path / "left.parquet", tmp_path / "right.parquet"]
    for table, path in zip(tables, paths, strict=True):
        pq.write_table(table, path, row_group_size=500)
    whole = ej.join(*paths, on="k").to_arrow()
    query = ej.join(*paths, on="k", batch_rows=700)
    taken = [batch for _, batch in zip(range(4), query, strict=False)]
    query.pause(tmp_path / "state")
    script = "import sys, earlyjoin as ej; print(ej.resume(sys.argv[1]).write(sys.argv[2]))"
    out = tmp_path / "rest.parquet"
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "state"), str(out)], check=True, timeout=120)
    got = pa.concat_tables([pa.Table.from_batches(taken), pq.read_table(out).cast(whole.schema)])
    assert rows(got) == rows(whole)


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
def test_types_of_an_input_survive_a_pause(tmp_path: Path, format_: str) -> None:
    lines = ["id,at", "1,2024-02-29 10:00:00Z"] if format_ == "csv" else ['{"id": 1, "at": "2024-02-29 10:00:00"}']
    path = tmp_path / f"seen.{format_}"
    path.write_text("\n".join(lines) + "\n")
    types = {"id": "int32", "at": pa.timestamp("ms", "UTC")} if format_ == "csv" else {"id": pa.int32()}
    query = ej.join(ej.source(path, types=types), pa.table({"id": [1]}), on="id")
    whole = query.schema
    query.pause(tmp_path / "state")
    resumed = ej.resume(tmp_path / "state", right=pa.table({"id": [1]}))
    assert resumed.schema == whole
    assert resumed.to_arrow().num_rows == 1


def test_what_cannot_be_paused_or_resumed_says_so(tmp_path: Path) -> None:
    with pytest.raises(ej.InputError, match="'left' can be read only once"):
        ej.join(iter([LEFT]), RIGHT, on="k").pause(tmp_path / "state")
    query = ej.join(LEFT, RIGHT, on="k", batch_rows=1)
    next(iter(query))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ej.SnapshotError, match="not empty"):
        query.pause(tmp_path / "full")
    assert query.head(1).num_rows == 1  # a refused pause changes nothing
    query.pause(tmp_path / "state")
    with pytest.raises(ej.SnapshotError, match="pass it again"):
        ej.resume(tmp_path / "state")
    with pytest.raises(ej.SnapshotError, match="other columns"):
        ej.resume(tmp_path / "state", left=RIGHT, right=RIGHT)


@pytest.mark.parametrize("nullable", [True, False])
def test_what_differs_may_be_nullability_alone(tmp_path: Path, nullable: bool) -> None:
    def table(nullable: bool) -> pa.Table:
        return pa.table({"k": range(3000)}, schema=pa.schema([pa.field("k", pa.int64(), nullable=nullable)]))

    query = ej.join(table(nullable), table(True), on="k")
    query.head(1)
    query.pause(tmp_path / "state")
    words = "is declared without nulls, and could hold them" if nullable else "may hold nulls, and was declared without"
    with pytest.raises(ej.SnapshotError, match=f"column 'k' {words}"):
        ej.resume(tmp_path / "state", left=table(not nullable), right=table(True))


def test_wide_rows_are_built_inside_the_budget() -> None:
    """Regression: a batch was built at its full length before anybody asked how wide its rows were."""
    wide = pa.table({"k": [0], "s": ["x" * 200_000]})
    many = pa.table({"k": [0] * 3000, "j": list(range(3000))})
    for condition in (ej.equal("k"), ej.equal("k") & ej.where(pc.binary_length(pc.field("s")) > 0)):
        query = ej.join(wide, many, on=condition, memory="16MB", algorithm="shj")
        before, found = pa.total_allocated_bytes(), 0
        for batch in query:
            found += batch.num_rows
            assert pa.total_allocated_bytes() - before < 20_000_000
            del batch
        assert found == 3000


def test_a_dropped_query_leaves_no_reader_behind() -> None:
    def readers() -> int:
        return sum(thread.name.startswith("earlyjoin-read") for thread in threading.enumerate())

    before = readers()
    for _ in range(3):
        table = table_of(generated(50_000, 10))
        query = ej.join(table, RIGHT, on="k", memory="1MB", algorithm="nested", batch_rows=100)
        next(iter(query))
        del query
    gc.collect()
    time.sleep(0.5)
    assert readers() <= before


def test_a_reader_that_exits_is_an_error() -> None:
    def leaves() -> Iterator[pa.Table]:
        yield LEFT
        raise SystemExit(3)

    with pytest.raises(ej.SourceError, match="SystemExit"):
        ej.join(leaves(), RIGHT, on="k").to_arrow()


def test_close_from_another_thread_ends_a_waiting_query() -> None:
    silent = threading.Event()

    def waits() -> Iterator[pa.Table]:
        yield LEFT
        silent.wait(20)

    query = ej.join(waits(), RIGHT, on="k")
    consumer = threading.Thread(target=query.to_arrow, daemon=True)
    consumer.start()
    time.sleep(0.3)
    with pytest.raises(ej.InputError, match="between two batches"):
        query.pause("nowhere")
    query.close()
    consumer.join(10)
    assert not consumer.is_alive()
    assert query.state is State.STOPPED
    silent.set()


def test_dictionaries_of_several_batches_fit_one_output_batch() -> None:
    """Regression: three batches of 100 values each do not fit indices of 8 bits together."""
    kind = pa.dictionary(pa.int8(), pa.string())
    batches = []
    for n in range(3):
        indices = pa.array(range(100), pa.int8())
        values = pa.DictionaryArray.from_arrays(indices, [f"{n}-{i}" for i in range(100)])
        batches.append(pa.record_batch([pa.array([0] * 100), values.cast(kind)], names=["k", "d"]))
    joined = ej.join(iter(batches), pa.table({"k": [0]}), on="k").to_arrow()
    assert len(set(joined["d"].to_pylist())) == 300


def test_a_ratio_that_was_switched_stays_and_survives_a_pause(tmp_path: Path) -> None:
    left, right = (table_of(generated(80_000, 50_000, seed=seed, payload_bytes=4)) for seed in (1, 2))
    query = ej.join(left, right, on="k", batch_rows=1000)
    next(iter(query))
    query.switch_reading(9, 1)
    for _, _ in zip(range(40), query, strict=False):
        pass
    rows = query.progress.rows_in
    assert rows[0] > 4 * rows[1]
    query.pause(tmp_path / "state")
    resumed = ej.resume(tmp_path / "state", left=left, right=right)
    assert resumed._execution.reading is not None
    assert resumed._execution.reading.weights == (9, 1)


def test_reading_ratio_can_be_switched() -> None:
    query = ej.join(LEFT, RIGHT, on="k", batch_rows=1, reading="1:0", memory="64rows")
    next(iter(query))
    assert query.progress.rows_in[0] == 5
    query.switch_reading(1, 1)
    assert len(query.to_arrow()) == 3
    with pytest.raises(ej.InputError, match="push"):
        ej.join(LEFT, RIGHT, on="k", driving="push").switch_reading(1, 1)


@pytest.mark.parametrize(("memory", "count"), [("64KiB", 1000), ("300KB", 3000), ("8rows", 60), ("100rows", 600)])
def test_peak_memory_stays_below_the_budget(tables: tuple[pa.Table, pa.Table], memory: str, count: int) -> None:
    left, right = (table.slice(0, count) for table in tables)
    query = ej.join(left, right, on=ej.band("k", eps=1), memory=memory, how="full")
    found = len(query.to_arrow())
    used = query.summary()["memory"]
    assert (
        used["peak_bytes"] <= used["budget_bytes"] if used["budget_bytes"] else used["peak_rows"] <= used["budget_rows"]
    )
    assert found == len(ej.join(left, right, on=ej.band("k", eps=1), how="full").to_arrow())
    assert query._execution.counters.results[Phase.CLEANUP] > 0


def test_bad_arguments() -> None:
    for arguments, message in [
        ({"on": "x"}, "x"),
        ({"on": []}, "at least one"),
        ({"on": "k", "how": "sideways"}, "unknown join type"),
        ({"on": "k", "how": "cross"}, "how='cross' .*has no condition"),
        ({"on": "k", "algorithm": "magic"}, "unknown algorithm 'magic'.*shj"),
        ({"on": "k", "memory": "lots"}, "is not a size"),
        ({"on": "k", "memory": "1kB"}, "too small"),
        ({"on": "k", "reading": "1"}, "A:B"),
        ({"on": "k", "driving": "shove"}, "unknown driving"),
        ({"on": "k", "suffixes": ("_x", "_x")}, "different"),
        ({"on": "k", "wait_ms": -1}, "wait_ms"),
        ({"on": "k", "batch_rows": 0}, "batch_rows"),
        ({"on": ej.band("k", eps=1), "algorithm": "shj"}, "shj .* cannot do this join.*nested"),
        ({"on": "k", "spill_directory": "/no/such/place"}, "does not exist"),
    ]:
        with pytest.raises(ej.InputError, match=message):
            ej.join(LEFT, RIGHT, **arguments)  # type: ignore[arg-type]
