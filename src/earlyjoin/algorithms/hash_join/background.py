"""EHJ's background process (section 4.5): a thread that probes an R partition in memory while rows keep arriving.

::

    thread   read a page of S's file ──▶ probe the R partition ──▶ queue ──▶ wait until it is settled ──▶ next page
    main     arrivals as ever; between two steps: a finding from the queue ──▶ duplicate rule, settle, out

The thread reads, makes keys and compares; all else (rule, flags, counters, output) stays with the main thread. A lock
guards the memory part that is probed: inserts move its arrays. It holds one page at a time, inside the budget. The same
work can be done step by step (:class:`MemoryDiskTask`), which is what a virtual clock gets; a saved state is a task
of that kind.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from earlyjoin.algorithms.hash_join.disk_pairs import settle_found
from earlyjoin.algorithms.hash_join.join_state import JoinState
from earlyjoin.algorithms.hash_join.table.chain_probe import ChainProbe
from earlyjoin.algorithms.hash_join.table.disk_part import DiskPage, DiskRun, PageReader
from earlyjoin.algorithms.hash_join.tasks import MemoryDiskTask
from earlyjoin.algorithms.protocol import Step
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.counters import Counters

_WAIT_S = 0.005
"""How long a step waits for the thread."""


@dataclass(slots=True)
class Finding:
    """What the thread found in one go: pairs of a page and the memory part."""

    page: DiskPage | None
    """None: all runs are through."""
    i: Int64
    j: Int64
    comparisons: int
    run: int = 0
    first: int = 0
    """The page of the run to go on with: that of these pairs, or the next one."""
    probe: ChainProbe = field(default_factory=ChainProbe)
    """How far the probe had come behind these pairs."""


class BackgroundProbe(MemoryDiskTask):
    """A memory-disk task whose reading and probing are done by a thread."""

    def __init__(self, state: JoinState, side: int, partition: int, finished: Callable[[MemoryDiskTask], None]) -> None:
        super().__init__(state, side, partition, finished)
        self._findings: queue.Queue[Finding | BaseException] = queue.Queue(maxsize=1)
        self._settled = threading.Semaphore(0)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._counters = Counters()
        """What the thread counts, taken over with each finding."""
        self._scratch = state.table.memory.account("row numbers of the background process")

    @classmethod
    def start(
        cls, state: JoinState, side: int, partition: int, finished: Callable[[MemoryDiskTask], None]
    ) -> MemoryDiskTask:
        """Begin in a thread, or step by step where memory has no room for the thread's row numbers."""
        task = cls(state, side, partition, finished)
        if task._scratch.try_reserve(2 * 3 * 8 * state.context.output_rows):
            return task
        return MemoryDiskTask(state, side, partition, finished, started_at=task.started_at, labels=task.labels)

    def guard(self, side: int, partition: int) -> AbstractContextManager[Any]:
        """Hold this while the memory part is probed or changed."""
        return self._lock if self.protects(side, partition) else nullcontext()

    def ready(self) -> bool:
        """Is a finding waiting?"""
        return not self._findings.empty()

    # The main thread

    def step(self) -> Step:
        """Settle the next finding; None when there is none yet."""
        if self._thread is None:
            self._run_thread()
        try:
            found = self._findings.get(timeout=_WAIT_S)
        except queue.Empty:
            return None
        if isinstance(found, BaseException):
            raise found
        self._take_counters(found)
        if found.page is None:
            self._run = len(self.labels)
            self.stop()
            self._finished(self)
            return None
        step = settle_found(self._state, self.side, self.partition, found.page, found.i, found.j)
        self._run, self._page, self._probe = found.run, found.first, found.probe
        self._settled.release()
        return step

    def _take_counters(self, found: Finding) -> None:
        counters = self._state.context.counters
        counters.comparisons += found.comparisons
        for name in ("pages_read", "tuples_read", "bytes_read", "seeks"):
            setattr(counters, name, getattr(counters, name) + getattr(self._counters, name))
            setattr(self._counters, name, 0)

    def _run_thread(self) -> None:
        self._stopping.clear()
        self._settled = threading.Semaphore(0)
        self._findings = queue.Queue(maxsize=1)
        self._thread = threading.Thread(target=self._work, args=(self.runs,), name="earlyjoin-background", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a later step starts another where the last settled finding ended."""
        self._stopping.set()
        self._settled.release()
        while self._thread is not None and self._thread.is_alive():
            try:
                self._findings.get(timeout=_WAIT_S)  # it may be waiting to put one in
            except queue.Empty:
                continue
        self._thread = None
        self._findings = queue.Queue(maxsize=1)
        if self.done:
            self._scratch.clear()

    def close(self) -> None:
        """End the thread and give its memory back."""
        self.stop()
        self._scratch.clear()

    def save(self) -> dict[str, Any]:
        """As a task that is done step by step; the thread starts again when it is needed."""
        self.stop()
        return super().save()

    # The thread

    def _work(self, runs: list[DiskRun]) -> None:
        reader = PageReader(self._state.table.files[1 - self.side].counting(self._counters))
        try:
            self._probe_runs(reader, runs)
        except BaseException as error:  # it belongs to whoever waits for findings
            self._put(error)
        finally:
            reader.drop()

    def _probe_runs(self, reader: PageReader, runs: list[DiskRun]) -> None:
        out = np.empty((2, self._state.context.output_rows), dtype=np.int64)
        probe, first = self._probe.copy(), self._page
        for run in range(self._run, len(runs)):
            while (page := reader.read(runs[run], first)) is not None:
                while not probe.over(len(page)):
                    found = self._found(page, probe, out)
                    over = probe.over(len(page))
                    found.run, found.first = run, reader.next_page if over else first
                    found.probe = probe.behind(len(page)) if over else probe.copy()
                    if not self._put(found) or not self._handed_over():
                        return
                first, probe = reader.next_page, probe.behind(len(page))
            first = 0
        nothing = np.empty(0, dtype=np.int64)
        self._put(Finding(None, nothing, nothing, 0))

    def _found(self, page: DiskPage, probe: ChainProbe, out: Int64) -> Finding:
        state, part = self._state, self._state.table.parts[self.side][self.partition]
        keys = page.keys.without(page.matched if state.expendable[1 - self.side] else None)
        with self._lock:
            i, j, comparisons = probe.next(part, keys, out, before=self.started_at)
        return Finding(page, i, j, comparisons)

    def _handed_over(self) -> bool:
        """Wait until the main thread has settled the finding: the page may not change before. False: stop."""
        self._settled.acquire()
        return not self._stopping.is_set()

    def _put(self, found: Finding | BaseException) -> bool:
        while not self._stopping.is_set():
            try:
                self._findings.put(found, timeout=_WAIT_S)
            except queue.Full:
                continue
            return True
        return False
