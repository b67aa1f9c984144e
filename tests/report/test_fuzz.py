"""The fuzz: a few of its cases, and whether it would notice what is wrong."""

from __future__ import annotations

import os
import time

import pyarrow as pa
import pytest

from earlyjoin.report.fuzz.cases import draw
from earlyjoin.report.fuzz.checking import Kind, Verdict, judge
from earlyjoin.report.fuzz.running import Outcome, run
from earlyjoin.report.fuzz.workers import Worker, run_case

PLAIN = 1000001


def a_case_with_rows() -> tuple[int, Outcome]:
    for seed in range(PLAIN, PLAIN + 60):
        case = draw(seed)
        if case.settings.event == "nothing" and case.settings.how == "inner":
            outcome = run(case)
            if outcome.rows > 1 and judge(case, outcome).kind is Kind.RIGHT:
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

    assert verdict(whole).kind is Kind.RIGHT
    assert "1 missing" in verdict(whole.slice(1)).detail
    assert "1 too many" in verdict(pa.concat_tables([whole, whole.slice(0, 1)])).detail
    outcome.left_files = ["run-0"]
    assert verdict(whole).kind is Kind.LEFTOVER


def ends(seed: int) -> tuple[str, Verdict]:
    if seed == 1:
        os.abort()
    if seed == 2:
        time.sleep(60)
    return "fine", Verdict(Kind.RIGHT)


def test_crashes_and_hangs_are_findings() -> None:
    with Worker(ends, hang_s=1) as worker:
        kinds = [verdict.kind for _, _, verdict in worker.results([0, 1, 2, 3])]
    assert kinds == [Kind.RIGHT, Kind.CRASH, Kind.HANG, Kind.RIGHT]
