"""What descriptions declare is what operators do: the registry is asked, and then the operator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import earlyjoin as ej
from algorithms.harness import Join
from earlyjoin.algorithms import registry
from earlyjoin.algorithms.reading import PRESETS, Phased
from earlyjoin.algorithms.resizing import Resizing
from earlyjoin.errors import InputError
from earlyjoin.state.budget import MemoryLimit

NAMES = registry.names()
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def rows(*keys: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(keys, pa.int64()), pa.array(range(len(keys)), pa.int64())], schema=SCHEMA)


def description(name: str) -> registry.Description:
    return registry.get(name).description


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("first", [0, 1])
def test_a_row_is_joined_on_arrival_by_those_who_say_so(name: str, first: int, tmp_path: Path) -> None:
    join = Join(name, SCHEMA, SCHEMA, tmp_path)
    at_once = join.take(join.operator.arrive(first, rows(1, 2))) + join.take(join.operator.arrive(1 - first, rows(2)))
    assert len(at_once) == description(name).joins_on_arrival
    later = [row for side in (0, 1) for row in join.take(join.operator.end(side))]
    assert len(at_once + later + join.take(join.operator.finish())) == 1
    join.operator.close()


@pytest.mark.parametrize("name", NAMES)
def test_blocks_for_estimates_are_offered_by_those_who_say_so(name: str, tmp_path: Path) -> None:
    join = Join(name, SCHEMA, SCHEMA, tmp_path)
    assert (join.operator.joined_blocks is not None) == description(name).offers_blocks
    join.operator.close()


@pytest.mark.parametrize("name", NAMES)
def test_there_are_estimates_of_those_who_join_early(name: str) -> None:
    table = pa.table({"k": [row % 7 for row in range(3_000)]})
    early = description(name).joins_on_arrival or description(name).offers_blocks
    with ej.join(table, table, on="k", algorithm=name, memory="1000rows", batch_rows=200) as query:
        next(iter(query))
        said = query.estimate_reason or "matches are counted"
        assert ("does not join" not in said and "joins nothing" not in said) == early, said


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_given_back_by_those_who_say_so(name: str, tmp_path: Path) -> None:
    join = Join(name, SCHEMA, SCHEMA, tmp_path, memory="400rows")
    join.take(join.operator.arrive(0, rows(*range(60))))
    resizing = Resizing(join.context.budget, join.operator)
    if description(name).gives_memory_back:
        resizing.ask(MemoryLimit(rows=40))
        join.take(join.operator.arrive(0, rows(*range(60, 80))))
        resizing.enforce()
        assert resizing.asked is None
        assert join.context.budget.used_rows <= 40
    else:
        with pytest.raises(InputError, match="cannot give memory back") as refused:
            resizing.ask(MemoryLimit(rows=40))
        able = [name for name in registry.names_that_can(join.plan) if description(name).gives_memory_back]
        assert str(refused.value).endswith(", ".join(able))
    join.operator.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_query_reads_as_its_algorithm_prefers(name: str) -> None:
    table = pa.table({"k": [1]})
    reading = ej.join(table, table, on="k", algorithm=name)._execution.reading
    assert reading is not None
    preferred = description(name).reading
    if preferred is not None:
        first, later = PRESETS[preferred]
        assert reading.weights == first
        assert later == (reading.later if isinstance(reading, Phased) else first)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_predicted_is_of_those_with_formulas(name: str) -> None:
    table = pa.table({"k": list(range(1_000))})
    told = ej.join(table, table, on="k", algorithm=name, memory="300rows").explain()
    assert ("rows read)" in told) == (description(name).formulas is not None)


def test_yardsticks_are_taken_only_where_nothing_else_can() -> None:
    table = pa.table({"k": list(range(1_000))})
    for on in (ej.equal("k"), ej.band("k", eps=1), ej.not_equal("k")):
        query = ej.join(table, table, on=on, memory="300rows")
        others = [one.name for one in registry.able(query.plan) if one.spills and not one.is_yardstick]
        assert description(query.algorithm).is_yardstick == (not others)


def test_the_form_for_many_inputs_declares_for_itself() -> None:
    tables = {name: pa.table({"k": [1, 2]}) for name in "abc"}
    query = ej.multi_join(tables, on="k")
    described = query._execution.operator.description
    assert not described.offers_blocks
    assert query._execution.operator.joined_blocks is None
    assert not described.gives_memory_back


def test_the_order_of_names_does_not_depend_on_what_was_imported_before() -> None:
    program = "import earlyjoin.algorithms.hash_join.rpj.operator, earlyjoin as ej; print(*ej.algorithm_names())"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == NAMES
    assert NAMES[:2] == ["shj", "nested"]
