"""Runs of one input on disk, and reading two of their pages at a time inside a budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from earlyjoin.algorithms.nested_loop.residents import Page, Residents
from earlyjoin.predicates.encoding.keys import Bool
from earlyjoin.state.budget import Budget, row_too_large
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.flag_file import FlagFile
from earlyjoin.state.disk.runs import Run, RunReader
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


class PageSlot:
    """Holds one page of one run in memory; reading another lets it go."""

    def __init__(self, residents: Residents, budget: Budget, counters: Counters) -> None:
        self._residents = residents
        self._budget = budget
        self._account = budget.account("page")
        self._counters = counters
        self._held: tuple[Run, int] | None = None
        self._page: Page | None = None
        self._reader: RunReader | None = None

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return self._page.nbytes if self._page is not None else 0

    def read(self, run: Run, number: int) -> tuple[Page, int] | None:
        """A page and the number of its first row in the run, or None behind the last page."""
        if number >= run.pages:
            return None
        if self._held != (run, number) or self._page is None:
            self._let_page_go()
            if self._reader is None or self._reader.run != run:
                self._close_reader()
                self._reader = run.read(self._counters)
            page = self._residents.read_page(self._reader.page(number))
            if not self._account.try_reserve(page.nbytes, len(page)):
                raise row_too_large(page.nbytes / len(page), self._budget, "reading")
            self._held, self._page = (run, number), page
        return self._page, run.starts[number]

    def drop(self) -> None:
        """Let the page go and close the file."""
        self._let_page_go()
        self._close_reader()

    def _let_page_go(self) -> None:
        self._account.clear()
        self._held = self._page = None

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def save_run(snapshot: Snapshot, name: str, spilled: SpilledRun) -> dict[str, Any]:
    """Put a run into a snapshot; returns the plain values that ``load_run`` needs."""
    if spilled.flags is not None:
        spilled.flags.save(snapshot, f"{name}-flags")
    return {
        "name": name,
        "run": spilled.run.save(snapshot),
        "last_arrival": spilled.last_arrival,
        "departure": spilled.departure,
    }


def load_run(snapshot: Snapshot, values: dict[str, Any], directory: SpillDirectory) -> SpilledRun:
    """Copy a run out of a snapshot: the snapshot can be restored again."""
    run = Run.load(snapshot, values["run"], directory)
    flags, name = None, f"{values['name']}-flags"
    if name in snapshot.files:
        flags = FlagFile(directory)
        flags.load(snapshot, name, run.rows)
    return SpilledRun(run, values["last_arrival"], values["departure"], flags)
