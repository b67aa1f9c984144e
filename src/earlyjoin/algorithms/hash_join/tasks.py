"""Pieces of disk work that can be interrupted after any step: what reactive policies choose from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from earlyjoin.algorithms.hash_join.disk_pairs import probe_page
from earlyjoin.algorithms.hash_join.join_state import JoinState
from earlyjoin.algorithms.hash_join.table.chain_probe import ChainProbe
from earlyjoin.algorithms.hash_join.table.disk_part import DiskRun
from earlyjoin.algorithms.protocol import Step


class DiskWork(ABC):
    """Work on disk in bounded steps. Between two of them anything may arrive, and a snapshot may be taken."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Is there nothing left to do?"""

    @abstractmethod
    def step(self) -> Step:
        """A bounded piece of the work."""

    @abstractmethod
    def save(self) -> dict[str, Any]:
        """Plain values for a snapshot."""

    @property
    def nbytes(self) -> int:
        """Bytes really held beside the table."""
        return 0

    def close(self) -> None:  # noqa: B027 - most work holds nothing
        """Let go of threads and memory, and remove what is half written. Idempotent."""


class Task(DiskWork):
    """Work on one partition that may wait for a silence; ``Policy.load_task`` makes it again from what it saved."""

    kind: str
    """Name in snapshots."""
    partition: int

    def protects(self, side: int, partition: int) -> bool:
        """Must this memory part stay until the task is done?"""
        return False

    def guard(self, side: int, partition: int) -> AbstractContextManager[Any]:
        """Hold this while a memory part is probed or changed: a task may use it in a thread."""
        return nullcontext()

    def ready(self) -> bool:
        """Has something been found that only has to go out?"""
        return False


class FinalWork(DiskWork):
    """What is done after the last row."""

    @abstractmethod
    def load(self, values: dict[str, Any]) -> None:
        """Take over what ``save`` gave."""


class MemoryDiskTask(Task):
    """The md-stage: a memory part joined with the other side's runs (XJoin, RPJ; EHJ's background process).

    It takes the runs that exist when it starts and the rows in memory that had arrived by then. The memory part may
    grow meanwhile, but must not leave.
    """

    kind = "memory-disk"

    def __init__(
        self,
        state: JoinState,
        side: int,
        partition: int,
        finished: Callable[[MemoryDiskTask], None],
        **resumed: Any,
    ) -> None:
        self._state, self.side, self.partition, self._finished = state, side, partition, finished
        other = state.table.runs[1 - side][partition]
        self.started_at: int = resumed.get("started_at") or state.context.ticks.tick()
        self.labels: list[int] = resumed.get("labels") or [run.label for run in other]
        self._run, self._page = resumed.get("at", (0, 0))
        self._probe = ChainProbe.load(resumed["probe"]) if "probe" in resumed else ChainProbe()

    @property
    def done(self) -> bool:
        """Has every run been through?"""
        return bool(self._run >= len(self.labels))

    def protects(self, side: int, partition: int) -> bool:
        """The memory part that is probed."""
        return (side, partition) == (self.side, self.partition)

    @property
    def runs(self) -> list[DiskRun]:
        """The runs of the other side that are part of the task."""
        labels = set(self.labels)
        return [run for run in self._state.table.runs[1 - self.side][self.partition] if run.label in labels]

    def step(self) -> Step:
        """Some pairs of a page, or the next page."""
        reader = self._state.table.readers[1 - self.side]
        page = reader.read(self.runs[self._run], self._page)
        if page is None:
            self._run, self._page, self._probe = self._run + 1, 0, ChainProbe()
            if self.done:
                reader.drop()
                self._finished(self)
            return None
        step = None
        if not self._probe.over(len(page)):
            step = probe_page(self._state, self._probe, self.side, self.partition, page, before=self.started_at)
        if self._probe.over(len(page)):
            self._page = reader.next_page
            self._probe = self._probe.behind(len(page))
        return step

    def save(self) -> dict[str, Any]:
        """Where it stands."""
        place = {"side": self.side, "partition": self.partition, "started_at": self.started_at}
        at = {"labels": self.labels, "at": [self._run, self._page], "probe": self._probe.save()}
        return {"kind": self.kind} | place | at
