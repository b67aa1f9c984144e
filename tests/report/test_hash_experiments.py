"""The harness of the hash family: small versions of the figures keep the papers' orderings, and are the same twice."""

from __future__ import annotations

import pytest

from earlyjoin.algorithms.hash_join.prediction.formulas import JoinSize, results_in_memory
from earlyjoin.errors import InputError
from earlyjoin.report.bench import tpch
from earlyjoin.report.experiments import tpch_keys
from earlyjoin.report.experiments.ehj import fig9, setting
from earlyjoin.report.experiments.moments import MOST_POINTS, History, Moment
from earlyjoin.report.experiments.rpj import data
from earlyjoin.report.experiments.rpj import setting as rpj

SCALE = 1 / 50


@pytest.fixture(autouse=True)
def _no_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated keys, whatever is installed."""

    def missing(*_: object, **__: object) -> None:
        raise InputError("not here")

    monkeypatch.setattr(tpch, "table", missing)


def _many(label: str) -> History:
    return setting.many_to_many(label, SCALE, 0)


def _one(label: str) -> History:
    return setting.one_to_many(label, SCALE / 2, 0)


def test_many_to_many_keeps_the_order_of_figure_2() -> None:
    """With so little memory the page buffers of frozen partitions take a partition's place, so EHJ* is not DHJ here."""
    pages = [_many(label).last.page_ios for label in ("DHJ", "EHJ2", "EHJ1", "XJoin", "HMJ")]
    assert pages == sorted(pages)
    assert {_many(label).last.results for label in ("DHJ", "EHJ1", "HMJ")} == {round(3_200_000 * SCALE)}


@pytest.mark.parametrize("label", ["EHJ1", "EHJ2", "DHJ", "XJoin"])
def test_results_before_memory_is_full_are_those_of_formula_1(label: str) -> None:
    rows, memory = 800_000 * SCALE, 300_000 * SCALE
    q1, _ = setting.shares(label)
    expected = results_in_memory(memory, q1, JoinSize(r=rows, s=rows, selectivity=4 / rows))
    assert _many(label).full.results == pytest.approx(expected, rel=0.05)


def test_one_to_many_keeps_the_order_of_figure_6() -> None:
    ios = {label: _one(label).last.tuple_ios for label in ("DHJ", "EHJ1", "XJoin", "HMJ")}
    assert max(ios["DHJ"], ios["EHJ1"]) < ios["XJoin"] < ios["HMJ"]
    assert {_one(label).last.results for label in ios} == {round(1_500_000 * SCALE / 2)}
    counters = _one("EHJ1").counters[-1]
    assert counters.inserts_avoided > 10 * counters.discards > 0


def test_early_hash_join_responds_much_sooner_than_dynamic_hash_join() -> None:
    early, dynamic = (_many(label).when(20).seconds for label in ("EHJ1", "DHJ"))
    assert 10 * early < dynamic
    assert _many("EHJ1").last.seconds < 1.2 * _many("DHJ").last.seconds


def test_two_runs_with_one_seed_are_the_same() -> None:
    first, second = (setting.one_to_many.__wrapped__("EHJ2", 1 / 400, 3) for _ in range(2))
    assert first.moments == second.moments
    assert first.counters == second.counters
    unlike = setting.many_to_many.__wrapped__("EHJ2", 1 / 400, 4)
    again = setting.many_to_many.__wrapped__("EHJ2", 1 / 400, 5)
    assert unlike.moments != again.moments


def test_two_pushed_runs_with_one_seed_are_the_same() -> None:
    given = ("XJoin", data.SETTINGS[3], "unreliable", 1 / 400, 1)
    first, second = (rpj.run.__wrapped__(*given) for _ in range(2))
    assert first.moments == second.moments
    assert first.counters == second.counters
    assert first.counters[0].seeks > 0


def test_the_first_part_of_a_pushed_run() -> None:
    given = ("RPJ", data.SETTINGS[0], "unreliable", 1 / 400, 1)
    longer, shorter = (rpj.run.__wrapped__(*given, first=first) for first in (0.2, 0.1))
    end_s = rpj.end_of_transmission_s(*given[1:])
    assert 0.1 * end_s < shorter.last.seconds < 0.15 * end_s
    assert shorter.moments[:-1] == longer.moments[: len(shorter.moments) - 1]


@pytest.mark.slow
@pytest.mark.parametrize("setting", data.SETTINGS)
def test_memory_disk_tasks_are_ahead_at_first_at_the_scale_of_the_paper(setting: data.Setting) -> None:
    end_s = rpj.end_of_transmission_s(setting, "unreliable", 1, 0)
    md, dd = (rpj.run(label, setting, "unreliable", 1, 0, first=0.07) for label in ("RPJ-md", "RPJ-dd"))
    start_s = rpj.both_flushed_s(md, dd, end_s)
    stop_s = start_s + end_s / 100
    assert md.mean_results(start_s, stop_s) > dd.mean_results(start_s, stop_s)


@pytest.mark.slow
def test_rate_based_join_is_ahead_on_a_reliable_network() -> None:
    scale, harmony = 1 / 10, data.SETTINGS[0]
    end_s = rpj.end_of_transmission_s(harmony, "reliable", scale, 0)
    runs = {label: rpj.run(label, harmony, "reliable", scale, 0) for label in ("RPJ", "XJoin")}
    good, of = rpj.tenths_ahead(runs["RPJ"], runs["XJoin"], end_s, lambda moment: moment.results)
    assert good == of > 5
    assert runs["RPJ"].last.results == runs["XJoin"].last.results


def test_a_tree_of_two_joins() -> None:
    history = fig9._tree("EHJ2", 1 / 1000, 0)
    lines = len(tpch_keys.generated("lineitem", 1 / 1000, 0))
    assert history.last.results == lines
    assert len(history.counters) == 2


def test_generated_keys_are_like_those_of_tpch() -> None:
    customer, orders, lineitem, partsupp = (
        tpch_keys.generated(name, 0.01, 0) for name in ("customer", "orders", "lineitem", "partsupp")
    )
    assert (len(customer), len(orders), len(partsupp)) == (1500, 15_000, 8000)
    buyers = set(orders["o_custkey"].to_pylist())
    assert buyers <= set(customer["c_custkey"].to_pylist())
    assert not any(key % 3 == 0 for key in buyers)
    assert set(lineitem["l_orderkey"].to_pylist()) == set(orders["o_orderkey"].to_pylist())
    assert 3.9 < len(lineitem) / len(orders) < 4.1


def test_streams_have_the_patterns_of_the_paper() -> None:
    tables, schedule = data.streams(data.Setting("reverse", 5), "unreliable", 0.02, 0)
    assert len(tables[0]) / len(tables[1]) == pytest.approx(5, rel=0.1)
    shares = [
        [sum((key - 1) % 20 == part for key in table["a"].to_pylist()) / len(table) for part in (0, 19)]
        for table in tables
    ]
    assert shares[0] == pytest.approx([0.01, 0.09], rel=0.2)
    assert shares[1] == pytest.approx([0.09, 0.01], rel=0.2)
    gaps = schedule.times_s[1:] - schedule.times_s[:-1]
    assert gaps.mean() == pytest.approx(0.007, rel=0.05)
    assert 0.000999 <= gaps.min() <= gaps.max() <= 0.030001


def test_a_history_answers_questions() -> None:
    moments = [Moment(float(n), 0.0, 10 * n, n, n, max(0, n - 500), 5 * n, 5 * min(n, 900)) for n in range(1000)]
    history = History("h", moments)
    assert history.full.seconds == 500
    assert history.at(10.5).seconds == 10
    assert history.when(50).seconds == 10
    assert history.mean_results(10.5, 12) == pytest.approx((0.5 * 50 + 55) / 1.5)
    assert history.arrived.seconds == 900
    curve = history.curve(lambda m: m.seconds, lambda m: m.results)
    assert len(curve.x) == MOST_POINTS
    assert (curve.x[0], curve.x[-1]) == (0, 999)
