"""Memory that changes while a join runs: results stay exact, and the limits, old and new, are kept."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import earlyjoin as ej
from algorithms.harness import Join, batch
from conformance.conditions import KINDS
from conformance.scenario import Run, scenarios, verify
from earlyjoin.algorithms.merge_join.settings import SortOptions
from earlyjoin.algorithms.resizing import Resizing
from earlyjoin.errors import InputError
from earlyjoin.state.budget import MemoryLimit

SCHEMA = batch([]).schema
SIZES = {"rows": [4, 8, 16, 40, 200], "bytes": [2**16, 2**17, 2**18, 2**20]}


class Resized(Run):
    """A run whose memory is changed after some steps."""

    def check(self) -> None:
        """Never more than the limit in force, which is the larger of two while the smaller one is waited for."""
        budget = self.context.budget
        used, limit = (
            (budget.used_rows, budget.limit.rows)
            if budget.limit.rows is not None
            else (budget.used_bytes, budget.limit.bytes)
        )
        assert limit is not None
        assert used <= limit
        if budget.limit.bytes is not None:
            assert self.operator.held_bytes() <= used

    def with_changes(self, changes: dict[int, MemoryLimit]) -> int:
        """Runs to the end; the number of changes that were possible."""
        resizing, done = Resizing(self.context.budget, self.operator), 0
        for count, _ in enumerate(self.yields()):
            if count in changes:
                with suppress(InputError):  # pages on disk may be too large for it
                    resizing.ask(changes[count])
                    done += 1
            resizing.enforce()
            self.check()
        self.close()
        return done


@pytest.mark.parametrize("name", ["equal", "band", "not_equal"])
@given(data=st.data())
@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=15)
def test_changes_at_any_step(name: str, data: st.DataObject) -> None:
    kind = next(kind for kind in KINDS if kind.name == name)
    scenario = replace(data.draw(scenarios(kind, spills=True)), operator_share=1.0)
    sizes = st.sampled_from(
        [MemoryLimit(rows=n) for n in SIZES["rows"] if n >= 8]
        if scenario.memory.rows is not None
        else [MemoryLimit(bytes=n) for n in SIZES["bytes"]]
    )
    changes = data.draw(st.dictionaries(st.integers(0, 120), sizes, max_size=5), label="changes")
    options = data.draw(
        st.builds(SortOptions, fan_in=st.sampled_from([2, 10]), replacement_selection=st.booleans()), label="options"
    )
    with tempfile.TemporaryDirectory() as directory:
        run = Resized(data.draw(st.sampled_from(["pmj", "pmj", "smj"])), kind, scenario, Path(directory), options)
        run.with_changes(changes)
    verify(kind, scenario, run.output)


def test_less_memory_makes_the_operator_flush_at_the_next_step(tmp_path: Path) -> None:
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory="400rows")
    found = join.arrive(0, batch(range(150))) + join.arrive(1, batch(range(150)))
    resizing = Resizing(join.context.budget, join.operator)
    resizing.ask(MemoryLimit(rows=100))
    assert join.context.budget.limit.rows == 400, "not yet: 300 rows are held"
    steps = 0
    for step in join.operator.arrive(0, batch(range(10))):
        found += join.take([step])
        resizing.enforce()
        steps += 1
        if resizing.asked is None:
            break
    assert steps <= 10, "what was not joined yet is joined, then all is written"
    assert (join.context.budget.limit.rows, join.counters.flushes) == (100, 1)
    found += join.take(join.operator.resume())
    assert join.context.budget.used_rows <= 100
    found += join.arrive(1, batch(range(300, 500))) + join.finish()
    assert len(found) == 160
    join.close()


def test_more_memory_makes_longer_runs(tmp_path: Path) -> None:
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory="40rows")
    keys = np.random.default_rng(2).permutation(400).tolist()
    join.arrive(0, batch(keys[:80]))
    Resizing(join.context.budget, join.operator).ask(MemoryLimit(rows=200))
    join.arrive(0, batch(keys[80:]))
    assert [pair.runs[0].rows for pair in join.operator._pairs] == [40, 200]  # type: ignore[attr-defined]
    join.close()


def test_pages_for_a_larger_memory_set_a_least(tmp_path: Path) -> None:
    join = Join("pmj", SCHEMA, SCHEMA, tmp_path, memory="9600rows")
    join.arrive(0, batch(range(20_000)))
    resizing = Resizing(join.context.budget, join.operator)
    with pytest.raises(InputError, match="pages that were written for a larger memory need 1,200 rows to be merged"):
        resizing.ask(MemoryLimit(rows=1000))
    resizing.ask(MemoryLimit(rows=1200))
    assert len(join.arrive(1, batch(range(0, 20_000, 10))) + join.finish()) == 2000
    join.close()


ROWS = 120_000
"""So many that most of them are still to be read when the memory changes."""


def test_a_running_query_takes_it() -> None:
    table = pa.table({"k": np.random.default_rng(3).permutation(ROWS), "pad": ["p" * 20] * ROWS})
    with ej.join(table, table, "k", algorithm="pmj", memory="32MB", batch_rows=2000) as query:
        rows = next(iter(query)).num_rows
        query.set_memory("2MB")
        limits = [query.memory]
        for result in query:
            rows += result.num_rows
            if query.memory != limits[-1]:
                limits.append(query.memory)
                query.set_memory("8MB")
                limits.append(query.memory)
        assert limits == [MemoryLimit(bytes=size * 10**6) for size in (32, 2, 8)], "more is there at once"
        assert rows == ROWS
        with pytest.raises(InputError, match="finished cannot be changed"):
            query.set_memory("8MB")


def test_what_is_refused() -> None:
    table = pa.table({"k": range(50_000)})
    with ej.join(table, table, "k", algorithm="shj", memory="64MB", batch_rows=5000) as query:
        rows = next(iter(query)).num_rows
        with pytest.raises(InputError, match=r"shj holds .* and cannot give memory back.*: pmj"):
            query.set_memory("64KiB")
        with pytest.raises(InputError, match=r"memory is counted in one unit"):
            query.set_memory("500rows")
        query.set_memory("63MB")
        assert rows + query.to_arrow().num_rows == 50_000
