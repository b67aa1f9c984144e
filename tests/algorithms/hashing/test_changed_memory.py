"""Memory that grows and states that go on elsewhere: what was read half-way is neither lost nor read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import earlyjoin as ej
from algorithms.harness import Join
from earlyjoin.algorithms.hash_join.merging.settings import MergeSettings
from earlyjoin.algorithms.hash_join.settings import HashSettings
from earlyjoin.algorithms.hash_join.table.sizing import split_memory
from earlyjoin.predicates.encoding.carried import carried_batch
from earlyjoin.state.budget import Budget, MemoryLimit

_OVER: Any = object()
ALGORITHMS = ["dhj", "ehj", "dphj", "xjoin", "hmj"]


def _table(keys: list[int]) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "id": pa.array(range(len(keys)), pa.int64())})


def _grown(algorithm: str, keys: list[int], options: dict[str, object], at: int, *, small: str, large: str) -> int:
    """Rows of a right join whose memory grows after some batches."""
    given: dict[str, Any] = {"algorithm": algorithm, "options": options, "reading": "1:1", "batch_rows": 100}
    given["how"], rows = "right", 0
    with ej.join(_table(list(range(500))), _table(keys), "k", memory=small, engine="local", **given) as query:
        for number, batch in enumerate(query):
            rows += batch.num_rows
            if number == at:
                query.set_memory(large)
    return rows


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("options", [{"one_side": "right"}, {"build_side": "right"}])
def test_memory_that_grows_in_a_clean_up_of_several_rounds(algorithm: str, options: dict[str, object]) -> None:
    """Regression: places were told by groups of pages, which are other ones with other memory."""
    for at in (0, 9, 19):
        assert _grown(algorithm, list(range(3000)), options, at, small="300rows", large="5000rows") == 3000
    assert _grown(algorithm, list(range(20_000)), options, 3, small="300KiB", large="4MB") == 20_000


@pytest.mark.parametrize("settings", [HashSettings(), MergeSettings()])
@pytest.mark.parametrize(("first", "then"), [("300rows", "1000rows"), ("5000rows", "1000rows"), ("3MB", "9MB")])
def test_memory_that_has_changed_is_divided_as_if_it_had_been_so(first: str, then: str, settings: HashSettings) -> None:
    """Regression: a state of a full memory that had grown did not fit into a new one of that size."""
    changed, fresh = (Budget(MemoryLimit.parse(size)) for size in (first, then))
    parts, expected = split_memory(changed, settings), split_memory(fresh, settings)
    changed.resize(fresh.limit)
    assert [part.limit for part in parts] == [part.limit for part in expected]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_repeated_key_is_found_when_memory_grows(algorithm: str) -> None:
    for first, second in ((0, 2999), (300, 2700), (1400, 1600)):
        keys = list(range(3000))
        keys[second] = first
        with pytest.raises(ej.InputError, match="occurs more than once"):
            _grown(algorithm, keys, {"one_side": "right"}, 9, small="300rows", large="5000rows")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("rows", "reading"), [(0, "1:1"), (1, "1:1"), (50, "1:1000")])
def test_a_state_with_full_memory_finds_room_again(algorithm: str, rows: int, reading: str, tmp_path: Path) -> None:
    """Regression: page buffers that had found no room took that of rows when the state was restored."""
    left, right = _table(list(range(rows))), _table(list(range(2000)))
    for stop in (1, 3, 8, 20):
        query = ej.join(
            left, right, "k", how="right", algorithm=algorithm, options={"one_side": "right"}, memory="300rows",
            reading=reading, batch_rows=100, engine="local",
        )  # fmt: skip
        given = 0
        for number, batch in enumerate(query, 1):
            given += batch.num_rows
            if number == stop:
                break
        else:
            assert given == 2000
            continue
        place = tmp_path / str(stop)
        query.pause(place)
        assert given + sum(batch.num_rows for batch in ej.resume(place, left=left, right=right)) == 2000


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "rpj"])
@pytest.mark.parametrize(("memory", "width"), [("400KB", 1600), ("900KB", 3000)])
def test_a_state_fits_into_the_memory_that_it_filled(algorithm: str, memory: str, width: int, tmp_path: Path) -> None:
    """Regression: parts that were filled in another order took more room to grow, and the batch in hand found none."""
    rng = np.random.default_rng(width)
    rows = 400_000 // width
    keys = [pa.array(rng.permutation(rows)) for _ in range(2)]
    tables = [pa.table({"k": k, "pad": pa.array([bytes(width)] * rows, pa.binary(width))}) for k in keys]
    schema, found, number = tables[0].schema, 0, 0
    joins = [Join(algorithm, schema, schema, tmp_path, memory=memory)]
    arrivals = [(side, start) for start in range(0, rows, 17) for side in (0, 1)]
    for side, start in arrivals:
        batch = tables[side].slice(start, 17).to_batches()[0]
        steps = joins[-1].operator.arrive(side, carried_batch(batch))
        while (step := next(steps, _OVER)) is not _OVER:
            found += len(step or ())
            number += 1
            if number % 7 == 0:
                joins.append(Join(algorithm, schema, schema, tmp_path, memory=memory))
                joins[-1].context.ticks.next_tick = joins[-2].context.ticks.next_tick
                joins[-1].operator.restore(joins[-2].operator.snapshot())
                joins.pop(0).close()
                steps = joins[-1].operator.resume()
                joins[-1].check()
    for call in (lambda: joins[-1].end(0), lambda: joins[-1].end(1), lambda: joins[-1].finish()):
        found += len(call())
    assert found == rows
    joins[-1].close()
