"""Gathering columns side by side: Arrow's kernels let go of the interpreter, so a second core can take half of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, lru_cache

import pyarrow as pa

_LEAST_ROWS = 8192
"""Below this a hand-over to another thread costs more than it gains."""
_MOST_THREADS = 4
POOL_NAME = "earlyjoin-gather"
"""What the threads of the pool are called; they stay as long as the process does."""


def gather(columns: Sequence[Callable[[], pa.Array]], rows: int) -> list[pa.Array]:
    """The arrays that the callables make, in their order; large ones are made by several threads."""
    if rows < _LEAST_ROWS or len(columns) < 2 or _cores() < 2:
        return [make() for make in columns]
    threads = min(_MOST_THREADS, _cores(), len(columns))
    # This thread takes columns from the front, the others from the back: they meet wherever the work is even.
    todo = list(enumerate(columns))
    done: list[pa.Array | None] = [None] * len(columns)

    def work(position: int) -> None:
        while True:
            try:
                number, make = todo.pop(position)  # atomic: no column is taken twice
            except IndexError:
                return
            done[number] = make()

    helpers: list[Future[None]] = [_pool(os.getpid()).submit(work, -1) for _ in range(threads - 1)]
    try:
        work(0)
    finally:
        # All of them, also after an error: none may go on reading columns that are about to grow.
        wait(helpers)
    for helper in helpers:
        helper.result()
    return done


@cache
def _cores() -> int:
    return os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool(_process: int) -> ThreadPoolExecutor:
    """Threads of this process: a forked child has none and makes its own."""
    return ThreadPoolExecutor(_MOST_THREADS - 1, thread_name_prefix=POOL_NAME)
