"""The state of a block sweep in a snapshot: which pages are in memory and what of them is still in an area.

Rows and keys are not saved: the pages are read again, and the elements that were left in an area are inserted again.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from earlyjoin.algorithms.merge_join.block_query import BlockQuery
from earlyjoin.algorithms.merge_join.block_sweep import BlockSweep, Debt
from earlyjoin.algorithms.merge_join.blocks import Block
from earlyjoin.algorithms.merge_join.multi_merge import MultiMerge
from earlyjoin.algorithms.merge_join.ordered_sweep import OrderedSweep
from earlyjoin.algorithms.window_merge.groups import GroupJoin
from earlyjoin.state.snapshot import Snapshot

MemorySweep = BlockSweep | OrderedSweep | GroupJoin
"""What joins the rows in memory."""
MergeSweep = BlockSweep | OrderedSweep | MultiMerge
"""What joins runs while they are merged."""
Sweep = MemorySweep | MergeSweep


def save_sweep(sweep: Sweep, snapshot: Snapshot, name: str) -> dict[str, Any]:
    """Put it into a snapshot; returns the plain values that ``load_sweep`` needs."""
    if isinstance(sweep, GroupJoin):
        return sweep.save()
    if not isinstance(sweep, BlockSweep):
        return sweep.save(snapshot, name)
    blocks = sweep.held_blocks
    for number, block in enumerate(blocks):
        snapshot.arrays[f"{name}-swept-{number}"] = block.swept
        if block.area is not None:
            snapshot.arrays[f"{name}-area-{number}"] = np.sort(block.area.handles)
    values: dict[str, Any] = {
        "at": sweep.at,
        "paying": sweep.paying,
        "debts": [asdict(debt) for debt in sweep.debts],
        "late": [list(page) for page in sweep.late],
        "held": len(sweep.held),
        "leaving_at": sweep.leaving_at,
        "blocks": [_save_block(block) for block in blocks],
        "query": None,
    }
    if sweep.query is not None:
        query = sweep.query
        opponents = [_place(block, blocks) for block in query.opponents]
        values["query"] = {"opponents": opponents, "next": query.next, "row": query.row}
    if sweep.found is not None:
        snapshot.arrays[f"{name}-found-0"], snapshot.arrays[f"{name}-found-1"] = sweep.found
    return values


def load_sweep(sweep: Sweep, snapshot: Snapshot, name: str, values: dict[str, Any]) -> None:
    """Bring a new sweep over the same sequences to where the saved one stood."""
    if isinstance(sweep, GroupJoin):
        sweep.load(values)
        return
    if not isinstance(sweep, BlockSweep):
        sweep.load(snapshot, name, values)
        return
    sweep.at, sweep.paying, sweep.leaving_at = values["at"], values["paying"], values["leaving_at"]
    sweep.debts = [Debt(**debt) for debt in values["debts"]]
    sweep.late = [(page[0], page[1]) for page in values["late"]]
    held, asking = values["held"], values["query"] is not None
    blocks = []
    for number, saved in enumerate(values["blocks"]):
        live = snapshot.arrays.get(f"{name}-area-{number}")
        swept = snapshot.arrays[f"{name}-swept-{number}"]
        blocks.append(sweep.reload(**saved, swept=swept, live=live, with_keys=asking and number == held))
    sweep.held = blocks[:held]
    sweep.leaving = blocks[held + asking :]
    if asking:
        query = values["query"]
        opponents = [blocks[number] for number in query["opponents"]]
        sweep.query = BlockQuery(blocks[held], opponents, query["next"], query["row"])
    if f"{name}-found-0" in snapshot.arrays:
        sweep.found = (snapshot.arrays[f"{name}-found-0"], snapshot.arrays[f"{name}-found-1"])


def _save_block(block: Block) -> dict[str, int]:
    return {"sequence": block.sequence, "page": block.page, "start": block.start, "written": block.written}


def _place(block: Block, blocks: list[Block]) -> int:
    return next(number for number, other in enumerate(blocks) if other is block)
