"""Runs of one input on disk: rows that left memory together, and which of them have matched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from earlyjoin.algorithms.nested_loop.residents import Residents
from earlyjoin.predicates.encoding.keys import Bool
from earlyjoin.state.budget import Budget
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.flag_file import FlagFile
from earlyjoin.state.disk.runs import Run
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.snapshot import Snapshot


@dataclass(slots=True)
class SpilledRun:
    """Rows that left memory together."""

    run: Run
    last_arrival: int
    departure: int
    flags: FlagFile | None
    """Which rows have matched; None when nobody asks."""

    def matched(self, first: int, count: int) -> Bool | None:
        """Copies of the flags of some rows; ``mark`` keeps what was set. None when nobody asks."""
        return None if self.flags is None else self.flags.read(np.arange(first, first + count, dtype=np.int64))

    def mark(self, first: int, matched: Bool | None) -> None:
        """Keep the flags of some rows."""
        if self.flags is not None and matched is not None:
            self.flags.mark(first + np.flatnonzero(matched))

    def save(self, snapshot: Snapshot, name: str) -> dict[str, Any]:
        """Put it into a snapshot; returns the plain values that ``load`` needs."""
        if self.flags is not None:
            self.flags.save(snapshot, name)
        return {"run": self.run.save(snapshot), "last_arrival": self.last_arrival, "departure": self.departure}

    @classmethod
    def load(cls, snapshot: Snapshot, name: str, values: dict[str, Any], directory: SpillDirectory) -> SpilledRun:
        """Take it out of a snapshot, which can be restored again."""
        run, flags = Run.load(snapshot, values["run"], directory), None
        if name in snapshot.files:
            flags = FlagFile(directory)
            flags.load(snapshot, name, run.rows)
        return cls(run, values["last_arrival"], values["departure"], flags)

    def delete(self) -> None:
        """Remove the files."""
        self.run.delete()
        if self.flags is not None:
            self.flags.delete()


def spill(
    residents: Residents, directory: SpillDirectory, counters: Counters, pages: Budget, departure: int
) -> SpilledRun:
    """Write all rows of one side to disk and forget them in memory."""
    run = residents.write(directory.new_path(".pages"), counters, pages)
    flags = None
    if residents.matched is not None:
        flags = FlagFile(directory)
        flags.append(residents.matched)
    spilled = SpilledRun(run, int(residents.arrivals[-1]), departure, flags)
    residents.clear()
    counters.flushes += 1
    return spilled
