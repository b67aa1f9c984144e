"""How much of both sides the look reads, and when it is not worth it.

The least bytes of both files are looked for that give the rows wanted. Before anything was joined, the result is taken
to have a row for each row of the larger side, as where a key meets its references, times the parts of both sides that
pass their filters, which a file of each is asked for: only the columns of the filter are read. Afterwards the rows
found tell. Groups are asked for by key, once, for a few more keys than rows are wanted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.spark.early.stretches import Stretches
from earlyjoin.spark.inspecting.scans import ROW
from earlyjoin.spark.session import functions

FIRST_SHARE = 0.1
"""Of the bytes of both tables: what may be read while too little was found to tell anything."""
MOST_SHARE = 1 / 3
"""What may be read where there is reason to think that it will be enough."""
SMALL_NBYTES = 2**20
"""Tables of no more than this together are read as a whole, if need be."""
SENT_NBYTES = 8 * 2**20
"""Of files, behind the filter: what may be sent to every task."""
PROBED_ROWS = 1_000_000
"""Of a file, at most."""
EVIDENCE = 5
"""Rows found that tell how many more there will be."""
_MARGIN = 1.5
_KEYS_MARGIN = 3.0
"""Rows of the other side that are read for each row wanted, where groups are asked for by key."""
_BLIND_GAIN = 16.0
"""How many times as many pairs of rows to look at while too little was found to tell."""


@dataclass(frozen=True, slots=True)
class Room:
    """Bounds of what one side reads at once."""

    least_rows: int
    most_rows: tuple[int, int]
    """Of each side: what the memory has room for, and no stretch needs more."""
    most_here: tuple[int, int]
    """The same where rows are read without Spark, and measured on the way."""
    dense: bool
    """Does the condition hold for many pairs of rows? Then the least will do."""
    here: bool = False
    """Are both sides read without Spark? That takes a part of what reading takes Spark."""


def probe(frame: Any, side: Stretches, *, plain: bool = False) -> None:
    """Find out which part of the rows of its first file pass the filter of a side; runs a job.

    ``plain``: these rows can be read without Spark, now that it is known which.
    """
    # Their numbers, not how many: an aggregation would be a shuffle.
    first = side.contains(0, 1) & (functions().col(ROW) < functions().lit(PROBED_ROWS))
    found = frame.where(first).select(ROW).toArrow().column(0).to_numpy()
    side.passing = len(found) / (int(found.max()) + 1) if len(found) else 0.0
    side.probed = True
    if plain and len(found):
        side.know(np.sort(found).astype(np.int64), int(found.max()) + 1)


def first_counts(sides: Sequence[Stretches], wanted: int, room: Room, how: JoinType) -> list[int] | str:
    """How many stretches of each side to begin with; or why none."""
    whole = float(sum(side.nbytes for side in sides))
    larger = max(side.all_rows for side in sides)
    result = larger * sides[0].passing * sides[1].passing
    pairs = 1.0 if room.dense else min(1.0, _MARGIN * wanted / max(result, 1e-9))
    parts = [math.sqrt(pairs * sides[1 - at].nbytes / sides[at].nbytes) for at in (0, 1)]
    for at in (0, 1):
        if parts[at] > 1:
            parts[at], parts[1 - at] = 1.0, min(1.0, pairs)
    if any(side.by_key for side in sides):
        return _by_key(sides, wanted, room)
    for at, side in enumerate(sides):
        side.aim(0.0 if room.dense else parts[at], room.least_rows, room.most_rows[at], room.most_here[at])
    counts = [side.first for side in sides]
    if whole <= SMALL_NBYTES:
        return counts
    probed = any(side.probed for side in sides)
    needed = sum(part * side.nbytes for part, side in zip(parts, sides, strict=True)) if probed else 0.0
    # Where a side can be sent to every task, Spark's own join gives a few rows for not much more than reading it.
    likely = probed and side_to_send(sides, how) is None
    cost, share = max(needed, _cost(sides, counts)), MOST_SHARE if likely or room.here else FIRST_SHARE
    return counts if cost <= share * whole else f"enough rows would take {cost / whole:.0%} of the inputs"


def _by_key(sides: Sequence[Stretches], wanted: int, room: Room) -> list[int] | str:
    """As many rows as there should be keys; they decide what is read of the other side."""
    for at, side in enumerate(sides):
        if not side.by_key:
            rows = round(_KEYS_MARGIN * wanted / max(side.passing, 1e-9))
            most = room.most_rows[at]
            side.aim(rows / side.all_rows, min(rows, most), most, room.most_here[at])
            if _cost([side], [side.first]) > FIRST_SHARE * sum(one.nbytes for one in sides):
                return "enough keys would take too large a part of the inputs"
    return [side.first for side in sides]


def side_to_send(sides: Sequence[Stretches], how: JoinType) -> int | None:
    """The side that is small behind its filter, which Spark cannot know, if its join can send it to every task."""
    may = {JoinType.INNER: (0, 1), JoinType.RIGHT: (0,), JoinType.FULL: ()}.get(how, (1,))
    # No row of the first file passing is no evidence: a filter may follow the order of the files.
    small = [at for at in may if sides[at].passing and sides[at].probed and _passing_nbytes(sides[at]) <= SENT_NBYTES]
    return min(small, key=lambda at: _passing_nbytes(sides[at]), default=None)


def _passing_nbytes(side: Stretches) -> float:
    return side.passing * side.nbytes


def next_counts(sides: Sequence[Stretches], wanted: int, found: int) -> list[int] | str:
    """The same after something was joined, from the rows found."""
    if any(side.by_key for side in sides):
        return "keys are looked up once"
    whole = float(sum(side.nbytes for side in sides))
    gain = _MARGIN * wanted / found if found >= EVIDENCE else _BLIND_GAIN
    counts = _grown(sides, gain)
    if counts == [side.taken for side in sides]:
        return "all that can be read at little cost was read"
    cost, share = _cost(sides, counts), MOST_SHARE if found >= EVIDENCE else FIRST_SHARE
    if cost > share * whole and whole > SMALL_NBYTES:
        return f"enough rows would take {cost / whole:.0%} of the inputs"
    return counts


def _grown(sides: Sequence[Stretches], gain: float) -> list[int]:
    """Stretches of both sides that make so many times as many pairs of rows, at the least cost."""
    taken = [side.taken for side in sides]
    costs = [max(1.0, side.cost_nbytes(count)) for side, count in zip(sides, taken, strict=True)]
    counts = list(taken)
    for at in sorted((0, 1), key=lambda one: sides[one].most / taken[one]):
        # What the side with less to give cannot do, the other has to.
        done = math.prod(counts) / math.prod(taken)
        share = gain / done if done > 1 else math.sqrt(gain * costs[1 - at] / costs[at])
        counts[at] = min(sides[at].most, max(taken[at], math.ceil(taken[at] * share)))
    return counts


def _cost(sides: Sequence[Stretches], counts: Sequence[int]) -> float:
    return sum(side.cost_nbytes(count) for side, count in zip(sides, counts, strict=True))
