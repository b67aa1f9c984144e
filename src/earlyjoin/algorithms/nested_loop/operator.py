"""Block nested loop join: every condition, every join type, any memory. The yardstick for all other algorithms.

::

    arriving:  insert a piece of the batch ──▶ compare it with the other side's rows in memory
                  └ memory full: the side that holds more goes to disk as one run (departure stamp), then go on
    reactive:  compare runs with runs, page by page
    cleanup:   what is still in memory becomes the last runs ──▶ compare all runs that were not ──▶ unmatched rows

Two rows that were in memory at one moment were compared when the later one came; pairs of runs compared on disk are
marked. Both rules are those of :mod:`earlyjoin.state.joined`. A share of the memory is set aside for two pages of
runs, so reading never has to wait for a flush.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.matching.admission import admit
from earlyjoin.algorithms.matching.settlement import Settlement, one_sided
from earlyjoin.algorithms.nested_loop.stored_side import Page, SpilledRun, StoredSide
from earlyjoin.algorithms.nested_loop.tiles import Tiles
from earlyjoin.algorithms.protocol import Context, Description, Operator, Plan, Slice, Step
from earlyjoin.algorithms.wide_rows import two_pages_share
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.base import Capability
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state import joined
from earlyjoin.state.budget import row_too_large
from earlyjoin.state.counters import Phase
from earlyjoin.state.rows.sizes import batch_nbytes
from earlyjoin.state.rows.store import Rows, one_batch
from earlyjoin.state.snapshot import Snapshot

_READING_SHARE = 0.25
_MOST_TILE_PAIRS = 65536


Candidates = tuple[Int64, Int64]
"""Pairs of the tile in hand that satisfy the driving predicate and are not settled yet."""


@dataclass(slots=True)
class Arriving:
    """A batch on its way in: rows before ``offset`` are in memory, those from ``piece`` on are being compared."""

    side: int
    batch: pa.RecordBatch
    keys: Keys | None
    offset: int = 0
    piece: tuple[int, int] | None = None
    tiles: Tiles = field(default_factory=Tiles)
    found: Candidates | None = None


@dataclass(slots=True)
class RunPair:
    """Two runs being compared: pages before (``page_0``, ``page_1``) are done."""

    run_0: int
    run_1: int
    page_0: int = 0
    page_1: int = 0
    tiles: Tiles = field(default_factory=Tiles)
    found: Candidates | None = None


@dataclass(slots=True)
class Unmatched:
    """Where the search for unmatched rows stands: a side, a run of it (or its memory), a page of the run, a row."""

    side: int = 0
    run: int = 0
    page: int = 0
    position: int = 0


@registry.register
class NestedLoopJoin(Operator):
    """Compares every row with every row of the other side, in memory or page by page from disk."""

    description = Description(
        name="nested",
        title="block nested loop join",
        paper="the oracle of all others",
        needs=Capability.NONE,
        spills=True,
        rows_at_once=4,
        joins_on_arrival=True,
        is_yardstick=True,
        remark="it compares every pair of rows, so large inputs take long",
    )

    def __init__(self, plan: Plan, context: Context) -> None:
        super().__init__(plan, context)
        parts = plan.condition.parts
        self._key = parts[0] if parts else None
        self._settle = Settlement(plan, parts[1:], context)
        self._reading, self._memory = context.budget.split(_reading_share(context), least_rows=2)
        self._sides = [
            StoredSide(
                side, schema, self._key, self._memory, self._reading, context, flags=plan.how.remembers_matched(side)
            )
            for side, schema in enumerate(plan.schemas)
        ]
        self._runs = [side.runs for side in self._sides]
        self._done = joined.RunPairs()
        self._arriving: Arriving | None = None
        self._pair: RunPair | None = None
        self._unmatched = Unmatched()
        self._finishing = False
        self._working = self._memory.account("keys of the arriving batch")
        self._tile_pairs = _tile_pairs(self._memory.limit.bytes)
        self._tile = self._memory.account("tile of row numbers")
        self._tile.reserve(2 * 8 * self._tile_pairs)

    def arrive(self, side: int, batch: pa.RecordBatch) -> Iterator[Step]:
        """Take the batch in piece by piece, comparing each with the other side's rows in memory."""
        self.phase = Phase.ARRIVING  # a reactive call may have been abandoned
        self.context.counters.rows_in[side] += batch.num_rows
        keys = None
        if self._key is not None:
            batch, keys = admit(self.plan, side, batch, self._key)
        if keys is not None:
            while not self._working.try_reserve(keys.nbytes):
                self._flush_larger(keys.nbytes)
        self._arriving = Arriving(side, batch, keys)
        return self.resume()

    def end(self, side: int) -> Iterator[Step]:
        """Nothing to do before every side has ended."""
        return self.resume()

    def react(self, work: Slice) -> Iterator[Step]:
        """Compare pages of runs until the slice is over."""
        self.phase = Phase.REACTIVE
        while not work.over and self.has_reactive_work():
            work.spend()
            yield self.count(self._compare_runs())
        self.phase = Phase.CLEANUP if self._finishing else Phase.ARRIVING

    def finish(self) -> Iterator[Step]:
        """Everything that was spilled and not yet compared, then unmatched rows."""
        self.phase = Phase.CLEANUP
        self._finishing = True
        if any(self._runs):
            for side in self._sides:
                if len(side):
                    self._flush(side.side)
        return self.resume()

    def has_reactive_work(self) -> bool:
        """Are there runs that were not compared with each other?"""
        return self._pair is not None or self._next_pair() is not None

    def resume(self) -> Iterator[Step]:
        """Go on with the arriving batch, or with the clean-up."""
        while self._arriving is not None:
            yield self.count(self._compare_arriving(self._arriving))
        while self._finishing:
            if self.has_reactive_work():
                yield self.count(self._compare_runs())
            elif self._unmatched.side < len(self._sides):
                yield self.count(self._next_unmatched(self._unmatched))
            else:
                return

    # Arriving

    def _compare_arriving(self, arriving: Arriving) -> Step:
        """One tile of the piece in hand, or the next piece into memory."""
        other = self._sides[1 - arriving.side]
        if arriving.piece is None:
            if arriving.offset >= arriving.batch.num_rows:
                self._arriving = None
                self._working.clear()
                return None
            self._insert_piece(arriving)
        assert arriving.piece is not None
        left, right = self._sides
        if arriving.found is None:
            first, stop = arriving.piece
            tile = arriving.tiles.next(stop - first, len(other), self._tile_pairs)
            if tile is None:
                arriving.piece = None
                return None
            here, there = tile[0] + first, tile[1]
            i, j = (here, there) if arriving.side == 0 else (there, here)
            arriving.found = self._candidates(left.keys, i, right.keys, j)
        return self._settle_some(arriving, (left.rows, right.rows), (left.matched, right.matched))

    def _insert_piece(self, arriving: Arriving) -> None:
        """As many of the remaining rows as fit; when not even one does, make room."""
        mine = self._sides[arriving.side]
        count = arriving.batch.num_rows - arriving.offset
        while True:
            stop = arriving.offset + count
            keys = arriving.keys.slice(arriving.offset, stop) if arriving.keys is not None else None
            batch = arriving.batch.slice(arriving.offset, count)
            first = len(mine)
            try:
                mine.insert(batch, keys, arrival=self.context.ticks.upcoming(count))
            except BudgetExceeded:
                if count > 1:
                    count //= 2
                else:
                    self._flush_larger(batch_nbytes(batch))
                    count = arriving.batch.num_rows - arriving.offset
                continue
            self.context.ticks.pass_by(count)
            arriving.offset, arriving.piece, arriving.tiles = stop, (first, first + count), Tiles()
            return

    # Disk

    def _flush_larger(self, needed_bytes: int) -> None:
        """Send the side that holds more to disk; an error when there is nothing to send."""
        larger = max(self._sides, key=lambda side: (side.nbytes, len(side)))
        if len(larger) == 0:
            larger = max(self._sides, key=len)
        if len(larger) == 0:
            raise row_too_large(needed_bytes, self._memory, "the rows of a join")
        self._flush(larger.side)

    def _flush(self, side: int) -> None:
        for each in self._sides:
            each.drop_page()
        self._sides[side].spill(departure=self.context.ticks.tick())

    def _next_pair(self) -> RunPair | None:
        """The next two runs to compare; pairs of which all rows met in memory are marked on the way."""
        while (found := self._done.first_open(len(self._runs[0]), len(self._runs[1]))) is not None:
            left, right = self._runs[0][found[0]], self._runs[1][found[1]]
            if not joined.resided_together((left.last_arrival, left.departure), (right.last_arrival, right.departure)):
                return RunPair(*found)
            self._done.mark(found[0], found[1] + 1)
        return None

    def _compare_runs(self) -> Step:
        """One tile of two pages."""
        pair = self._pair or self._next_pair()
        assert pair is not None
        self._pair = pair
        runs = (self._runs[0][pair.run_0], self._runs[1][pair.run_1])
        left = self._sides[0].read(runs[0], pair.page_0)
        if left is None:
            self._done.mark(pair.run_0, pair.run_1 + 1)
            self._pair = None
            return None
        right = self._sides[1].read(runs[1], pair.page_1)
        if right is None:
            pair.page_0, pair.page_1 = pair.page_0 + 1, 0
            return None
        if pair.found is None:
            tile = pair.tiles.next(len(left[0]), len(right[0]), self._tile_pairs)
            if tile is None:
                pair.page_1, pair.tiles = pair.page_1 + 1, Tiles()
                return None
            pair.found = self._unmet_candidates(runs, left[0], right[0], *tile)
        zero, one = self._sides
        matched = (zero.matched_on_disk(left[1], len(left[0])), one.matched_on_disk(right[1], len(right[0])))
        step = self._settle_some(pair, (left[0].rows, right[0].rows), matched)
        zero.mark(left[1], matched[0])
        one.mark(right[1], matched[1])
        return step

    def _unmet_candidates(
        self, runs: tuple[SpilledRun, SpilledRun], left: Page, right: Page, i: Int64, j: Int64
    ) -> Candidates | None:
        """Candidates among the pairs of a tile that never were in memory together."""
        met = joined.resided_together((left.arrivals[i], runs[0].departure), (right.arrivals[j], runs[1].departure))
        return self._candidates(left.keys, i[~met], right.keys, j[~met])

    # What goes out

    def _candidates(self, left: Keys | None, i: Int64, right: Keys | None, j: Int64) -> Candidates | None:
        self.context.counters.comparisons += len(i)
        if self._key is not None and len(i):
            assert left is not None
            assert right is not None
            holds = self._key.holds(left, i, right, j)
            i, j = i[holds], j[holds]
        return (i, j) if len(i) else None

    def _settle_some(
        self, task: Arriving | RunPair, rows: tuple[Rows, Rows], matched: tuple[Bool | None, Bool | None]
    ) -> Step:
        """As many of the task's candidates as may go out at once."""
        if task.found is None:
            return None
        (i, j), most = task.found, self.context.output_rows
        task.found = (i[most:], j[most:]) if len(i) > most else None
        return self._settle(rows, i[:most], j[:most], matched)

    def _next_unmatched(self, at: Unmatched) -> Step:
        """The next rows that never matched: from the runs page by page, or from memory if nothing was spilled."""
        if not self.plan.how.gives_unmatched(at.side):
            at.side += 1
            return None
        if any(self._runs):
            return self._unmatched_on_disk(at)
        side = self._sides[at.side]
        flags = side.matched
        assert flags is not None
        if at.position >= len(side):
            at.side, at.position = at.side + 1, 0
            return None
        stop = min(len(side), at.position + self.context.output_rows)
        numbers = at.position + np.flatnonzero(~flags[at.position : stop])
        at.position = stop
        return one_sided(at.side, side.rows, numbers)

    def _unmatched_on_disk(self, at: Unmatched) -> Step:
        side, runs = self._sides[at.side], self._runs[at.side]
        if at.run >= len(runs):
            at.side, at.run, at.page, at.position = at.side + 1, 0, 0, 0
            return None
        read = side.read(runs[at.run], at.page)
        if read is None:
            at.run, at.page, at.position = at.run + 1, 0, 0
            return None
        page, first = read
        if at.position >= len(page):
            at.page, at.position = at.page + 1, 0
            return None
        flags = side.matched_on_disk(first, len(page))
        assert flags is not None
        stop = min(len(page), at.position + self.context.output_rows)
        numbers = at.position + np.flatnonzero(~flags[at.position : stop])
        at.position = stop
        return one_sided(at.side, page.rows, numbers)

    # State

    def held_bytes(self) -> int:
        """Rows in memory, pages, and what a step works with."""
        keys = self._arriving.keys if self._arriving is not None else None
        tile = 2 * 8 * self._tile_pairs
        held = sum(side.nbytes + side.page_nbytes for side in self._sides)
        return held + tile + (keys.nbytes if keys is not None else 0)

    def close(self) -> None:
        """Give memory back and remove the runs."""
        for side in self._sides:
            side.close()
        self._arriving = self._pair = None
        self._working.clear()
        self._tile.clear()

    def snapshot(self) -> Snapshot:
        """Rows in memory, runs, and where the work stands; keys are made again from the rows."""
        saved = Snapshot(
            values={
                "phase": self.phase.value,
                "finishing": self._finishing,
                "unmatched": asdict(self._unmatched),
                "pair": None,
                "arriving": None,
            },
            arrays={"met": self._done.met.copy()},
        )
        for side in self._sides:
            side.save_all(saved)
        if self._pair is not None:
            saved.values["pair"] = asdict(self._pair) | {"found": None}
            _save_candidates(saved, "pair", self._pair)
        if self._arriving is not None:
            task = self._arriving
            _save_candidates(saved, "arriving", task)
            place = {"side": task.side, "offset": task.offset, "piece": task.piece, "tiles": asdict(task.tiles)}
            saved.values["arriving"] = place
            saved.tables["arriving"] = pa.Table.from_batches([task.batch])
        return saved

    def restore(self, snapshot: Snapshot) -> None:
        """Rows into memory, runs into the spill directory, and the work in hand."""
        values = snapshot.values
        self.phase, self._finishing = Phase(values["phase"]), values["finishing"]
        self._unmatched = Unmatched(**values["unmatched"])
        self._done = joined.RunPairs(snapshot.arrays["met"])
        if values["pair"] is not None:
            again = {"tiles": Tiles(**values["pair"]["tiles"]), "found": _load_candidates(snapshot, "pair")}
            self._pair = RunPair(**(values["pair"] | again))
        for side in self._sides:
            side.load_all(snapshot)
        if values["arriving"] is not None:
            batch, found = one_batch(snapshot.tables["arriving"]), _load_candidates(snapshot, "arriving")
            self._restore_arriving(values["arriving"], batch, found)

    def _restore_arriving(self, values: dict[str, Any], batch: pa.RecordBatch, found: Candidates | None) -> None:
        keys = self._key.encode(values["side"], batch) if self._key is not None else None
        self._working.reserve(keys.nbytes if keys is not None else 0)
        piece = tuple(values["piece"]) if values["piece"] is not None else None
        tiles = Tiles(**values["tiles"])
        self._arriving = Arriving(values["side"], batch, keys, values["offset"], piece, tiles, found)


def _reading_share(context: Context) -> float:
    """The part for two pages; a page of wide rows is a single one."""
    limit = context.budget.limit.bytes
    return _READING_SHARE if limit is None else two_pages_share(limit, context.row_nbytes, _READING_SHARE)


def _tile_pairs(memory_bytes: int | None) -> int:
    """Pairs compared in one step: an eighth of the memory for their row numbers, up to what is fast."""
    if memory_bytes is None:
        return _MOST_TILE_PAIRS
    return int(np.clip(memory_bytes // 8 // 16, 1, _MOST_TILE_PAIRS))


def _save_candidates(snapshot: Snapshot, name: str, task: Arriving | RunPair) -> None:
    if task.found is not None:
        snapshot.arrays[f"{name}-found-0"], snapshot.arrays[f"{name}-found-1"] = task.found


def _load_candidates(snapshot: Snapshot, name: str) -> Candidates | None:
    if f"{name}-found-0" not in snapshot.arrays:
        return None
    return snapshot.arrays[f"{name}-found-0"], snapshot.arrays[f"{name}-found-1"]
