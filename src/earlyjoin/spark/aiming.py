"""How much of both sides the look reads, and when it is not worth it.

The least bytes of both files are looked for that give the rows wanted. Before anything was joined, the result is taken
to have a row for each row of the larger side, as where a key meets its references, times the parts of both sides that
pass their filters, which a file of each is asked for: only the columns of the filter are read. Afterwards the rows
found tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from earlyjoin.spark.scans import ROW
from earlyjoin.spark.session import functions
from earlyjoin.spark.stretches import Stretches

FIRST_SHARE = 0.1
"""Of the bytes of both tables: what may be read while too little was found to tell anything."""
MOST_SHARE = 1 / 3
"""What may be read where there is reason to think that it will be enough."""
SMALL_NBYTES = 2**20
"""Tables of no more than this together are read as a whole, if need be."""
EVIDENCE = 5
"""Rows found that tell how many more there will be."""
_MARGIN = 1.5
_BLIND_GAIN = 16.0
"""How many times as many pairs of rows to look at while too little was found to tell."""


@dataclass(frozen=True, slots=True)
class Room:
    """Bounds of what one side reads at once."""

    least_rows: int
    most_rows: tuple[int, int]
    """Of each side: what the memory has room for, and no stretch needs more."""
    dense: bool
    """Does the condition hold for many pairs of rows? Then the least will do."""


def probe(frame: Any, side: Stretches) -> None:
    """Find out which part of the rows of its first file pass the filter of a side; runs a job."""
    f = functions()
    row = f.col(ROW)
    found = frame.where(side.contains(0, 1)).agg(f.count(row).alias("rows"), f.max(row).alias("last")).collect()[0]
    if found["rows"]:
        side.passing = found["rows"] / (found["last"] + 1)
        side.all_rows = max(side.all_rows, float(found["last"] + 1))
    else:
        side.passing = 0.0


def first_counts(sides: Sequence[Stretches], wanted: int, room: Room) -> list[int] | str:
    """How many stretches of each side to begin with; or why none."""
    whole = float(sum(side.nbytes for side in sides))
    larger = max(side.all_rows for side in sides)
    result = larger * sides[0].passing * sides[1].passing
    pairs = 1.0 if room.dense else min(1.0, _MARGIN * wanted / max(result, 1e-9))
    parts = [math.sqrt(pairs * sides[1 - at].nbytes / sides[at].nbytes) for at in (0, 1)]
    for at in (0, 1):
        if parts[at] > 1:
            parts[at], parts[1 - at] = 1.0, min(1.0, pairs)
    least = room.least_rows
    for at, side in enumerate(sides):
        side.aim(0.0 if room.dense else parts[at], least, max(1, room.most_rows[at]))
    counts = [side.first for side in sides]
    cost = _cost(sides, counts)
    if whole <= SMALL_NBYTES:
        return counts
    if result < wanted and not room.dense and any(side.can_probe for side in sides):
        return f"their filters leave about {result:,.0f} rows of the result"
    share = MOST_SHARE if any(side.can_probe for side in sides) else FIRST_SHARE
    return counts if cost <= share * whole else f"enough rows would take {cost / whole:.0%} of the inputs"


def next_counts(sides: Sequence[Stretches], wanted: int, found: int) -> list[int] | str:
    """The same after something was joined, from the rows found."""
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
