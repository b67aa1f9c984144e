"""The clean-up: partition by partition, whatever pairs have not met yet (XJoin stage 3, EHJ section 4, both passes).

::

    for each partition, with a build side b and the other side o:
      for some stripes, as many as fit (or the whole partition, where a run has no stripes):
        ROOM    of a memory in rows: others make room for the next stripe, if there is none
        LOAD    b's runs into memory, beside what of b is there; what does not fit waits for the next round
        MEMORY  rows of o in memory probe b
        STREAM  pages of o probe b; in the last round, unmatched rows of a page go out
        CHECK   only for a 1:N join in rounds: does the rest of b repeat a key?
        BUILT   unmatched rows of b's stripes go out, they are forgotten ──▶ LOAD, or in the last round:
        REST    unmatched rows of o's stripes in memory go out, they are forgotten ──▶ ROOM for the next stripes

Rounds are block nesting: stripes that do not fit, one hot key included, cost o's pages once more each.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from earlyjoin.algorithms.hash_join.disk_pairs import probe_memory, probe_page, unmatched_in_memory
from earlyjoin.algorithms.hash_join.join_state import JoinState
from earlyjoin.algorithms.hash_join.one_side import refuse_repeated
from earlyjoin.algorithms.hash_join.table.chain_probe import ChainProbe
from earlyjoin.algorithms.hash_join.tasks import FinalWork
from earlyjoin.algorithms.matching.settlement import one_sided
from earlyjoin.algorithms.protocol import Step
from earlyjoin.errors import BudgetExceeded
from earlyjoin.state.budget import row_too_large

if TYPE_CHECKING:
    from earlyjoin.algorithms.hash_join.table.disk_part import DiskPage, Stripes


class Stage(StrEnum):
    """What is being done with the partition in hand."""

    BEGIN = "begin"
    ROOM = "room"
    LOAD = "load"
    MEMORY = "memory"
    STREAM = "stream"
    CHECK = "check"
    BUILT = "built"
    REST = "rest"


class CleanUp(FinalWork):
    """Joins what was never joined, in a given order of partitions."""

    def __init__(self, state: JoinState, order: list[int]) -> None:
        self._state, self._table = state, state.table
        self._order = order
        self._at = 0
        self._stage = Stage.BEGIN
        self._build = 0
        self._stripes: Stripes = (0, 0)
        """The stripes in hand, or the last ones while room is made."""
        self._load = [0, 0, 0]
        """Run, page and row of the build side that come next."""
        self._loaded = 0
        """How often rows of the build side came into memory in this round."""
        self._most: int | None = None
        """Rows that may come into memory at once, if whole pages find no room."""
        self._page = [0, 0]
        """Run and page of the other side, or of the build side being checked."""
        self._row = 0
        self._probe = ChainProbe()

    @property
    def done(self) -> bool:
        """Is every partition through?"""
        return self._at >= len(self._order)

    @property
    def _partition(self) -> int:
        return self._order[self._at]

    def step(self) -> Step:
        """A bounded piece of the work."""
        stages = {
            Stage.BEGIN: self._begin,
            Stage.ROOM: self._room,
            Stage.LOAD: self._load_page,
            Stage.MEMORY: self._probe_memory,
            Stage.STREAM: self._stream,
            Stage.CHECK: self._check,
            Stage.BUILT: self._built,
            Stage.REST: self._rest,
        }
        return stages[self._stage]()

    def _next(self, stage: Stage) -> None:
        self._stage, self._probe, self._row, self._page = stage, ChainProbe(), 0, [0, 0]

    def _begin(self) -> Step:
        """Choose the build side; nothing is loaded of one that is empty, and the other is only looked through."""
        self._build = self._state.loaded_side(self._partition)
        self._stripes, self._most = (0, 0), None
        self._next(Stage.ROOM)
        return None

    # Build side

    def _room(self) -> Step:
        """Choose the stripes to go on with; of a memory in rows, some make room for the first of them before."""
        striping, room = self._table.striping, self._table.room_rows()
        if room is not None:
            missing = striping.rows_of_next(self._build, self._partition, self._stripes) - room
            victim = next(self._others(), None)
            if missing > 0 and victim is not None:
                self._table.flush(*victim, rows=missing)
                return None
        self._stripes = striping.next_fitting(self._build, self._partition, self._stripes)
        self._load, self._loaded = [0, 0, 0], 0
        self._next(Stage.LOAD)
        return None

    def _others(self) -> Iterator[tuple[int, int]]:
        """Memory parts that can make room, first those of the partitions that come last, then the other side's."""
        places = [(side, partition) for partition in reversed(self._order[self._at + 1 :]) for side in range(2)]
        for side, partition in [*places, (1 - self._build, self._partition)]:
            if len(self._table.parts[side][partition]):
                yield side, partition

    def _runs_left(self) -> bool:
        """Is there more of b's stripes on disk than was loaded?"""
        return self._load[0] < len(self._table.runs[self._build][self._partition])

    def _load_page(self) -> Step:
        """One page into memory; when it does not fit, others make room or it waits for the next round."""
        partition, build = self._partition, self._build
        if not self._runs_left():
            self._next(Stage.MEMORY)
            return None
        run = self._table.runs[build][partition][self._load[0]]
        page = self._table.readers[build].read(run, self._load[1], self._stripes)
        if page is None:
            self._load = [self._load[0] + 1, 0, 0]
            return None
        start, stop, following = self._load[2], self._fitting(page), self._table.readers[build].next_page
        if start >= len(page):  # more was held at once when it was loaded
            self._load = [self._load[0], following, start - len(page)]
            return None
        try:
            if start == stop:
                raise BudgetExceeded("no row fits")
            keys = self._table.load(build, partition, page, start, stop)
        except BudgetExceeded:
            self._no_room(page, stop - start)
            return None
        if self._state.one_side == build:
            refuse_repeated(self._state, self._table.parts[build][partition], page.rows.batch.slice(start), keys)
        self._load = [self._load[0], self._load[1], stop] if stop < len(page) else [self._load[0], following, 0]
        self._loaded += 1
        return None

    def _fitting(self, page: DiskPage) -> int:
        """The row behind the last that there is room for: where memory ends must not depend on how pages were cut."""
        room = self._table.room_rows() if self._most is None else self._most
        return len(page) if room is None else min(len(page), self._load[2] + room)

    def _no_room(self, page: DiskPage, rows: int) -> None:
        """Partitions that come last make room; else this round is full, or fewer rows have to come at once."""
        build, partition = self._build, self._partition
        mine = self._table.parts[build][partition]
        full = bool(len(mine) and self._table.striping.before(mine, self._stripes[1]).any())
        victim = next(self._others(), (build, partition) if len(mine) else None)
        if full and (victim is None or victim[1] == partition):
            self._next(Stage.MEMORY)
        elif victim is not None:
            self._table.flush(*victim)
        elif rows > 1:
            self._most = rows // 2
        else:
            raise row_too_large(page.nbytes / len(page), self._table.memory, "a partition")

    def _probe_memory(self) -> Step:
        """Rows of the other side in memory meet what was loaded."""
        other = self._table.parts[1 - self._build][self._partition]
        if not self._loaded or self._probe.over(len(other)) or not len(other):
            self._next(Stage.STREAM)
            return None
        return probe_memory(self._state, self._probe, self._build, self._partition)

    # The other side

    def _stream(self) -> Step:
        """Some pairs of a page of the other side."""
        state, other = self._state, 1 - self._build
        page = self._read(other)
        if page is None:
            return None
        if not self._probe.over(len(page)) and len(self._table.parts[self._build][self._partition]):
            step = probe_page(self._state, self._probe, self._build, self._partition, page)
            if step is not None or not self._probe.over(len(page)):
                return step
        if self._runs_left() or not state.plan.how.gives_unmatched(other) or page.matched is None:
            self._turn_page(other, page)
            return None
        stop = min(len(page), self._row + state.context.output_rows)
        numbers = self._row + np.flatnonzero(~page.matched[self._row : stop])
        self._row = max(self._row, stop)
        if stop == len(page) and not len(numbers):
            self._turn_page(other, page)
        return one_sided(other, page.rows, numbers)

    def _turn_page(self, side: int, page: DiskPage) -> None:
        """Go on behind the page; beyond that, if more than it was held at once before."""
        self._page[1] = self._table.readers[side].next_page
        self._row, self._probe = max(0, self._row - len(page)), self._probe.behind(len(page))

    def _read(self, side: int) -> DiskPage | None:
        """The page in hand; None when a run is through, or all runs are (then the next stage begins)."""
        runs = self._table.runs[side][self._partition]
        if self._page[0] >= len(runs) or not self._worth_reading(side):
            self._table.readers[side].drop()
            check = side != self._build and self._runs_left() and self._state.one_side == self._build
            self._next(Stage.CHECK if check else Stage.BUILT)
            if check:
                self._page = self._load[:2]
                self._row = self._load[2]
            return None
        page = self._table.readers[side].read(runs[self._page[0]], self._page[1], self._stripes)
        if page is None:
            self._page = [self._page[0] + 1, 0]
        return page

    def _worth_reading(self, side: int) -> bool:
        """Can the pages of a side match anything, or go out unmatched?"""
        if side == self._build or self._state.plan.how.gives_unmatched(side):
            return True
        return bool(len(self._table.parts[self._build][self._partition]))

    def _check(self) -> Step:
        """The build side must not repeat a key in what was not loaded yet."""
        page = self._read(self._build)
        if page is not None:
            part = self._table.parts[self._build][self._partition]
            start = min(self._row, len(page))
            rest = page.keys.slice(start, len(page))
            refuse_repeated(self._state, part, page.rows.batch.slice(start), rest, stored=False)
            self._turn_page(self._build, page)
        return None

    # What is left

    def _built(self) -> Step:
        """Unmatched rows of the build side; then they are forgotten, and the next round or the rest follows."""
        if self._row >= 0:
            return self._unmatched(self._build)
        if not self._runs_left():
            self._table.readers[self._build].drop()
        self._table.striping.forget_before(self._build, self._partition, self._stripes[1])
        self._loaded = 0
        self._next(Stage.LOAD if self._runs_left() else Stage.REST)
        return None

    def _rest(self) -> Step:
        """Unmatched rows of the other side in memory; then the stripes, or the whole partition, are through."""
        if self._row >= 0:
            return self._unmatched(1 - self._build)
        self._table.striping.forget_before(1 - self._build, self._partition, self._stripes[1])
        if self._stripes[1] < self._table.striping.count:
            self._next(Stage.ROOM)
            return None
        for side in range(2):
            self._table.forget_disk(side, self._partition)
        self._at += 1
        self._stage = Stage.BEGIN
        return None

    def _unmatched(self, side: int) -> Step:
        """Some unmatched rows in memory of the stripes in hand."""
        step, self._row = unmatched_in_memory(
            self._state, side, self._partition, self._row, stop_stripe=self._stripes[1]
        )
        return step

    # State

    def save(self) -> dict[str, Any]:
        """Plain values for a snapshot."""
        place = {"order": list(self._order), "at": self._at, "stage": self._stage.value, "build": self._build}
        more = {"stripes": list(self._stripes), "load": list(self._load), "page": list(self._page)}
        return place | more | {"loaded": self._loaded, "row": self._row, "probe": self._probe.save()}

    def load(self, values: dict[str, Any]) -> None:
        """Take over what ``save`` gave."""
        self._order, self._at, self._stage = list(values["order"]), values["at"], Stage(values["stage"])
        self._build, self._loaded, self._row = values["build"], values["loaded"], values["row"]
        self._stripes = (values["stripes"][0], values["stripes"][1])
        self._load, self._page = list(values["load"]), list(values["page"])
        self._probe = ChainProbe.load(values["probe"])
