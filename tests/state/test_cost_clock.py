"""Counted work takes time, once, whoever looks."""

from __future__ import annotations

import pytest

from earlyjoin.errors import InputError
from earlyjoin.state.cost_clock import CostClock, Costs
from earlyjoin.state.counters import Counters, Phase

COSTS = Costs(page_read_s=2, page_written_s=3, seek_s=10, row_s=0.5, comparison_s=0.25, result_s=0.125)


def test_each_unit_of_work_has_its_price() -> None:
    counters = Counters(
        rows_in=[2, 4], pages_read=1, pages_written=1, seeks=1, comparisons=4, results={Phase.ARRIVING: 8}
    )
    assert COSTS.seconds(counters) == 2 + 3 + 10 + 3 + 1 + 1


def test_work_is_paid_once_and_adds_to_waiting() -> None:
    counters, clock = Counters(), CostClock(COSTS)
    clock.watch(counters)
    assert clock.now() == 0
    counters.pages_read += 2
    assert clock.now() == clock.now() == 4
    clock.sleep(1)
    counters.pages_written += 1
    clock.advance_to(6)  # in the past once the page is paid
    assert clock.now() == 8
    clock.advance_to(20)
    assert (clock.now(), clock.worked_s) == (20, 7)


def test_several_operators_share_the_time() -> None:
    clock, every = CostClock(COSTS), [Counters(pages_read=5), Counters()]
    for counters in every:
        clock.watch(counters)
    assert clock.now() == 0  # what was done before does not count
    for counters in every:
        counters.pages_read += 1
    assert clock.now() == 4


def test_negative_costs_are_refused() -> None:
    with pytest.raises(InputError, match="row_s must be 0 or more"):
        Costs(row_s=-1)
