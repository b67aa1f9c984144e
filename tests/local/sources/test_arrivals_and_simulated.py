"""Arrival processes and the network they drive."""

from __future__ import annotations

import math
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.errors import InputError, SourceError
from earlyjoin.local.sources import (
    Arrivals,
    BatchSizes,
    Bursty,
    Exponential,
    Reliable,
    SimulatedSource,
    Stalling,
    Zipf,
    open_source,
    parse_arrivals,
)

PROCESSES = [
    Reliable(0.001),
    Exponential(0.01),
    Zipf(0.001, 0.03, 0.8),
    Bursty(0.001, 50, 0.2),
    Bursty(0.001, 1, 0.2),
    Stalling(Bursty(0.001, 7, 0.2), 20, 2.0),
    Stalling(Zipf(0.0, 1.0), 0, 1.0),
]
TABLE = pa.table({"k": range(1000)})


class VirtualClock:
    def __init__(self) -> None:
        self.time_s = 100.0

    def now(self) -> float:
        return self.time_s

    def sleep(self, seconds: float) -> None:
        self.time_s += seconds


@pytest.mark.parametrize("process", PROCESSES, ids=str)
def test_more_gaps_only_append(process: Arrivals) -> None:
    @settings(max_examples=30, deadline=None)
    @given(seed=st.integers(0, 2**32), few=st.integers(0, 300), more=st.integers(0, 3000))
    def check(seed: int, few: int, more: int) -> None:
        short = process.gaps_s(np.random.default_rng(seed), few)
        long = process.gaps_s(np.random.default_rng(seed), few + more)
        assert short.dtype == long.dtype == np.float64
        assert len(short) == few
        assert np.all(long >= 0)
        np.testing.assert_array_equal(long[:few], short)

    check()


def test_shapes() -> None:
    rng = np.random.default_rng
    assert Reliable(0.5).gaps_s(rng(0), 3).tolist() == [0.5] * 3
    assert Exponential(0.01).gaps_s(rng(0), 100_000).mean() == pytest.approx(0.01, rel=0.02)
    zipf = Zipf(0.001, 0.03).gaps_s(rng(0), 100_000)
    assert zipf.min() == 0.001
    assert 0.029 < zipf.max() <= 0.03
    assert np.median(zipf) < zipf.mean() < 0.015
    bursty = Bursty(0.001, 50, 0.2).gaps_s(rng(0), 100_000)
    pauses = bursty[bursty > 0.001] - 0.001
    assert len(pauses) == pytest.approx(2000, rel=0.05)
    assert pauses.mean() == pytest.approx(0.2, rel=0.05)
    assert 0.1 <= pauses.min() <= pauses.max() <= 0.3
    assert bursty[0] == 0.001
    lengths = np.diff(np.flatnonzero(bursty > 0.001))
    assert 25 <= lengths.min() < lengths.max() <= 75
    stalling = Stalling(Reliable(0.1), 2, 5.0)
    assert stalling.gaps_s(rng(0), 4).tolist() == [0.1, 0.1, 5.1, 0.1]
    assert stalling.gaps_s(rng(0), 2).tolist() == [0.1, 0.1]


@pytest.mark.parametrize(
    ("text", "process"),
    [
        ("reliable:1ms", Reliable(0.001)),
        ("reliable:0", Reliable(0.0)),
        ("Exponential:10ms", Exponential(0.01)),
        ("zipf:500us:30ms", Zipf(0.0005, 0.03)),
        ("zipf:1ms:30ms:0.5", Zipf(0.001, 0.03, 0.5)),
        ("bursty:1ms:50:0.2s", Bursty(0.001, 50, 0.2)),
        ("stall:bursty:1ms:50:200ms@20:2s", Stalling(Bursty(0.001, 50, 0.2), 20, 2.0)),
        ("stall:stall:reliable:1ms@5:1s@20:1min", Stalling(Stalling(Reliable(0.001), 5, 1.0), 20, 60.0)),
    ],
)
def test_grammar(text: str, process: Arrivals) -> None:
    assert parse_arrivals(text) == process


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("slow:1ms", "arrivals 'slow:1ms': unknown process 'slow'; write reliable:GAP, "),
        ("", "unknown process ''"),
        ("reliable", "reliable takes 1 value, got 0"),
        ("zipf:1ms", "zipf takes 2 to 3 values, got 1"),
        ("bursty:1ms:50", "bursty takes 3 values, got 2"),
        ("reliable:1", "'1' is not a time with its unit"),
        ("bursty:1ms:x:1s", "'x' is not a whole number"),
        ("bursty:1ms:0:1s", "burst must be a number from 1 on, got 0"),
        ("zipf:2s:1s", "high_s must be a number from 2 on, got 1.0"),
        ("zipf:1s:2s:z", "'z' is not a number"),
        ("stall:reliable:1ms", "stall needs @PACKET:SILENCE at its end"),
        ("stall:reliable:1ms@5", "stall ... @ takes 2 values, got 1"),
    ],
)
def test_grammar_messages(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_arrivals(text)
    assert message in str(caught.value)


def simulated(arrivals: Arrivals, **options: object) -> SimulatedSource:
    options = {"rows_per_packet": 30, "seed": 4, **options}
    return SimulatedSource(open_source(TABLE, name="left"), arrivals, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("process", PROCESSES, ids=str)
def test_times_do_not_depend_on_batch_size_or_start(process: Arrivals) -> None:
    source = simulated(process, rows_per_packet=3)
    times = {
        row: at_s for at_s, batch in source.schedule(BatchSizes(first=3, most=3)) for row in batch["k"].to_pylist()
    }
    assert len(times) == 1000
    assert list(times.values()) == sorted(times.values())

    @settings(max_examples=15, deadline=None)
    @given(first=st.integers(1, 8), more=st.integers(0, 9), start_row=st.integers(0, 1001))
    def check(first: int, more: int, start_row: int) -> None:
        size = BatchSizes(first=first, most=first + more)
        rows = [(row, at_s) for at_s, batch in source.schedule(size, start_row) for row in batch["k"].to_pylist()]
        assert rows == list(times.items())[start_row:]

    check()


def test_more_packets_than_first_computed() -> None:
    source = SimulatedSource(
        open_source(pa.table({"k": range(5000)}), name="left"), Exponential(1.0), rows_per_packet=1, seed=0
    )
    times = [at_s for at_s, _ in source.schedule(BatchSizes())]
    np.testing.assert_allclose(times, np.cumsum(Exponential(1.0).gaps_s(np.random.default_rng(0), 5000)))


def test_small_packets_are_not_merged_and_large_ones_cut() -> None:
    assert {batch.num_rows for _, batch in simulated(Reliable(1)).schedule(BatchSizes())} == {30, 10}
    rows = [(at_s, batch.num_rows) for at_s, batch in simulated(Reliable(1)).schedule(BatchSizes(first=20, most=20))]
    assert rows[:4] == [(1.0, 20), (1.0, 10), (2.0, 20), (2.0, 10)]


def test_batches_wait_on_the_clock() -> None:
    clock = VirtualClock()
    source = simulated(Stalling(Reliable(1.0), 3, 10.0), clock=clock)
    seen = [(clock.time_s - 100.0, batch["k"][0].as_py()) for batch in source.batches(BatchSizes())]
    assert seen[:5] == [(1.0, 0), (2.0, 30), (3.0, 60), (14.0, 90), (15.0, 120)]
    assert len(seen) == math.ceil(1000 / 30)


def test_a_late_reader_gets_what_has_arrived_at_once() -> None:
    clock = VirtualClock()
    batches = simulated(Reliable(1.0), clock=clock).batches(BatchSizes())
    next(batches)
    clock.time_s += 50.0
    before = clock.time_s
    for _ in range(20):
        next(batches)
    assert clock.time_s == before


def test_a_later_start_waits_for_its_own_packet_only() -> None:
    clock = VirtualClock()
    batch = next(simulated(Reliable(1.0), clock=clock).batches(BatchSizes(), 95))
    assert batch["k"].to_pylist()[0] == 95
    assert clock.time_s == pytest.approx(101.0)


def test_real_time() -> None:
    source = simulated(Reliable(0.01), rows_per_packet=250)
    start = time.monotonic()
    assert sum(batch.num_rows for batch in source.batches(BatchSizes())) == 1000
    assert 0.035 < time.monotonic() - start < 2.0


def test_the_network_dies_in_its_time() -> None:
    clock = VirtualClock()
    source = simulated(Reliable(1.0), fail_at_packet=3, clock=clock)
    rows: list[int] = []
    with pytest.raises(SourceError, match=r"left: the connection broke after 3 packets \(simulated\)"):
        rows.extend(batch.num_rows for batch in source.batches(BatchSizes()))
    assert rows == [30, 30, 30]
    assert clock.time_s == pytest.approx(104.0)
    with pytest.raises(SourceError):
        list(source.schedule(BatchSizes()))
    assert len(list(simulated(Reliable(1.0), fail_at_packet=1000).schedule(BatchSizes()))) == 34


def test_takes_over_what_the_inner_source_is() -> None:
    source = simulated(Reliable(1.0))
    assert (source.name, source.rows_hint, source.live, source.replayable) == ("left", 1000, True, True)
    with pytest.raises(InputError, match="left: rows_per_packet must be at least 1, got 0"):
        simulated(Reliable(1.0), rows_per_packet=0)
