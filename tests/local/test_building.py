"""Rows of many columns are held back for a moment, packed, and given out together: when, and that none is lost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import earlyjoin as ej
from earlyjoin.algorithms.protocol import Matches
from earlyjoin.local import building
from earlyjoin.local.building import OutputBuilder

COLUMNS, ROWS = 200, 1500


def wide(rows: int, name: str, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"k": rng.permutation(rows), **{f"{name}{at}": rng.random(rows) for at in range(COLUMNS)}})


LEFT, RIGHT = wide(ROWS, "a", 1), wide(ROWS, "b", 2)


def ordered(table: pa.Table) -> pa.Table:
    return table.sort_by("k").combine_chunks()


def check(found: pa.Table) -> None:
    found = ordered(found)
    assert found.num_rows == ROWS
    for side, name in ((LEFT, "a"), (RIGHT, "b")):
        for at in (0, 77, COLUMNS - 1):
            assert found[f"{name}{at}"].equals(ordered(side)[f"{name}{at}"])


@pytest.mark.parametrize("algorithm", ["ehj", "pmj", "rpj"])
@pytest.mark.parametrize("how", ["inner", "full"])
def test_small_pieces_become_larger_batches(algorithm: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = {}
    for held_s in (60.0, -1.0):
        monkeypatch.setattr(building, "_HELD_S", held_s)
        batches[held_s] = list(ej.join(LEFT, RIGHT, on="k", how=how, algorithm=algorithm, memory="700KB"))
        check(pa.Table.from_batches(batches[held_s]))
    assert len(batches[60.0]) < len(batches[-1.0])


def test_what_is_held_back_is_not_unbuilt_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stays in hand after matches have been dealt with would come twice after a pause."""
    monkeypatch.setattr(building, "_HELD_S", 60.0)
    query = ej.join(LEFT, RIGHT, on="k", algorithm="ehj", memory="700KB")
    builder, given, held = query._execution._builder, 0, 0
    build = builder.build

    def checked(matches: Matches) -> Iterator[pa.RecordBatch]:
        nonlocal held
        yield from build(matches)
        held += builder.holds
        assert builder.unbuilt() == []

    monkeypatch.setattr(builder, "build", checked)
    given = sum(batch.num_rows for batch in query)
    assert given == ROWS
    assert held > 10


class Held:
    """Gives its rows, then waits to be let go."""

    def __init__(self, table: pa.Table) -> None:
        self.table, self.let_go = table, Event()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self.table.to_batches(max_chunksize=20)
        assert self.let_go.wait(60)


def test_nothing_is_held_back_while_input_is_waited_for() -> None:
    left = Held(LEFT)
    query = ej.join(
        pa.RecordBatchReader.from_batches(LEFT.schema, iter(left)), RIGHT, on="k", memory="64MB", algorithm="ehj"
    )
    rows, all_there = 0, Event()

    def take() -> None:
        nonlocal rows
        for batch in query:
            rows += batch.num_rows
            if rows == ROWS:
                all_there.set()

    thread = Thread(target=take)
    thread.start()
    try:
        assert all_there.wait(30)
    finally:
        left.let_go.set()
        thread.join()


@pytest.mark.parametrize("algorithm", ["ehj", "pmj"])
def test_a_pause_loses_no_rows(algorithm: str, tmp_path: Path) -> None:
    paths = [tmp_path / "left.parquet", tmp_path / "right.parquet"]
    for path, table in zip(paths, (LEFT, RIGHT), strict=True):
        pq.write_table(table, path)
    for taken in (1, 2, 7):
        query = ej.join(*paths, on="k", memory="2MB", algorithm=algorithm, engine="local")
        first = list(islice(query, taken))
        query.pause(tmp_path / f"saved-{taken}")
        rest = list(ej.resume(tmp_path / f"saved-{taken}"))
        check(pa.Table.from_batches([*first, *rest]))


def test_rows_held_back_go_out_before_an_input_fails() -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from LEFT.to_batches(max_chunksize=20)
        raise OSError("the network is gone")

    query = ej.join(
        pa.RecordBatchReader.from_batches(LEFT.schema, failing()), RIGHT, on="k", memory="64MB", algorithm="ehj"
    )
    batches = []
    with pytest.raises(ej.EarlyJoinError, match="the network is gone"):
        batches.extend(query)
    check(pa.Table.from_batches(batches))


def test_narrow_rows_go_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces, build = [], OutputBuilder.build

    def noted(self: OutputBuilder, matches: Matches) -> Iterator[pa.RecordBatch]:
        pieces.append(len(matches))
        return build(self, matches)

    monkeypatch.setattr(OutputBuilder, "build", noted)
    narrow: list[Any] = [table.select([0, 1]) for table in (LEFT, RIGHT)]
    batches = list(ej.join(*narrow, on="k", algorithm="pmj", memory="100KB"))
    assert [batch.num_rows for batch in batches] == pieces
