"""Simulated networks on a virtual clock: the reactive phase, and the same run twice."""

from __future__ import annotations

import pytest

import earlyjoin as ej
from earlyjoin.local.sources import Bursty, Reliable, SimulatedSource, Stalling, Zipf, generated
from earlyjoin.local.sources.arrivals import Arrivals
from earlyjoin.state.clock import VirtualClock
from earlyjoin.state.counters import Phase


def bursty_join(arrivals: Arrivals, memory: str = "120rows") -> tuple[ej.Query, VirtualClock]:
    clock = VirtualClock()
    sources = [
        SimulatedSource(
            generated(600, 60, seed=seed, payload_bytes=8), arrivals, rows_per_packet=10, seed=seed, clock=clock
        )
        for seed in (1, 2)
    ]
    return ej.join(*sources, on="k", algorithm="nested", memory=memory, clock=clock, batch_rows=50), clock


@pytest.mark.parametrize(
    "arrivals",
    [Bursty(0.001, 10, 0.5), Zipf(0.001, 0.3, 1.0), Stalling(Reliable(0.001), 20, 5.0)],
    ids=["bursty", "zipf", "stalling"],
)
def test_silence_is_used_and_runs_repeat(arrivals: Arrivals) -> None:
    runs = []
    for _ in range(2):
        query, clock = bursty_join(arrivals)
        output = [(clock.now(), row["id"], row["id_right"]) for batch in query for row in batch.to_pylist()]
        runs.append((output, query._execution.counters.to_dict()))
    assert runs[0] == runs[1]
    counters = query._execution.counters
    assert counters.results[Phase.REACTIVE] > 0
    assert counters.results[Phase.CLEANUP] > 0
    assert counters.results[Phase.ARRIVING] > 0
    expected = ej.join(
        *(generated(600, 60, seed=seed, payload_bytes=8) for seed in (1, 2)), on="k", algorithm="shj"
    ).to_arrow()
    assert sorted(row[1:] for row in runs[0][0]) == sorted(
        zip(*expected.select(["id", "id_right"]).to_pydict().values(), strict=True)
    )


def test_reactive_work_hands_over_as_soon_as_input_waits() -> None:
    query, clock = bursty_join(Bursty(0.001, 10, 0.5))
    late = []
    execution = query._execution
    arrive = execution.operator.arrive

    def watched(side, batch):  # type: ignore[no-untyped-def]
        late.append(clock.now())
        return arrive(side, batch)

    execution.operator.arrive = watched  # type: ignore[method-assign]
    for _ in query:
        pass
    schedules = []
    for source in query.sources:
        assert isinstance(source, SimulatedSource)
        schedules += [at for at, _ in source.schedule(execution._batch_rows(source))]
    delays = [taken - due for taken, due in zip(sorted(late), sorted(schedules), strict=True)]
    # Looking at the inputs takes a virtual millisecond a step: no arrival waits for more than a few of them.
    assert max(delays) < 0.02
