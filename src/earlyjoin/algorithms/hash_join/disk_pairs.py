"""What tasks on disk and the clean-up find: pairs that the duplicate rule does not know, and rows without a match."""

from __future__ import annotations

import numpy as np

from earlyjoin.algorithms.hash_join.join_state import JoinState
from earlyjoin.algorithms.hash_join.rules import Stamps
from earlyjoin.algorithms.hash_join.table.chain_probe import ChainProbe
from earlyjoin.algorithms.hash_join.table.disk_part import DiskPage
from earlyjoin.algorithms.hash_join.table.memory_part import MemoryPart
from earlyjoin.algorithms.matching.settlement import one_sided
from earlyjoin.algorithms.protocol import Step
from earlyjoin.predicates.encoding.keys import Int64


def probe_page(
    state: JoinState, probe: ChainProbe, side: int, partition: int, page: DiskPage, *, before: int | None = None
) -> Step:
    """Some new pairs of a page of the other side's disk and the memory part of ``side``."""
    part, other = state.table.parts[side][partition], 1 - side
    keys = page.keys.without(page.matched if state.expendable[other] else None)
    i, j, comparisons = probe.next(part, keys, state.pairs, before=before)
    state.context.counters.comparisons += comparisons
    return settle_found(state, side, partition, page, i, j)


def settle_found(state: JoinState, side: int, partition: int, page: DiskPage, i: Int64, j: Int64) -> Step:
    """Settle the new ones among pairs of a page and the memory part of ``side``."""
    part, other = state.table.parts[side][partition], 1 - side
    i, j = _unmet(state, side, partition, page, i, j)
    if not len(i):
        return None
    step = state.settle_pairs(other, page.rows, i, page.matched, part.rows, j, part.matched)
    state.table.bury(side, partition)
    state.table.files[other].mark(page)
    return step


def _unmet(
    state: JoinState, side: int, partition: int, page: DiskPage | MemoryPart, i: Int64, j: Int64
) -> tuple[Int64, Int64]:
    """Pairs (probing row, row of the memory part of ``side``) that the duplicate rule does not know."""
    if not len(i):
        return i, j
    part = state.table.parts[side][partition]
    probing = _page_stamps(page, i) if isinstance(page, DiskPage) else _part_stamps(page, i)
    stored = _part_stamps(part, j)
    left, right = (stored, probing) if side == 0 else (probing, stored)
    new = ~state.rule.joined(partition, left, right)
    return i[new], j[new]


def probe_memory(state: JoinState, probe: ChainProbe, side: int, partition: int) -> Step:
    """Some new pairs of the memory part of ``side`` and that of the other side, whose rows probe."""
    part, probing = state.table.parts[side][partition], state.table.parts[1 - side][partition]
    keys = probing.keys
    assert keys is not None
    keys = keys.without(probing.matched if state.expendable[1 - side] else None)
    i, j, comparisons = probe.next(part, keys, state.pairs)
    state.context.counters.comparisons += comparisons
    i, j = _unmet(state, side, partition, probing, i, j)
    if not len(i):
        return None
    step = state.settle_pairs(1 - side, probing.rows, i, probing.matched, part.rows, j, part.matched)
    for s in range(2):
        state.table.bury(s, partition)
    return step


def unmatched_in_memory(
    state: JoinState, side: int, partition: int, start: int, *, stop_stripe: int | None = None
) -> tuple[Step, int]:
    """Rows of a memory part (of the stripes before ``stop_stripe``) that have no match, from ``start`` on.

    Also where to go on, which is -1 at the end.
    """
    part = state.table.parts[side][partition]
    if not state.plan.how.gives_unmatched(side) or part.matched is None or start >= len(part):
        return None, -1
    stop = min(len(part), start + state.context.output_rows)
    unmatched = ~part.matched[start:stop]
    if stop_stripe is not None:
        unmatched &= state.table.striping.before(part, stop_stripe, start, stop)
    return one_sided(side, part.rows, start + np.flatnonzero(unmatched)), stop


def _part_stamps(part: MemoryPart, index: Int64) -> Stamps:
    """Stamps of chosen rows of a memory part."""
    return Stamps(part.arrivals, part.departures, part.labels).take(index)


def _page_stamps(page: DiskPage, index: Int64) -> Stamps:
    """Stamps of chosen rows of a page."""
    labels = np.full(len(index), page.label, dtype=np.int64)
    return Stamps(page.arrivals[index], page.departures[index], labels)
