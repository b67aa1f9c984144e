"""The fuzz: a few of its cases, and whether it would notice what is wrong."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from earlyjoin.report.fuzz import workers
from earlyjoin.report.fuzz.cases import FORMS, draw
from earlyjoin.report.fuzz.checking import Ending, Verdict, judge
from earlyjoin.report.fuzz.columns import PAYLOAD, payload_column
from earlyjoin.report.fuzz.conditions import DrawnCondition
from earlyjoin.report.fuzz.inputs import Given
from earlyjoin.report.fuzz.oracle import expected_pairs
from earlyjoin.report.fuzz.running import CaseOutcome, run
from earlyjoin.report.fuzz.workers import Worker, run_case

PLAIN = 1000001


def a_case_with_rows() -> tuple[int, CaseOutcome]:
    for seed in range(PLAIN, PLAIN + 60):
        case = draw(seed)
        if case.settings.event == "nothing" and case.settings.how == "inner":
            outcome = run(case)
            if outcome.rows > 1 and judge(case, outcome).kind is Ending.RIGHT:
                return seed, outcome
    raise AssertionError("no such case")


@pytest.mark.parametrize("seed", range(1000010, 1000022))
def test_some_cases(seed: int) -> None:
    text, verdict = run_case(seed)
    assert not verdict.kind.failed, (text, verdict)


def test_a_seed_draws_the_same_case() -> None:
    one, other = draw(12), draw(12)
    assert one.text == other.text
    assert one.tables[0].schema == other.tables[0].schema


def test_broken_results_are_noticed() -> None:
    seed, outcome = a_case_with_rows()
    case, whole = draw(seed), pa.Table.from_batches(outcome.batches)

    def verdict(rows: pa.Table) -> Verdict:
        outcome.batches = rows.to_batches()
        return judge(case, outcome)

    assert verdict(whole).kind is Ending.RIGHT
    assert "1 missing" in verdict(whole.slice(1)).detail
    assert "1 too many" in verdict(pa.concat_tables([whole, whole.slice(0, 1)])).detail
    outcome.left_files = ["run-0"]
    assert verdict(whole).kind is Ending.LEFTOVER


def test_a_wrong_payload_value_is_noticed() -> None:
    """A value of another row, while all row numbers are right."""
    case = replace(draw(PLAIN), condition=DrawnCondition(), cross=True)
    left = pa.table({"lid": pa.array([0, 1]), "lp0": pa.array(["a", None])})
    right = pa.table({"rid": pa.array([0])})
    case = replace(case, tables=(left, right), settings=replace(case.settings, how="cross", event="nothing"))
    outcome = CaseOutcome([Given(left, left, "table"), Given(right, right, "table")])

    def verdict(values: list[str | None]) -> Verdict:
        outcome.batches = [pa.RecordBatch.from_pydict({"lid": [0, 1], "lp0": values, "rid": [0, 0]})]
        return judge(case, outcome)

    assert verdict(["a", None]).kind is Ending.RIGHT
    assert "1 wrong values in lp0: 'None' instead of None" in verdict(["a", "None"]).detail
    assert "1 wrong values in lp0: 'b' instead of 'a'" in verdict(["b", None]).detail


def test_a_case_tells_the_form_that_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet has no unions."""
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    table = pa.table({"lid": [0], "u": union})
    other = pa.table({"rid": [0]})
    plain = next(c for c in map(draw, range(PLAIN, PLAIN + 500)) if c.cross and c.settings.event == "nothing")
    case = replace(plain, tables=(table, other), forms=("parquet", "arrow"))
    monkeypatch.setattr(workers, "draw", lambda seed: case)
    text, verdict = run_case(PLAIN)
    assert verdict.kind is Ending.RIGHT, verdict
    assert text.startswith("table (parquet cannot hold it) 1×2 ⋈ arrow 1×1")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_can_be_joined(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left = pa.table({"lid": range(40), "s": ["a", "b"] * 20})
    right = pa.table({"rid": [0]})
    plain = next(c for c in map(draw, range(PLAIN, PLAIN + 500)) if c.cross and c.settings.event == "nothing")
    case = replace(plain, tables=(left, right), forms=(form, "table"))
    monkeypatch.setattr(workers, "draw", lambda seed: case)
    text, verdict = run_case(PLAIN)
    assert verdict.kind is Ending.RIGHT, verdict
    assert text.startswith(f"{form} 40×2 ⋈ table 1×1")


def test_skewed_equalities_have_bounded_results() -> None:
    for seed in range(101000000, 101000150):
        case = draw(seed)
        if case.condition.equality:
            width = sum(table.num_columns for table in case.tables)
            assert len(expected_pairs(case)) * width <= 3_500_000, case.text


@pytest.mark.parametrize("type_", PAYLOAD, ids=str)
def test_payload_of_every_type_can_be_drawn(type_: pa.DataType) -> None:
    column = payload_column(np.random.default_rng(3), type_, 50, odd=True)
    column.validate(full=True)
    assert (column.type, len(column)) == (type_, 50)


def ends(seed: int) -> tuple[str, Verdict]:
    if seed == 1:
        os.abort()
    if seed == 2:
        time.sleep(60)
    return "fine", Verdict(Ending.RIGHT)


def test_crashes_and_hangs_are_findings() -> None:
    with Worker(ends, hang_s=1) as worker:
        kinds = [verdict.kind for _, _, verdict in worker.results([0, 1, 2, 3])]
    assert kinds == [Ending.RIGHT, Ending.CRASH, Ending.HANG, Ending.RIGHT]
