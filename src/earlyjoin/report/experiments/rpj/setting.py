"""What all figures of RPJ section 6 share: the algorithms, memory, costs, and how curves are held against each other.

Time is charged as the paper's Et does it (section 5.3): a random access costs ``c_ran``, a page behind the last one of
the same run ``c_seq``. PAPER UNCLEAR: neither is given, nor the cost of CPU work. Here they are 10 ms and 1 ms, as a
disk of that time had them; a row takes 20 µs and a result 1 µs. Nor is nflush: it is a fortieth of the rows in memory,
as much as a partition of one side has on average.

RPJ looks for new rows when a task is done (figure 3, line 14), so its tasks are never cut short. PAPER UNCLEAR: what
HMJ and XJoin do. Here their work on disk has the silent time and no more: XJoin "assumes" that rows come before its
stage is done (section 2.1), and an HMJ that let rows wait for its merges would have far more than the "about 20 %" of
figure 10.

At a smaller scale rows, memory and pages shrink alike, and a page costs so much less: runs have as many pages, and
tasks take as large a part of the time. Suspensions do not come more often, though: whole tasks wait longer for the next
one, which counts when RPJ chooses (``wait_cost``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from earlyjoin.local.timed_inputs import Schedule
from earlyjoin.predicates import equal
from earlyjoin.report.experiments.experiment import Figure, Panel
from earlyjoin.report.experiments.moments import History, Moment
from earlyjoin.report.experiments.rpj.data import PARTITIONS, SILENCE_S, Setting, streams
from earlyjoin.report.experiments.running import Contender, push
from earlyjoin.state.cost_clock import Costs

MEMORY_ROWS = 100_000
PAGE_ROWS = 100
RANDOM_S = 10e-3
SEQUENTIAL_S = 1e-3
_OF_RPJ: Mapping[str, object] = {
    "random_cost": RANDOM_S,
    "sequential_cost": SEQUENTIAL_S,
    "hand_over": "task",
    "flush_fraction": 1 / (2 * PARTITIONS),
}


@lru_cache(maxsize=64)
def run(label: str, setting: Setting, network: str, scale: float, seed: int, *, first: float = math.inf) -> History:
    """One algorithm on one pair of streams, or the ``first`` part of the transmission alone."""
    tables, schedule = streams(setting, network, scale, seed)
    memory = round(MEMORY_ROWS * scale)
    page_rows = max(1, round(PAGE_ROWS * scale))
    each = page_rows / PAGE_ROWS
    costs = Costs(
        page_read_s=each * SEQUENTIAL_S,
        page_written_s=each * SEQUENTIAL_S,
        seek_s=each * (RANDOM_S - SEQUENTIAL_S),
        row_s=20e-6,
        result_s=1e-6,
    )
    rpj = label.startswith("RPJ")
    options: dict[str, object] = {"partitions": PARTITIONS, "hashing": "mod", "page_rows": page_rows}
    if rpj:
        options |= {**_OF_RPJ, "wait_cost": _between_silences_s(schedule) / each}
    return push(
        Contender(label=label, algorithm=label.lower(), options=options),
        equal("a"),
        tables,
        schedule,
        memory_rows=memory,
        costs=costs,
        silence_s=SILENCE_S,
        window_rows=max(50, memory // 200),
        silent_time_only=not rpj,
        until_s=first * schedule.times_s[-1],
    )


def _between_silences_s(schedule: Schedule) -> float:
    """How long it takes from a silence to the next, on average."""
    silences = np.count_nonzero(np.diff(schedule.times_s) > SILENCE_S)
    return float(schedule.times_s[-1] / silences) if silences else 0.0


def end_of_transmission_s(setting: Setting, network: str, scale: float, seed: int) -> float:
    """When the last row arrives."""
    return float(streams(setting, network, scale, seed)[1].times_s[-1])


def over_time(
    histories: Iterable[History], title: str, y: Callable[[Moment], float], y_label: str, until_s: float | None = None
) -> Panel:
    """Something over virtual time."""
    curves = tuple(history.curve(lambda moment: moment.seconds, y, until_s=until_s) for history in histories)
    return Panel(title, "virtual time (s)", y_label, curves)


def cost_over_time(histories: Iterable[History], title: str, until_s: float) -> Panel:
    """What a result has cost so far; the first ones cost a hundred times as much as the last."""
    panel = over_time(histories, title, cost_ms, "work for each result (ms)", until_s)
    return replace(panel, log=(False, True))


def results_in_millions(moment: Moment) -> float:
    """For axes."""
    return moment.results / 1e6


def cost_ms(moment: Moment) -> float:
    """Milliseconds of work for each result so far."""
    return 1000 * moment.worked_s / moment.results if moment.results else 0.0


def first_hundredth_s(one: History, other: History, end_s: float) -> float:
    """The first hundredth of the time axis at which both have flushed."""
    return end_s * math.ceil(100 * both_flushed_s(one, other, end_s) / end_s) / 100


def both_flushed_s(one: History, other: History, end_s: float) -> float:
    """When the second of the two first flushed; the end if one never did."""
    return max(next((m.seconds for m in h.moments if m.flushes), end_s) for h in (one, other))


def tenths_ahead(ahead: History, behind: History, end_s: float, value: Callable[[Moment], float]) -> tuple[int, int]:
    """At how many tenths of the time axis, after both have flushed, one is not below the other; and of how many."""
    start_s = both_flushed_s(ahead, behind, end_s)
    tenths = [end_s * n / 10 for n in range(1, 11) if end_s * n / 10 >= start_s]
    good = sum(value(ahead.at(at)) >= value(behind.at(at)) for at in tenths)
    return good, len(tenths)


def ahead_figure(what: str, ahead: History, behind: History, end_s: float) -> Figure:
    """Tenths at which one has more results, beside "all"."""
    good, of = tenths_ahead(ahead, behind, end_s, lambda moment: moment.results)
    return _tenths(f"{ahead.label} ahead of {behind.label}, {what}", good, of)


def cheaper_figure(what: str, cheap: History, dear: History, end_s: float) -> Figure:
    """Tenths at which one has paid less for each result, beside "all"."""
    good, of = tenths_ahead(cheap, dear, end_s, lambda moment: -cost_ms(moment))
    return _tenths(f"{cheap.label} cheaper than {dear.label}, {what}", good, of)


def _tenths(what: str, good: int, of: int) -> Figure:
    return Figure(f"tenths of the time with {what}", f"all {of}", good, good / of if of else None)
