"""How the memory of a partitioned table is divided, and how large pages and buffers are."""

from __future__ import annotations

import numpy as np

from earlyjoin.algorithms.hashing.disk_part import Words
from earlyjoin.algorithms.hashing.memory_part import MemoryPart
from earlyjoin.algorithms.hashing.settings import PAGE_ROWS, HashSettings
from earlyjoin.state.budget import Budget

_SMALL_BYTES = 4 * 2**20
_SORTED_PAGES = 4
_SMALL_PAGE_BYTES = 2**14


def split_memory(budget: Budget, settings: HashSettings) -> tuple[Budget, Budget]:
    """Memory for reading pages, and the rest: of a memory in rows all but a few pages are for the table."""
    limit = budget.limit
    if limit.rows is not None:
        pages = settings.pages_read * (settings.page_rows or PAGE_ROWS)
        return budget.split(min(limit.rows // 4, max(pages, limit.rows // 256)) / limit.rows, least_rows=2)
    return budget.split(1 / 4 if (limit.bytes or 0) < _SMALL_BYTES or settings.page_part > 2 else 1 / 8)


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
