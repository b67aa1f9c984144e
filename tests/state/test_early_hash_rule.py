"""EHJ's one-timestamp rule (sections 4.4 to 4.6) against the hashing phase played through tuple by tuple.

The simulation knows nothing of the rule: it holds the partitions in memory and on disk, probes as the paper says, and
writes down every pair when it is joined. A pair may be joined once only, and the rule must name exactly those pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.state.clock import LogicalClock
from earlyjoin.state.joined import early_hash_joined

NEVER = LogicalClock.NEVER


@dataclass
class File:
    """A file of a frozen partition of S: the stamps of its rows, and when it last probed R."""

    last_probe: int
    rows: list[int] = field(default_factory=list)


@dataclass
class Partition:
    """One pair of partitions R_i, S_i."""

    r_memory: list[int] = field(default_factory=list)
    r_disk: list[int] = field(default_factory=list)
    s_memory: list[int] = field(default_factory=list)
    s_files: list[File] = field(default_factory=list)
    r_flush: int = NEVER
    s_flush: int = NEVER

    def last_probe_of(self, s: int) -> int:
        return next((file.last_probe for file in self.s_files if s in file.rows), self.s_flush)


class HashingPhase:
    """Rows arrive, partitions are frozen (S before R), files of S probe R in the background. All rows match."""

    def __init__(self, partitions: int) -> None:
        self.clock = LogicalClock()
        self.partitions = [Partition() for _ in range(partitions)]
        self.joined: list[set[tuple[int, int]]] = [set() for _ in range(partitions)]

    def _join(self, number: int, pairs: set[tuple[int, int]]) -> None:
        assert not pairs & self.joined[number], "joined twice"
        self.joined[number] |= pairs

    def arrive_r(self, number: int) -> None:
        part, now = self.partitions[number], self.clock.tick()
        self._join(number, {(now, s) for s in part.s_memory})  # none once S_i is frozen: it cannot be probed
        (part.r_memory if part.r_flush == NEVER else part.r_disk).append(now)

    def arrive_s(self, number: int) -> None:
        part, now = self.partitions[number], self.clock.tick()
        self._join(number, {(r, now) for r in part.r_memory})
        if part.s_flush == NEVER:
            part.s_memory.append(now)
        else:
            part.s_files[-1].rows.append(now)

    def flush(self) -> None:
        """The biased policy of section 4.1: the largest partition of S that is not frozen, else the smallest of R."""
        now = self.clock.tick()
        warm = [part for part in self.partitions if part.s_flush == NEVER]
        if warm:
            victim = max(warm, key=lambda part: len(part.s_memory))
            victim.s_flush = now
            victim.s_files.append(File(now, victim.s_memory))
            victim.s_memory = []
            return
        warm = [part for part in self.partitions if part.r_flush == NEVER]
        if warm:
            victim = min(warm, key=lambda part: len(part.r_memory))
            victim.r_flush, victim.r_disk, victim.r_memory = now, victim.r_memory, []

    def background(self, number: int, which: int) -> None:
        """A file of S probes R in memory; pairs that the rule calls joined are left out (section 4.5)."""
        part = self.partitions[number]
        if part.r_flush != NEVER or not part.s_files:
            return
        file = part.s_files[which % len(part.s_files)]
        if file is part.s_files[-1]:  # the file being written is closed and another one begun
            part.s_files.append(File(part.s_flush))
        fresh = {(r, s) for r in part.r_memory for s in file.rows if not self._rule(part, r, s, file.last_probe)}
        # What the rule lets through must be all that was not joined before: _join checks the rest.
        assert fresh == {(r, s) for r in part.r_memory for s in file.rows} - self.joined[number]
        self._join(number, fresh)
        file.last_probe = self.clock.tick()

    @staticmethod
    def _rule(part: Partition, r: int, s: int, last_probe: int | None) -> bool:
        return bool(early_hash_joined(r, s, part.r_flush, part.s_flush, last_probe))


events = st.lists(
    st.tuples(
        st.sampled_from(["r", "s", "r", "s", "r", "s", "flush", "background"]),
        st.integers(0, 2),
        st.integers(0, 3),
    ),
    min_size=8,
    max_size=45,
)


def play(steps: list[tuple[str, int, int]], partitions: int, *, background: bool) -> HashingPhase:
    phase = HashingPhase(partitions)
    for name, any_number, which in steps:
        number = any_number % partitions
        if name == "r":
            phase.arrive_r(number)
        elif name == "s":
            phase.arrive_s(number)
        elif name == "flush":
            phase.flush()
        elif background:
            phase.background(number, which)
    return phase


@pytest.mark.parametrize("background", [False, True])
@given(steps=events, partitions=st.integers(1, 3))
@settings(deadline=None, max_examples=300)
def test_the_rule_names_the_pairs_that_the_hashing_phase_joined(
    background: bool, steps: list[tuple[str, int, int]], partitions: int
) -> None:
    phase = play(steps, partitions, background=background)
    for part, joined in zip(phase.partitions, phase.joined, strict=True):
        rs = sorted(part.r_memory + part.r_disk)
        ss = sorted(part.s_memory + [s for file in part.s_files for s in file.rows])
        probes = np.array([part.last_probe_of(s) for s in ss], dtype=np.int64)
        answers = early_hash_joined(
            np.array(rs, dtype=np.int64)[:, None],
            np.array(ss, dtype=np.int64),
            part.r_flush,
            part.s_flush,
            probes if background else None,
        )
        named = {(rs[i], ss[j]) for i, j in zip(*np.nonzero(np.broadcast_to(answers, (len(rs), len(ss)))), strict=True)}
        assert named == joined
        if not background:
            # Without probes, the initial probe stamp (the flush of S) must change nothing.
            initial = early_hash_joined(
                np.array(rs, dtype=np.int64)[:, None], np.array(ss, dtype=np.int64), part.r_flush, part.s_flush, probes
            )
            assert np.array_equal(initial, answers)


def test_the_three_cases_of_the_paper() -> None:
    s_flush, r_flush = 10, 20
    cases = {
        (3, 5): True, (7, 5): True, (12, 5): False, (25, 5): False,  # S before its flush: R after it is new
        (3, 15): True, (14, 15): True, (17, 15): False, (25, 15): False,  # S between: R after it is new
        (3, 25): False, (30, 25): False,  # S after R's flush: all are new
    }  # fmt: skip
    for (r, s), joined in cases.items():
        assert bool(early_hash_joined(r, s, r_flush, s_flush)) is joined, (r, s)
    r, s = (np.array(column) for column in zip(*cases, strict=True))
    assert early_hash_joined(r, s, r_flush, s_flush).tolist() == list(cases.values())


def test_nothing_was_ever_flushed() -> None:
    assert early_hash_joined(np.array([1, 4]), np.array([2, 3]), NEVER, NEVER).all()


@pytest.mark.parametrize(("r_flush", "s_flush"), [(5, 6), (5, NEVER), (np.array([9, 5]), np.array([6, 6]))])
def test_freezing_s_after_r_is_refused(r_flush: int, s_flush: int) -> None:
    with pytest.raises(AssertionError, match="freeze the S partition before"):
        early_hash_joined(1, 2, r_flush, s_flush)
