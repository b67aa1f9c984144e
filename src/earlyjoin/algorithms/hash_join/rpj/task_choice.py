"""Which task on disk to run next: the one of the highest expected output rate Er / Et (RPJ figure 3, section 5.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from earlyjoin.algorithms.hash_join.rpj.formulas import PageCosts, dd_cost, md_cost
from earlyjoin.predicates.encoding.keys import Int64


class ChosenTask(NamedTuple):
    """A task on one partition: md with the memory partition of ``side``, or dd when ``side`` is None."""

    side: int | None
    partition: int


def best_task(
    memory_pairs: Int64,
    disk_pairs: Int64,
    runs: Int64,
    pages: Int64,
    merged: Int64,
    *,
    costs: PageCosts,
    wait: float = 0.0,
    md: bool = True,
    dd: bool = True,
) -> ChosenTask | None:
    """The task of the highest rate, or None when no task is expected to find anything: the reactive stage is over.

    ``memory_pairs[i, j]`` and ``disk_pairs[j]`` are Er; ``runs[i, j]`` and ``pages[i, j]`` those of the disk,
    ``merged[j]`` the pages that a dd-task would read. ``wait`` is added to Et: the time until the next task can begin.
    ``md`` and ``dd`` say which kinds are allowed (RPJ-md, RPJ-dd). In figure 3 a later task must be strictly better:
    of equals the lowest partition goes first, md before dd.
    """
    rates = np.zeros((3, disk_pairs.shape[0]))
    if md:
        for side in (0, 1):
            rates[side] = memory_pairs[side] / np.maximum(md_cost(runs[1 - side], pages[1 - side], costs) + wait, 1e-9)
    if dd:
        rates[2] = disk_pairs / np.maximum(dd_cost(merged, costs) + wait, 1e-9)
    if not (rates > 0).any():
        return None
    partition, kind = divmod(int(np.argmax(rates.T)), 3)
    return ChosenTask(None if kind == 2 else kind, partition)
