"""How the memory of a partitioned table is divided, and how large pages and buffers are."""

from __future__ import annotations

import numpy as np

from earlyjoin.algorithms.hash_join.settings import PAGE_ROWS, HashSettings
from earlyjoin.algorithms.hash_join.table.disk_part import Words
from earlyjoin.algorithms.hash_join.table.memory_part import MemoryPart
from earlyjoin.algorithms.wide_rows import two_pages_share
from earlyjoin.state.budget import Budget, MemoryLimit, all_but, fraction_of

_SMALL_BYTES = 4 * 2**20
_SORTED_PAGES = 4
_SMALL_PAGE_BYTES = 2**14


def split_memory(budget: Budget, settings: HashSettings, row_nbytes: int = 0) -> tuple[Budget, Budget]:
    """Memory for reading pages, and the rest: of a memory in rows all but a few pages are for the table.

    Two pages must fit, one of each side, also when rows are so wide (``row_nbytes``) that a page is a single one.

    A memory that has become so large is divided as one that was so large from the start: a state can be restored.
    What is booked already (row numbers of the output) comes out of the rest: a full table must leave to reading all
    that it was promised, because pages are as large as that allows.
    """
    booked = budget.used_bytes

    def reading(whole: MemoryLimit) -> MemoryLimit:
        if whole.rows is not None:
            pages = settings.pages_read * (settings.page_rows or PAGE_ROWS)
            fraction = min(whole.rows // 4, max(pages, whole.rows // 256)) / whole.rows
        else:
            fraction = 1 / 4 if (whole.bytes or 0) < _SMALL_BYTES or settings.page_part > 2 else 1 / 8
            fraction = two_pages_share(whole.bytes or 1, row_nbytes, fraction)
        return fraction_of(whole, fraction, least_rows=2)

    def rest(whole: MemoryLimit) -> MemoryLimit:
        beside = all_but(whole, reading(whole))
        return beside if beside.bytes is None else fraction_of(beside, 1 - booked / max(1, beside.bytes))

    return budget.part(reading), budget.part(rest)


def page_bytes(part: MemoryPart, words: Words | None) -> int | None:
    """A sorted run has several pages: a merge has a page of every run in memory, and pages cost time."""
    return None if words is None else max(_SMALL_PAGE_BYTES, part.nbytes // _SORTED_PAGES)


def buffer_size(memory: Budget, partitions: int, page_rows: int) -> tuple[int, int]:
    """Rows and bytes of a page buffer: a page if memory is counted in rows, else at most a quarter for all of them."""
    if memory.limit.rows is not None:
        return min(page_rows, memory.limit.rows // (8 * partitions)), np.iinfo(np.int64).max
    return np.iinfo(np.int64).max, (memory.limit.bytes or 0) // (8 * partitions)


def rows_at_once(part: MemoryPart, pages: Budget) -> int:
    """Rows to gather for writing at once, so that the copy takes about half of the memory for reading."""
    if pages.limit.bytes is None:
        return 65536
    return max(1, int(pages.limit.bytes / 2 / max(1.0, part.nbytes / max(1, len(part)))))
